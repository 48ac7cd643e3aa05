// What compile and the tools that look into a compilation share: public options become the rooms' own.
#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "api/state.h"
#include "graph/graph.h"
#include "import/import_model.h"
#include "passes/pipeline.h"

namespace polyphase::api {

Result<Target> target_of(const CompileOptions& options, const Workshop& workshop);
Result<ImportOptions> import_options_of(const CompileOptions& options);
// A model as callers give it: a file's path, or a file's bytes, whose external data lies in the folder that the options
// name. Making one allocates nothing.
using ModelSource = std::variant<std::string_view, std::span<const std::byte>>;
// `survey` may be null: then the first refused operator is an error.
Result<ImportedModel> import_source(const ModelSource& source, const CompileOptions& options, const Workshop& workshop,
                                    OperatorSurvey* survey = nullptr);
// The sizes that the caller expects most, as values of the graph's symbols.
Result<DimBindings> likely_of(const CompileOptions& options, const Graph& graph);
PassOptions pass_options_of(const CompileOptions& options);
// Passes and lower; `model` is consumed.
Result<Engine> compile_graph(ImportedModel model, std::shared_ptr<const Workshop> workshop,
                             const CompileOptions& options);

}  // namespace polyphase::api

// What compile and the tools that look into a compilation share: public options become the rooms' own.
#pragma once

#include "api/state.h"
#include "graph/graph.h"
#include "import/import_model.h"
#include "passes/pipeline.h"

namespace polyphase::api {

Result<Target> target_of(const CompileOptions& options, const Workshop& workshop);
Result<ImportOptions> import_options_of(const CompileOptions& options);
// The sizes that the caller expects most, as values of the graph's symbols.
Result<DimBindings> likely_of(const CompileOptions& options, const Graph& graph);
PassOptions pass_options_of(const CompileOptions& options);
// Passes and lower; `model` is consumed.
Result<Engine> compile_graph(ImportedModel model, std::shared_ptr<const Workshop> workshop,
                             const CompileOptions& options);

}  // namespace polyphase::api

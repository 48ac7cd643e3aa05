// export_calls: rules on nodes that stand in functions of the model; they know types call by call.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "api/state.h"
#include "export/legalise.h"
#include "import/imported_model.h"

namespace polyphase::api {

// The types of a model's tensors, by name.
legal::TensorFacts facts_of(const ImportedModel& model);

struct ModelWithFacts {
  std::span<const std::byte> bytes;
  legal::TensorFacts facts;
};

// As those of the room export; a node of a function is named after each call of it, "CALL/NODE". Calls of functions in
// which a rule rewrites some node become the function's nodes, and a note each; other calls, and functions that are
// still called, stay byte for byte.
Result<std::vector<legal::TargetFinding>> find_refused_in_calls(const ModelWithFacts& model,
                                                                const legal::LegaliseOptions& with,
                                                                const Workshop& workshop);
Result<legal::Legalised> legalise_calls(const ModelWithFacts& model, const legal::LegaliseOptions& with,
                                        const Workshop& workshop, std::vector<std::string>& notes);

}  // namespace polyphase::api

// inline_calls: calls of a model's own functions become the functions' nodes, so that rules can see the types around
// them; all else stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "export/legalise.h"

namespace polyphase::legal {

struct InlinedCall {
  std::string call;  // the name of the node that called
  std::string function;
};

struct InlinedModel {
  std::string model;  // empty: no call became anything else
  std::vector<InlinedCall> calls;
  std::int64_t nodes = 0;  // of the main graph, before
  // From the names of nodes that came out of functions to the calls on the way to them. A call is known by its place,
  // which does not depend on what else is inlined.
  std::map<std::string, std::set<std::string>> places;
};

// Calls of functions with nodes that a rule of the target asks about; of those only the ones at `places`, if that is
// given. The model was imported before: its functions do not call themselves. Errors: a function in another version of
// ONNX's operators than the model, where that makes a difference, with the call.
Result<InlinedModel> inline_calls(std::span<const std::byte> model, const LegaliseOptions& options,
                                  const std::set<std::string>* places);

}  // namespace polyphase::legal

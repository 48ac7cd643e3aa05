// The nearest thing that works, per operator that people meet.
#include "import/onnx/missing.h"

#include <algorithm>
#include <array>

#include "wire/printable.h"

namespace polyphase {
namespace {

struct Alternative {
  std::string_view op_type;
  std::string_view advice;
};

constexpr std::array alternatives = {
    Alternative{"SequenceMap", "write its body once for every entry"},
};

}  // namespace

std::string nearest_alternative(std::string_view domain, std::string_view op_type) {
  const auto found = std::find_if(alternatives.begin(), alternatives.end(),
                                  [&](const Alternative& a) { return a.op_type == op_type; });
  if (domain.empty() && found != alternatives.end()) return std::string(found->advice);
  if (domain == "com.microsoft") return "export without ONNX Runtime's optimiser, so that the standard operators stay";
  if (domain == "com.microsoft.nchwc") {
    return "save the optimised model again with graph_optimization_level ORT_ENABLE_EXTENDED or lower; above, ONNX "
           "Runtime writes the blocks of channels of the CPU at hand into it";
  }
  if (!domain.empty())
    return "give the operator as a model-local function made of standard operators, or a plugin that claims it";
  return "write it with the operators listed in docs/operators.md";
}

void MissingOperators::add(std::string_view domain, std::string_view op_type, std::int64_t opset, std::string_view node,
                           std::string why) {
  Entry& entry = entries_[{std::string(domain), std::string(op_type)}];
  if (entry.count++ == 0) {
    entry.opset = opset;
    entry.first_node = node;
    entry.why = std::move(why);
  }
}

Error MissingOperators::error() const {
  constexpr std::size_t shown = 40;
  std::string message =
      "the model needs " +
      std::string(entries_.size() == 1 ? "an operator" : std::to_string(entries_.size()) + " operators") +
      " that Polyphase does not have:";
  std::size_t number = 0;
  for (const auto& [key, entry] : entries_) {
    if (number++ == shown) {
      message += "\n  … and " + std::to_string(entries_.size() - shown) + " more";
      break;
    }
    const auto& [domain, op_type] = key;
    message += "\n  " + (domain.empty() ? "" : wire::printable(domain) + ".") + wire::printable(op_type) + " (opset " +
               std::to_string(entry.opset) + "), " + std::to_string(entry.count) +
               (entry.count == 1 ? " node" : " nodes") + ", the first '" + entry.first_node + "'";
    message += entry.why.empty() ? "; instead: " + nearest_alternative(domain, op_type) : ": " + entry.why;
  }
  message += ".";
  Error error{ErrorCode::unsupported, std::move(message), "Change the model as said, and export it again."};
  if (entries_.size() == 1) error.node = entries_.begin()->second.first_node;
  return error;
}

void MissingOperators::tell(OperatorSurvey& survey) const {
  for (const auto& [key, entry] : entries_) {
    const auto& [domain, op_type] = key;
    OperatorUse& use = survey.use(domain, op_type);
    if (use.nodes == 0) {  // only inside of bodies that were not translated
      use.opset = entry.opset;
      use.first_node = entry.first_node;
      use.nodes = entry.count;
    }
    use.is_missing = true;
    use.nodes_refused = use.nodes;
    use.advice = entry.why.empty() ? nearest_alternative(domain, op_type) : entry.why;
  }
}

}  // namespace polyphase

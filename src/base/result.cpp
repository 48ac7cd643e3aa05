// Error's words.
#include "base/result.h"

namespace polyphase {

void result_misread() { check_failed("result.h", 0, "Result", "the wrong side of a Result was read"); }

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::invalid_model:
      return "invalid_model";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::shape_mismatch:
      return "shape_mismatch";
    case ErrorCode::io:
      return "io";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::incompatible:
      return "incompatible";
    case ErrorCode::out_of_memory:
      return "out_of_memory";
    case ErrorCode::cancelled:
      return "cancelled";
  }
  return "unknown";
}

std::string Error::text() const {
  std::string out;
  if (!node.empty()) out += "node '" + node + "': ";
  out += message;
  if (!hint.empty()) out += " " + hint;
  for (size_t i = 0; i < trail.size(); ++i) out += (i == 0 ? " (" : "; ") + trail[i];
  if (!trail.empty()) out += ")";
  return out;
}

Error&& Error::at_node(std::string_view node_name) && {
  if (node.empty()) node = node_name;
  return std::move(*this);
}

Error&& Error::within(std::string step) && {
  trail.push_back(std::move(step));
  return std::move(*this);
}

}  // namespace polyphase

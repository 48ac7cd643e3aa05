// A wish becomes a legal name that nobody has.
#include "import/compose/symbol_name.h"

namespace polyphase {

std::string unique_symbol(std::string_view wish, std::set<std::string, std::less<>>& used) {
  std::string name;
  for (const char c : wish.substr(0, 64)) {
    const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    const bool later = (c >= '0' && c <= '9') || c == '.';
    if (name.empty() && later) name = "_";
    name += letter || later ? c : '_';
  }
  if (name.empty()) name = "d";
  // Words of the text form of sizes.
  if (name == "min" || name == "max") name += "_";
  if (used.insert(name).second) return name;
  for (int number = 2;; ++number) {
    std::string candidate = name + "_" + std::to_string(number);
    if (used.insert(candidate).second) return candidate;
  }
}

}  // namespace polyphase

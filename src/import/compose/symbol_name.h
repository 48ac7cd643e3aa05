// Names for symbolic sizes.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace polyphase {

// A name that Dim::symbol and the text forms take: [A-Za-z_][A-Za-z0-9_.]*, like `wish` and not in `used`; added to it.
std::string unique_symbol(std::string_view wish, std::set<std::string, std::less<>>& used);

}  // namespace polyphase

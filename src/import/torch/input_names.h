// The names of a program's inputs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace polyphase {

// The leaves of forward's arguments in the order in which torch.utils._pytree flattens them, each by its parameter and
// the way into it: "x", "features.0", "sizes.height". `in_spec` is the TreeSpec's JSON; empty if it is not understood.
std::vector<std::string> input_names(const std::string& in_spec, const std::vector<std::string>& parameters);

}  // namespace polyphase

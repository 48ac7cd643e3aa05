// include/polyphase/network_layers.h, written from the operators' definitions.
#pragma once

#include <string>

#include "ops/registry.h"

namespace polyphase {

// A method for every operator but those that Network has methods of its own for: constant, if, loop.
std::string layers_header(const Registry& registry);
// How a method is named: the operator's name, with an underscore behind where C++ or Python has a word of it.
std::string method_name(const std::string& op);

}  // namespace polyphase

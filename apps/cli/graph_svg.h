// An engine's program as a picture.
#pragma once

#include <string>

#include "polyphase/polyphase.h"

namespace polyphase::cli {

// SVG: inputs, steps and outputs as boxes, values as edges with their shapes. Steps on the operators' plain loops are
// red.
std::string graph_svg(const api::Engine& engine);

}  // namespace polyphase::cli

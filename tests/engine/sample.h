// A small engine with one of everything: symbolic sizes, raw and packed constants, windows of a shared output.
#pragma once

#include "engine/engine.h"
#include "ops/registry.h"

namespace polyphase {

// Two transposed convolutions of x f32[1, 2, H, 8] write the upper and lower half of y f32[1, 3, 4*H, 16].
Engine sample_engine(const Registry& registry);

}  // namespace polyphase

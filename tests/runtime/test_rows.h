// Rows for tests: plain loops behind the whole of the row contract (packing, tiles, phases, pitches, overwriting),
// counting what is asked of them.
#pragma once

#include <atomic>

#include "kernel/catalogue.h"

namespace polyphase {

// relu, neg, add, mul on f32 in any strides up to pitched, one tile per index of the outermost axis, in place.
// conv and conv_transpose on f32, dense row-major, weights (and bias) packed, endings relu and add(_, full size) taken.
// identity on any type, any strides.
std::vector<const Row*> test_rows();
inline std::atomic<int> packs_made{0};
inline std::atomic<int> plans_made{0};

}  // namespace polyphase

// Entry points of conv_pixels' tiles in one cluster.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/simd/cluster.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// `scratch` holds plan.scratch_bytes, 64-byte aligned, with any contents.
void run_conv_pixels(const ConvPixelsPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                     std::byte* scratch);

// Its register tiles of floats and so many columns, by vectors from one on: conv_overlap multiplies with them as well.
const PixelsTileFunction* float_pixels_tiles(int columns);

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

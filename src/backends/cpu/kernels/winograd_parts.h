// Cuts large images that conv_winograd has to turn into parts, which a worker copies, computes and turns back.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv_winograd.h"

namespace polyphase::cpu {

inline constexpr int64_t winograd_blocks_aimed = 16;  // blocks that keep several threads busy

// Sets `parted`, `part` and `parts` of a plan whose blocks are those of the whole image, where both images are turned
// and large enough to gain by it: parts of half a million floats, or else the smallest that fill their blocks; twice as
// many as blocks are aimed at, or else at least as many.
void cut_into_parts(ConvWinogradPlan& plan);

}  // namespace polyphase::cpu

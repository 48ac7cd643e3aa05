// Deformable convolution: every tap is read at a place of its own.
#pragma once

#include <array>
#include <cstdint>

#include "import/compose/emitter.h"

namespace polyphase {

// Operands of rank 4; C channels, M outputs, G offset groups, K = kH·kW taps.
struct DeformConv {
  Value* x = nullptr;       // (N, C, H, W)
  Value* weight = nullptr;  // (M, C / groups, kH, kW)
  Value* offset = nullptr;  // (N, G·K·2, oH, oW): for each tap how far it moves, in rows, then in columns
  Value* mask = nullptr;    // (N, G·K, oH, oW): what each tap counts; null: 1
  Value* bias = nullptr;    // (M); null: 0
  std::array<std::int64_t, 2> stride = {1, 1};
  std::array<std::int64_t, 2> dilation = {1, 1};
  std::array<std::int64_t, 2> pad = {0, 0};  // rows above, columns before
  std::int64_t groups = 1;
  std::int64_t offset_groups = 1;
};

// (N, M, oH, oW) in x's dtype. Errors: invalid_model (operands that do not fit each other), unsupported (open
// channels).
Result<Value*> deform_conv(Emitter& node, const DeformConv& conv);

}  // namespace polyphase

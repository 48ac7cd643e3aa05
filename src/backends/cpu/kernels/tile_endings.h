// What register tiles do to their results before they store them: a sum, then a clip or a leaky ReLU.
#pragma once

#include <cstdint>
#include <limits>

#include "backends/cpu/kernels/endings.h"
#include "backends/cpu/simd/unrolled.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// What is done to results in registers (register_endings), if it is all.
struct TileEndings {
  enum class Activation : uint8_t { none, clip, leaky_relu };
  bool adds = false;
  Activation activation = Activation::none;
  float low = 0;  // of a clip, which a ReLU is from 0 on
  float high = std::numeric_limits<float>::infinity();
  float slope = 0;
  std::uintptr_t distance = 0;  // bytes from a place of the result to that of what is added there

  TileEndings() = default;
  TileEndings(const BriefEndings& endings, const float* result, const float* const* operands) {
    if (!endings.are_all) return;
    adds = endings.added >= 0;
    slope = endings.alpha;
    if (endings.activation == EndingKind::clip) {
      low = endings.alpha;
      high = endings.beta;
    }
    if (endings.activation != EndingKind::keep)
      activation = endings.activation == EndingKind::leaky_relu ? Activation::leaky_relu : Activation::clip;
    if (adds)
      distance = reinterpret_cast<std::uintptr_t>(operands[endings.added]) - reinterpret_cast<std::uintptr_t>(result);
  }

  POLYPHASE_INLINE const float* added_to(const float* place) const {
    return reinterpret_cast<const float*>(reinterpret_cast<std::uintptr_t>(place) + distance);
  }
};

// The activation of all of a tile's sums.
template <int Count>
POLYPHASE_INLINE void activate(const TileEndings& endings, VecF (&sums)[Count]) {
  if (endings.activation == TileEndings::Activation::leaky_relu) {
    const VecF slope = broadcast(endings.slope);
    unrolled<Count>([&](int i) POLYPHASE_INLINE_LAMBDA {
      sums[i] = select(less(sums[i], broadcast(0.0F)), sums[i] * slope, sums[i]);
    });
  } else if (endings.activation == TileEndings::Activation::clip) {
    const VecF low = broadcast(endings.low);
    const VecF high = broadcast(endings.high);
    unrolled<Count>([&](int i) POLYPHASE_INLINE_LAMBDA { sums[i] = min(high, max(low, sums[i])); });
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

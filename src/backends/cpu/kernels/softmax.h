// Softmax and log-softmax in FP32 along one axis of a tensor seen as (outer, length, inner), row-major.
#pragma once

#include <cstdint>

namespace polyphase::cpu {

struct SoftmaxPlan {
  int32_t logarithm;  // 1: log_softmax
  int64_t outer;
  int64_t length;
  int64_t inner;
  int64_t width;  // results side by side in one tile where inner is not 1: the vector width
  int64_t rows;   // of a tile where inner is 1
  int64_t tiles;  // outer × blocks of inner, or blocks of rows
};

}  // namespace polyphase::cpu

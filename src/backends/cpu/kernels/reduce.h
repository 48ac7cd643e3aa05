// Reductions over any axes, any strides, accumulated in FP64 or in 64-bit integers.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "base/shape.h"

namespace polyphase::cpu {

enum class ReduceKind : uint8_t {
  sum,
  mean,
  max,
  min,
  prod,
  l1,
  l2,
  log_sum,
  log_sum_exp,
  sum_square,
  arg_max,
  arg_min
};

struct ReducePlan {
  ReduceKind kind;
  DType dtype;
  int32_t last;           // arg_max, arg_min: of equals the last
  int64_t integer_start;  // what the sum of no integers is
  int32_t kept_rank;      // at least 1; the last kept axis is walked in blocks of `block`
  int32_t reduced_rank;   // at least 1
  int64_t kept_sizes[max_rank];
  int64_t from_kept[max_rank];  // strides, elements
  int64_t to_kept[max_rank];
  int64_t reduced_sizes[max_rank];
  int64_t from_reduced[max_rank];
  int64_t count;   // elements reduced into one
  int64_t blocks;  // along the last kept axis
  int64_t tiles;
};

inline constexpr int64_t reduce_block = 64;

}  // namespace polyphase::cpu

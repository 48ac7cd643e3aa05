// Normalisation and softmax in any float dtype, computed in FP64.
//
// Every axis of a normalisation says how x, y and the parameters go along it (0: they do not change); the outer axes
// number the groups, the inner ones their elements:
//
//   instance_norm   outer n, c          inner the spatial axes         layer_norm   outer the leading axes, inner the
//   rest group_norm      outer n, group      inner c in the group, spatial  batch_norm   as instance_norm, moments
//   given
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "base/shape.h"

namespace polyphase::cpu {

struct NumberNormalizePlan {
  enum Operand { x, scale, bias, mean, variance, operand_count };
  double epsilon;
  int32_t given_moments;  // batch_norm
  int32_t keeps_mean;     // layer_norm without centre
  int32_t outer_rank;
  int32_t inner_rank;            // at least 1
  int32_t input[operand_count];  // which of the step's; -1: absent
  DType dtypes[operand_count];
  int64_t sizes[max_rank + 1];  // outer axes, then inner ones
  int64_t strides[operand_count][max_rank + 1];
  int64_t to_strides[max_rank + 1];
  int64_t count;  // elements of a group
  int64_t tiles;  // groups
};

// As SoftmaxPlan: (outer, length, inner), dense.
struct NumberSoftmaxPlan {
  static constexpr int64_t lanes = 64;
  DType dtype;
  int32_t logarithm;
  int64_t length;
  int64_t step;        // elements from place to place along the axis
  int64_t lane_count;  // neighbours that are walked together, `lane` elements apart
  int64_t lane;
  int64_t lane_blocks;
  int64_t block_stride;  // from one run of lane_count to the next
  int64_t tiles;
};

}  // namespace polyphase::cpu

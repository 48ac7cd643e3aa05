// A chain of elementwise steps over broadcast FP32 tensors of any strides, computed block by block in the innermost
// cache.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/endings.h"
#include "base/shape.h"

namespace polyphase::cpu {

struct ElementwisePlan {
  static constexpr int max_operands = 8;
  int32_t rank;  // at least 1; axes that continue each other in every operand are merged
  int32_t step_count;
  int32_t first_operand;  // the tensor that enters the chain
  int32_t operand_count;
  int64_t sizes[max_rank];
  int64_t to_strides[max_rank];                  // elements
  int64_t from_strides[max_operands][max_rank];  // 0: broadcast
  EndingStep steps[EndingProgram::max_steps + 1];
  int64_t chunk;  // elements of the last axis that one tile walks in each of its rows
  int64_t chunks;
  int64_t rows_per_tile;
  int64_t tiles;
};

}  // namespace polyphase::cpu

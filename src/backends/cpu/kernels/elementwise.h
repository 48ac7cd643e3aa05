// A chain of elementwise steps over broadcast tensors of any strides, computed in FP32 block by block in the innermost
// cache. Operands and the result may be stored in f16 or bf16, the tensor that enters the chain also in short integers:
// a block is converted on its way in and rounded once on its way out.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/endings.h"
#include "base/dtype.h"
#include "base/shape.h"

namespace polyphase::cpu {

struct ElementwisePlan {
  static constexpr int max_operands = 8;
  static constexpr int max_steps = EndingProgram::most_endings + 1;
  static constexpr int most_crossed = 3;   // of more the kernel would leave the innermost cache
  static constexpr int crossed_rows = 64;  // four cache lines of floats from each column
  int32_t rank;                            // at least 1; axes that continue each other in every operand are merged
  int32_t step_count;                      // 0: the chain only converts
  int32_t first_operand;                   // the tensor that enters the chain
  int32_t operand_count;
  DType to_dtype;
  DType from_dtypes[max_operands];
  int64_t sizes[max_rank];
  int64_t to_strides[max_rank];                  // elements
  int64_t from_strides[max_operands][max_rank];  // 0: broadcast
  EndingStep steps[max_steps];
  // Operands that lie across: their elements are neighbours along the axis before the last. They are turned, a block of
  // rows at a time, before the rows are walked. Where all of them would lie across, the last two axes changed places:
  // then the result lies across, and is turned after the rows.
  bool result_crossed;
  int32_t crossed_count;
  int32_t crossed[most_crossed];
  // Rows of few elements, none of which lie across: a block of them is walked as one run, for which operands and a
  // result that have gaps between the rows are copied.
  static constexpr int64_t most_joined = 128;      // elements of such a row
  static constexpr int64_t joined_elements = 512;  // of a block
  bool joins_rows;
  bool past_caches;  // a result so large that the caches cannot hold it for its reader
  int64_t chunk;     // elements of the last axis that one tile walks in each of its rows
  int64_t chunks;
  int64_t rows_per_tile;
  int64_t tiles;
};

}  // namespace polyphase::cpu

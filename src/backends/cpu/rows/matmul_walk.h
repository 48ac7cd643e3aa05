// The walk that rows of matmul share.
#pragma once

#include "backends/cpu/kernels/matmul.h"
#include "kernel/step_desc.h"

namespace polyphase::cpu {

// Sizes, strides and tiles of so many rows and columns.
MatmulPlan walk_matmul(const PlanRequest& request, int64_t tile_rows, int64_t tile_columns);

}  // namespace polyphase::cpu

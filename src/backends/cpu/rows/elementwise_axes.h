// The walk that rows of elementwise operators share.
#pragma once

#include "backends/cpu/kernels/elementwise.h"
#include "kernel/step_desc.h"

namespace polyphase::cpu {

// Sizes, strides, dtypes and tiles of a step whose operands broadcast to its result.
void set_elementwise_axes(const PlanRequest& request, ElementwisePlan& plan);

}  // namespace polyphase::cpu

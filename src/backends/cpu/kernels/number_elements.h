// One elementwise operator over tensors of any dtype and strides: what integers, truth values and FP64 run on.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/elementwise.h"

namespace polyphase::cpu {

enum class NumberOp : uint8_t {
  add,
  sub,
  mul,
  div,
  mod,
  fmod,
  min,
  max,
  bit_and,
  bit_or,
  bit_xor,
  equal,  // from here on the result is bool
  less,
  less_equal,
  greater,
  greater_equal,
  negate,  // of one operand from here on
  absolute,
  relu,
  leaky_relu,  // of floats, with the plan's alpha
  logical_not,
  bit_not,
  cast,
  where,  // moves elements of any dtype
};

struct NumberElementsPlan {
  ElementwisePlan walk;  // its steps are not used
  NumberOp op;
  int32_t operands[3];
  double alpha;
};

}  // namespace polyphase::cpu

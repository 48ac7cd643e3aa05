// Compares results: the same numbers, or within a stated bound.
#pragma once

#include <string>

#include "base/tensor.h"

namespace polyphase::test {

struct Bound {
  double ulp = 0;        // units in the last place of the expected value
  double tolerance = 0;  // relative to the largest expected magnitude
  bool flushes = false;  // 0 is right where an f32 result would be subnormal
};

// Empty if equal: the same bits, both NaN, both zero, or within the bound. Otherwise what differs where.
std::string compare(const TensorView& found, const TensorView& expected, const Bound& bound);

}  // namespace polyphase::test

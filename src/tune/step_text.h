// A step as one line of text: all that decides how long its kernels take, and no more, so that equal steps of any
// networks have equal texts.
//
//   conv{stride=[2, 2]}(0 1 2)* + relu{}(-) : f32[1, 3, 64, 64]@0,2,3,1 f32[8, 3, 4, 4]@0,1,2,3! … > f32[1, 8, 32, …
//
// * marks the anchor, - the running value, _ an absent operand, @ the order of the axes in memory, ! a constant.
#pragma once

#include <string>

#include "kernel/step_desc.h"

namespace polyphase {

// Empty where a line cannot say it: it would be too long, or hold characters that are none of a line.
std::string text_of(const StepDesc& desc);

}  // namespace polyphase

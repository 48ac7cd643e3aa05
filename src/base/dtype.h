// DType, as the public header defines it.
#pragma once

#include "polyphase/dtype.h"

namespace polyphase {

// The floats of 16 bits, which kernels compute with as f32.
inline bool is_narrow(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

}  // namespace polyphase

// Of DLPack tensors, what the C ABI needs besides the public functions.
#pragma once

#include "polyphase/polyphase.h"

namespace polyphase::api {

// dtype, sizes and strides, without the data, which may be null.
Result<TensorView> dlpack_shape(const DLManagedTensorVersioned& tensor);

}  // namespace polyphase::api

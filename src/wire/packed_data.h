// The typed fields of TensorProto (float_data, int32_data, …) and 4-bit elements, unpacked.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/tensor.h"

namespace onnx {
class TensorProto;
}

namespace polyphase::wire {

// True if any of the typed fields holds something.
bool has_typed_data(const onnx::TensorProto& proto);
// Fills `out` (row-major, allocated) from the typed field that ONNX prescribes for its dtype; the count must be exact.
Result<void> copy_typed_data(const onnx::TensorProto& proto, const TensorView& out);
// Two 4-bit elements a byte, the first in the low half → one byte each, sign-extended for i4.
void unpack_nibbles(std::span<const std::byte> packed, const TensorView& out);

}  // namespace polyphase::wire

// Indices as operands: reading and checking one, and views by axis; what gathers and scatters share.
#pragma once

#include <string>

#include "ops/rules.h"

namespace polyphase {

// Operand `i`, named 'indices', is i64 or i32.
inline Result<void> expect_indices(const InferContext& context, std::size_t i = 1) {
  const DType dtype = context.input(i).dtype;
  if (dtype == DType::i64 || dtype == DType::i32) return {};
  return refuse(context, "operand " + operand_name(context, i) + " must be i64 or i32, found " +
                             std::string(name_of(dtype)) + ".");
}

// The index from 0, or an Error if it lies outside the axis.
inline Result<std::int64_t> index_at(const TensorView& indices, std::int64_t offset, std::int64_t size) {
  const std::int64_t given =
      load_integer(indices.data + offset * static_cast<std::int64_t>(size_bytes(indices.dtype)), indices.dtype);
  const std::int64_t index = given < 0 ? given + size : given;
  if (index >= 0 && index < size) return index;
  return Error{ErrorCode::invalid_argument, "the index " + std::to_string(given) + " lies outside an axis of size " +
                                                std::to_string(size) + "; indices run from " + std::to_string(-size) +
                                                " to " + std::to_string(size - 1) + "."};
}

inline void advance(TensorView& view, std::int64_t elements) {
  view.data += elements * static_cast<std::int64_t>(size_bytes(view.dtype));
}

// The view without its axis.
inline TensorView without_axis(TensorView view, std::size_t axis) {
  for (std::size_t i = axis; i + 1 < static_cast<std::size_t>(view.rank); ++i) {
    view.sizes[i] = view.sizes[i + 1];
    view.strides[i] = view.strides[i + 1];
  }
  --view.rank;
  return view;
}

// The axes from `first` on.
inline TensorView trailing(const TensorView& view, std::size_t first) {
  TensorView out = view;
  for (std::size_t i = 0; i < first; ++i) out = without_axis(out, 0);
  return out;
}

}  // namespace polyphase

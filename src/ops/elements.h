// Elements as numbers: short blocks of a strided tensor, read into double (floats) or int64 (integers, bool), computed
// on, and written back with one rounding. The dtype is looked at once per block, never per element.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/rows.h"
#include "base/tensor.h"

namespace polyphase {

// Elements of one block; three of them stay in the L1 cache.
inline constexpr std::int64_t block_elements = 512;

// `step` is in elements. u64 above 2^63 - 1 wraps into int64, and back on writing.
void read_block(const std::byte* first, DType dtype, std::int64_t step, std::int64_t count, double* out);
void read_block(const std::byte* first, DType dtype, std::int64_t step, std::int64_t count, std::int64_t* out);
// Rounds to nearest even for float dtypes; for integers truncates, saturates, NaN gives 0; bool is value != 0.
void write_block(std::byte* first, DType dtype, std::int64_t step, std::int64_t count, const double* values);
// Integers wrap to the dtype; floats are rounded once; bool is value != 0. `is_unsigned`: the values are uint64.
void write_block(std::byte* first, DType dtype, std::int64_t step, std::int64_t count, const std::int64_t* values,
                 bool is_unsigned = false);

// Calls f(offsets, count, steps), count <= block_elements, over all elements of views of equal sizes.
template <std::size_t Operands, typename F>
void for_each_block(std::span<const std::int64_t> sizes, const std::array<const std::int64_t*, Operands>& strides,
                    RowOrder order, F&& f) {
  for_each_row<Operands>(sizes, strides, order, [&](const auto& row, std::int64_t count, const auto& steps) {
    std::array<std::int64_t, Operands> at = row;
    for (std::int64_t done = 0; done < count; done += block_elements) {
      f(static_cast<const std::array<std::int64_t, Operands>&>(at), std::min(block_elements, count - done), steps);
      for (std::size_t i = 0; i < Operands; ++i) at[i] += steps[i] * block_elements;
    }
  });
}

inline std::byte* element_at(const TensorView& view, std::int64_t offset) {
  return view.data + offset * static_cast<std::int64_t>(size_bytes(view.dtype));
}

// Calls f(place, number) for the elements along an axis, in order; `first` is where they begin, in elements.
template <typename Number, typename F>
void for_each_on_axis(const TensorView& x, std::size_t axis, std::int64_t first, F&& f) {
  Number numbers[block_elements];
  for (std::int64_t begin = 0; begin < x.sizes[axis]; begin += block_elements) {
    const std::int64_t count = std::min(block_elements, x.sizes[axis] - begin);
    read_block(element_at(x, first + begin * x.strides[axis]), x.dtype, x.strides[axis], count, numbers);
    for (std::int64_t i = 0; i < count; ++i) f(begin + i, numbers[i]);
  }
}

// Two's complement arithmetic that wraps, on int64 and uint64 alike.
template <typename T>
T wrapping_add(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
template <typename T>
T wrapping_subtract(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
template <typename T>
T wrapping_multiply(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

// Truncates towards zero like C; x / 0 is 0; the least number / -1 wraps.
template <typename T>
T total_divide(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return wrapping_subtract(T{0}, a);
  }
  return a / b;
}

// The double that a further rounding to 32 bits or fewer rounds as if from the integer itself (round to odd).
double rounded_to_odd(std::uint64_t magnitude);

}  // namespace polyphase

// Dense copies of operands in the type that references compute in: double for floats, int64 for integers. Conversion
// happens once per element, outside the loops; results are rounded once on the way back.
#pragma once

#include <cstdint>
#include <vector>

#include "base/tensor.h"

namespace polyphase {

// Row-major values of a view. Integers above 2^63 - 1 (u64) wrap, which sums and products do not notice.
template <typename T>
std::vector<T> dense_values(const TensorView& view);
extern template std::vector<double> dense_values(const TensorView& view);
extern template std::vector<std::int64_t> dense_values(const TensorView& view);

// Writes row-major values to a view: floats rounded once, integers wrapped to the dtype.
void store_values(const std::vector<double>& values, const TensorView& to);
void store_values(const std::vector<std::int64_t>& values, const TensorView& to);

// body(double{}) for float dtypes, body(int64_t{}) for the others: one branch per operator call, none per element.
template <typename F>
decltype(auto) with_accumulator(DType dtype, F&& body) {
  return is_float(dtype) ? body(double{}) : body(std::int64_t{});
}

// sum + a * b; integers wrap.
inline double multiply_add(double sum, double a, double b) { return sum + a * b; }
inline std::int64_t multiply_add(std::int64_t sum, std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) +
                                   static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

}  // namespace polyphase

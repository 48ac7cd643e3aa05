// Runs one tile of an elementwise operator in any dtype: blocks are read as numbers, combined, and rounded or wrapped
// once on their way out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "backends/cpu/kernels/elementwise_run.h"
#include "backends/cpu/kernels/number_elements.h"
#include "backends/cpu/kernels/numbers.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Operand k's elements from `first` of a row on, in bytes.
POLYPHASE_INLINE const std::byte* operand_at(const ElementwisePlan& p, const ElementwiseRow& row, int k,
                                             int64_t first) {
  return row.from[k] + first * row.strides[k] * bytes_of(p.from_dtypes[k]);
}

template <class Number>
POLYPHASE_INLINE void load_operand(const ElementwisePlan& p, const ElementwiseRow& row, int k, int64_t first,
                                   int64_t count, Number* block) {
  const int64_t stride = row.strides[k];
  load_numbers(p.from_dtypes[k], operand_at(p, row, k, first), stride, stride == 0 ? 1 : count, block);
  if (stride == 0) std::fill(block + 1, block + count, block[0]);
}

// ---------------------------------------------------------------- formulas

// C's quotient; x / 0 is 0, and the least number / -1 wraps.
template <class Number>
POLYPHASE_INLINE Number quotient(Number x, Number y) {
  if constexpr (std::is_same_v<Number, double>) {
    return x / y;
  } else {
    if (y == 0) return 0;
    if constexpr (std::is_signed_v<Number>) {
      if (y == -1) return static_cast<Number>(0 - static_cast<uint64_t>(x));
    }
    return x / y;
  }
}

template <bool of_dividend, class Number>
POLYPHASE_INLINE Number remainder_of(Number x, Number y) {
  Number rest{};
  if constexpr (std::is_same_v<Number, double>) {
    rest = std::fmod(x, y);
  } else {
    if (y == 0) return 0;
    if constexpr (std::is_signed_v<Number>) {
      if (y == -1) return 0;
    }
    rest = x % y;
  }
  return !of_dividend && rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

// Additions and products of integers wrap, as those of uint64 do.
template <NumberOp op, class Number>
POLYPHASE_INLINE Number combined(Number x, Number y) {
  using Bits = std::conditional_t<std::is_same_v<Number, double>, double, uint64_t>;
  if constexpr (op == NumberOp::add) return static_cast<Number>(static_cast<Bits>(x) + static_cast<Bits>(y));
  if constexpr (op == NumberOp::sub) return static_cast<Number>(static_cast<Bits>(x) - static_cast<Bits>(y));
  if constexpr (op == NumberOp::mul) return static_cast<Number>(static_cast<Bits>(x) * static_cast<Bits>(y));
  if constexpr (op == NumberOp::div) return quotient(x, y);
  if constexpr (op == NumberOp::mod) return remainder_of<false>(x, y);
  if constexpr (op == NumberOp::fmod) return remainder_of<true>(x, y);
  if constexpr (op == NumberOp::min) return x < y || is_nan(x) ? x : y;
  if constexpr (op == NumberOp::max) return x > y || is_nan(x) ? x : y;
  if constexpr (op == NumberOp::negate) {
    if constexpr (std::is_same_v<Number, double>)
      return -x;
    else
      return static_cast<Number>(0 - static_cast<Bits>(x));
  }
  if constexpr (op == NumberOp::absolute) {
    if constexpr (std::is_same_v<Number, double>)
      return std::fabs(x);
    else
      return x < Number{0} ? static_cast<Number>(0 - static_cast<Bits>(x)) : x;
  }
  if constexpr (op == NumberOp::relu) return x <= Number{0} ? Number{0} : x;
  if constexpr (!std::is_same_v<Number, double>) {
    if constexpr (op == NumberOp::bit_and) return x & y;
    if constexpr (op == NumberOp::bit_or) return x | y;
    if constexpr (op == NumberOp::bit_xor) return x ^ y;
    if constexpr (op == NumberOp::bit_not) return ~x;
    if constexpr (op == NumberOp::logical_not) return x == 0 ? 1 : 0;
  }
  return {};
}

template <NumberOp op, class Number>
POLYPHASE_INLINE bool compares(Number x, Number y) {
  if constexpr (op == NumberOp::equal) return x == y;
  if constexpr (op == NumberOp::less) return x < y;
  if constexpr (op == NumberOp::less_equal) return x <= y;
  if constexpr (op == NumberOp::greater) return x > y;
  return x >= y;
}

// ---------------------------------------------------------------- rows

inline bool gives_bool(NumberOp op) { return op >= NumberOp::equal && op <= NumberOp::greater_equal; }

// Of a block: the results instead of the first operands, or of a comparison whether it holds.
template <NumberOp op, class Number>
inline void combine_block(Number* __restrict x, const Number* __restrict y, uint8_t* __restrict holds, int64_t count) {
  if constexpr (op >= NumberOp::equal && op <= NumberOp::greater_equal) {
    for (int64_t i = 0; i < count; ++i) holds[i] = compares<op>(x[i], y[i]) ? 1 : 0;
  } else {
    for (int64_t i = 0; i < count; ++i) x[i] = combined<op>(x[i], op < NumberOp::negate ? y[i] : x[i]);
  }
}

template <class Number>
using CombineBlock = void (*)(Number* x, const Number* y, uint8_t* holds, int64_t count);

template <class Number>
inline void combine_row(const NumberElementsPlan& plan, const ElementwiseRow& row, int64_t n,
                        CombineBlock<Number> combine) {
  const ElementwisePlan& p = plan.walk;
  const int64_t to_stride = row.to_stride;
  Number x[elementwise_block];
  Number y[elementwise_block];
  uint8_t held[elementwise_block];
  for (int64_t first = 0; first < n; first += elementwise_block) {
    const int64_t count = std::min(elementwise_block, n - first);
    load_operand(p, row, plan.operands[0], first, count, x);
    if (plan.op < NumberOp::negate) load_operand(p, row, plan.operands[1], first, count, y);
    std::byte* const to = row.to + first * to_stride * bytes_of(p.to_dtype);
    auto* const truth = reinterpret_cast<uint8_t*>(to);
    combine(x, y, to_stride == 1 ? truth : held, count);
    if (!gives_bool(plan.op)) {
      store_numbers(p.to_dtype, x, count, to, to_stride);
    } else if (to_stride != 1) {
      for (int64_t i = 0; i < count; ++i) truth[i * to_stride] = held[i];
    }
  }
}

// Towards zero; what lies outside the dtype becomes its nearest number, NaN becomes 0.
template <class T>
POLYPHASE_INLINE T truncated(double x) {
  constexpr auto low = static_cast<double>(std::numeric_limits<T>::min());
  constexpr auto high = static_cast<double>(std::numeric_limits<T>::max());  // 64 bits: rounds up to a power of 2
  if constexpr (sizeof(T) < 8) {
    const double held = x < low ? low : x > high ? high : x;
    return static_cast<T>(is_nan(held) ? 0.0 : held);
  } else {
    if (is_nan(x)) return 0;
    if (x <= low) return std::numeric_limits<T>::min();
    return x >= high ? std::numeric_limits<T>::max() : static_cast<T>(x);
  }
}

template <class T>
POLYPHASE_INLINE void store_truncated(const double* from, int64_t n, std::byte* to, int64_t stride) {
  T* y = reinterpret_cast<T*>(to);
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] = truncated<T>(from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * stride] = truncated<T>(from[i]);
  }
}

inline void store_cast(DType dtype, const double* from, int64_t n, std::byte* to, int64_t stride) {
  switch (dtype) {
    case DType::boolean:
      for (int64_t i = 0; i < n; ++i) reinterpret_cast<uint8_t*>(to)[i * stride] = from[i] != 0 ? 1 : 0;
      return;
    case DType::i8:
      return store_truncated<int8_t>(from, n, to, stride);
    case DType::u8:
      return store_truncated<uint8_t>(from, n, to, stride);
    case DType::i16:
      return store_truncated<int16_t>(from, n, to, stride);
    case DType::u16:
      return store_truncated<uint16_t>(from, n, to, stride);
    case DType::i32:
      return store_truncated<int32_t>(from, n, to, stride);
    case DType::u32:
      return store_truncated<uint32_t>(from, n, to, stride);
    case DType::i64:
      return store_truncated<int64_t>(from, n, to, stride);
    case DType::u64:
      return store_truncated<uint64_t>(from, n, to, stride);
    default:
      return store_numbers(dtype, from, n, to, stride);
  }
}

// 64-bit integers have more digits than a double: those to f32 and f64 are rounded directly, once.
template <class Number>
inline void store_cast(DType dtype, const Number* from, int64_t n, std::byte* to, int64_t stride) {
  if (dtype == DType::f32) return store_run<float>(from, n, to, stride);
  if (dtype == DType::f64) return store_run<double>(from, n, to, stride);
  if (!is_real(dtype)) {
    if (dtype == DType::u64) return store_run<uint64_t>(from, n, to, stride);
    with_element<int64_t>(dtype, [&]<class T>(T) { store_run<T>(from, n, to, stride); });
    return;
  }
  double values[elementwise_block];
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<double>(from[i]);
  store_numbers(dtype, values, n, to, stride);
}

inline void leaky_relu_row(const NumberElementsPlan& plan, const ElementwiseRow& row, int64_t n) {
  const ElementwisePlan& p = plan.walk;
  const int64_t to_stride = row.to_stride;
  double x[elementwise_block];
  for (int64_t first = 0; first < n; first += elementwise_block) {
    const int64_t count = std::min(elementwise_block, n - first);
    load_operand(p, row, plan.operands[0], first, count, x);
    for (int64_t i = 0; i < count; ++i) x[i] = x[i] < 0 ? plan.alpha * x[i] : x[i];
    store_numbers(p.to_dtype, x, count, row.to + first * to_stride * bytes_of(p.to_dtype), to_stride);
  }
}

// The same of f32 beside each other, by vectors: what is quantised ends so.
template <class T>
POLYPHASE_INLINE void truncate_floats(const float* from, int64_t n, T* to) {
  constexpr auto low = static_cast<float>(std::numeric_limits<T>::min());
  constexpr auto high = static_cast<float>(std::numeric_limits<T>::max());
  for (int64_t i = 0; i < n; ++i) {
    float x = from[i] < low ? low : from[i];
    x = x > high ? high : x;
    to[i] = static_cast<T>(static_cast<int32_t>(x == x ? x : 0.0F));
  }
}

inline bool truncate_row(DType dtype, const float* from, int64_t n, std::byte* to) {
  if (dtype == DType::u8) return truncate_floats(from, n, reinterpret_cast<uint8_t*>(to)), true;
  if (dtype == DType::i8) return truncate_floats(from, n, reinterpret_cast<int8_t*>(to)), true;
  return false;
}

template <class Number>
inline void cast_row(const NumberElementsPlan& plan, const ElementwiseRow& row, int64_t n) {
  const ElementwisePlan& p = plan.walk;
  const int64_t to_stride = row.to_stride;
  const int from = plan.operands[0];
  if (p.from_dtypes[from] == DType::f32 && row.strides[from] == 1 && to_stride == 1 &&
      truncate_row(p.to_dtype, reinterpret_cast<const float*>(operand_at(p, row, from, 0)), n, row.to))
    return;
  Number x[elementwise_block];
  for (int64_t first = 0; first < n; first += elementwise_block) {
    const int64_t count = std::min(elementwise_block, n - first);
    load_operand(p, row, plan.operands[0], first, count, x);
    store_cast(p.to_dtype, x, count, row.to + first * to_stride * bytes_of(p.to_dtype), to_stride);
  }
}

template <class Bits>
inline void choose_row(const NumberElementsPlan& plan, const ElementwiseRow& row, int64_t n) {
  const auto stride = [&](int i) { return row.strides[plan.operands[i]]; };
  const auto* test = reinterpret_cast<const uint8_t*>(row.from[plan.operands[0]]);
  const auto* yes = reinterpret_cast<const Bits*>(row.from[plan.operands[1]]);
  const auto* no = reinterpret_cast<const Bits*>(row.from[plan.operands[2]]);
  auto* to = reinterpret_cast<Bits*>(row.to);
  const int64_t to_stride = row.to_stride;
  const bool plain = stride(0) == 1 && to_stride == 1;
  if (plain && stride(1) == 1 && stride(2) == 1) {
    for (int64_t i = 0; i < n; ++i) {
      const Bits x = yes[i];
      const Bits y = no[i];
      to[i] = test[i] != 0 ? x : y;
    }
  } else if (plain && stride(1) == 1 && stride(2) == 0) {
    const Bits y = *no;
    for (int64_t i = 0; i < n; ++i) {
      const Bits x = yes[i];
      to[i] = test[i] != 0 ? x : y;
    }
  } else if (plain && stride(1) == 0 && stride(2) == 1) {
    const Bits x = *yes;
    for (int64_t i = 0; i < n; ++i) {
      const Bits y = no[i];
      to[i] = test[i] != 0 ? x : y;
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const Bits x = yes[i * stride(1)];
      const Bits y = no[i * stride(2)];
      to[i * to_stride] = test[i * stride(0)] != 0 ? x : y;
    }
  }
}

template <class Number>
inline void number_row(const NumberElementsPlan& plan, const ElementwiseRow& row, int64_t n) {
  switch (plan.op) {
#define POLYPHASE_NUMBER_OP(op) \
  case NumberOp::op:            \
    return combine_row<Number>(plan, row, n, combine_block<NumberOp::op, Number>);
    POLYPHASE_NUMBER_OP(add)
    POLYPHASE_NUMBER_OP(sub)
    POLYPHASE_NUMBER_OP(mul)
    POLYPHASE_NUMBER_OP(div)
    POLYPHASE_NUMBER_OP(mod)
    POLYPHASE_NUMBER_OP(fmod)
    POLYPHASE_NUMBER_OP(min)
    POLYPHASE_NUMBER_OP(max)
    POLYPHASE_NUMBER_OP(equal)
    POLYPHASE_NUMBER_OP(less)
    POLYPHASE_NUMBER_OP(less_equal)
    POLYPHASE_NUMBER_OP(greater)
    POLYPHASE_NUMBER_OP(greater_equal)
    POLYPHASE_NUMBER_OP(negate)
    POLYPHASE_NUMBER_OP(absolute)
    POLYPHASE_NUMBER_OP(relu)
    case NumberOp::cast:
      return cast_row<Number>(plan, row, n);
    default:
      break;
  }
  if constexpr (std::is_same_v<Number, double>) {
    if (plan.op == NumberOp::leaky_relu) leaky_relu_row(plan, row, n);
  } else {
    switch (plan.op) {
      POLYPHASE_NUMBER_OP(bit_and)
      POLYPHASE_NUMBER_OP(bit_or)
      POLYPHASE_NUMBER_OP(bit_xor)
      POLYPHASE_NUMBER_OP(bit_not)
      POLYPHASE_NUMBER_OP(logical_not)
#undef POLYPHASE_NUMBER_OP
      default:
        break;
    }
  }
}

inline void run_number_elements(const NumberElementsPlan& plan, const std::byte* const* inputs, std::byte* output,
                                int64_t tile) {
  const DType dtype = plan.walk.from_dtypes[plan.operands[plan.op == NumberOp::where ? 1 : 0]];
  for_each_elementwise_row(plan.walk, inputs, output, tile, [&](const ElementwiseRow& row, int64_t n) {
    if (plan.op != NumberOp::where) {
      return with_number(dtype, [&]<class Number>(Number) { number_row<Number>(plan, row, n); });
    }
    const int64_t bytes = bytes_of(dtype);
    if (bytes == 1) return choose_row<uint8_t>(plan, row, n);
    if (bytes == 2) return choose_row<uint16_t>(plan, row, n);
    if (bytes == 4) return choose_row<uint32_t>(plan, row, n);
    choose_row<uint64_t>(plan, row, n);
  });
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

// Runs an ending program over a run of results, along the channels of one pixel or along the pixels of one channel.
#pragma once

#include <cmath>
#include <cstdint>

#include "backends/cpu/kernels/endings.h"
#include "backends/cpu/simd/fetch.h"
#include "backends/cpu/simd/math.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

POLYPHASE_INLINE VecF hard_sigmoid(VecF x, VecF alpha, VecF beta) {
  return min(broadcast(1.0F), max(broadcast(0.0F), fma(x, alpha, beta)));
}

// x * ((1 + e^x)^2 - 1) / ((1 + e^x)^2 + 1), which is x * tanh(log(1 + e^x)); for x > 20 it is x.
POLYPHASE_INLINE VecF mish(VecF x) {
  const VecF e = exp_or_zero(min(broadcast(20.0F), x));
  const VecF n = e * (e + broadcast(2.0F));
  return select(less(broadcast(20.0F), x), x, x * n / (n + broadcast(2.0F)));
}

// A function that nears 0 below: its `tail` for x < 0, and `upper` else. Below `least`, where the tail would be
// subnormal (exp_or_zero), it is 0, and no number of -infinity.
POLYPHASE_INLINE VecF join_tail(VecF x, float least, VecF tail, VecF upper) {
  const VecF lower = select(less(x, broadcast(least)), x * broadcast(0.0F), tail);
  return select(less(x, broadcast(0.0F)), lower, upper);
}

// x * sigmoid(x) where e^-x may be infinite: e^-|x| is squared from e^(-|x|/2) only after x multiplied it, since it may
// be subnormal, the result not.
inline __attribute__((noinline)) VecF silu_far_below(VecF x) {
  constexpr float least = -91.85677F;
  const VecF h = exp_bounded(max(broadcast(least), broadcast(0.0F) - abs(x)) * broadcast(0.5F));
  const VecF r = x / fma(h, h, broadcast(1.0F));
  return join_tail(x, least, r * h * h, r);
}

// x * sigmoid(x).
POLYPHASE_INLINE VecF silu(VecF x) {
  if (any(less(x, broadcast(-88.0F)))) return silu_far_below(x);
  const VecF e = exp_bounded(max(broadcast(least_normal_exponent), broadcast(0.0F) - x));
  return x / (broadcast(1.0F) + e);
}

// x * Phi(x) = x/2 * erfc(-x / sqrt 2), relatively accurate in the tail as well: erfc(a) = exp(-a^2) * P(t) / (1 + 2a)
// with t = (a - 2) / (a + 2), and exp(-x^2/2) takes the rounding error of x^2 along.
POLYPHASE_INLINE VecF gelu_erf(VecF x) {
  const VecF one = broadcast(1.0F);
  const VecF two = broadcast(2.0F);
  constexpr float least = -13.146246F;
  const VecF bounded = min(broadcast(-least), abs(x));
  const VecF a = bounded * broadcast(0.707106781F);
  const VecF falling = exp_bounded(bounded * bounded * broadcast(-0.5F));  // 3e-38 at the least, no subnormal number
  constexpr float factors[] = {1.2769783735F,   -0.0927640200F, -0.1660317630F, 0.1640560031F,   -0.0542004742F,
                               -0.00806193985F, 0.00861753617F, 0.00131103769F, -0.00121330307F, -0.000390680798F};
  const VecF above = a + two;
  const VecF linear = fma(two, a, one);
  const VecF inverse = one / (above * linear);  // one quotient for both
  const VecF scaled = polynomial_by_parity((a - two) * linear * inverse, factors) * (above * inverse);
  const VecF correction = fma(product_error(bounded, bounded), broadcast(-0.5F), one);
  const VecF tail = x * broadcast(0.5F) * falling * (scaled * correction);  // x/2 * erfc(|x| / sqrt 2)
  const VecF upper = select(less(broadcast(-least), x), x, x - tail);       // of infinity the tail is no number
  return join_tail(x, least, tail, upper);
}

// x/2 * (1 + tanh(u)) = x / (1 + exp(-2u)), 2u = x * (c1 + c2 x^2) in two floats, since exp magnifies its error.
POLYPHASE_INLINE VecF gelu_tanh(VecF x) {
  const VecF one = broadcast(1.0F);
  constexpr float least = -10.1006365F;
  const VecF bounded = min(broadcast(-least), abs(x));
  const VecF c1 = broadcast(1.59576917F);
  const VecF c2 = broadcast(0.0713548139F);
  const VecF c1_low = broadcast(-4.53407e-08F);
  const VecF c2_low = broadcast(2.39883e-09F);
  const VecF square = bounded * bounded;
  const VecF cubic = c2 * square;
  const VecF q = cubic + c1;
  const VecF part = q - cubic;
  const VecF sum_low = (cubic - (q - part)) + (c1 - part);
  const VecF cubic_low = product_error(c2, square) + fma(c2, product_error(bounded, bounded), c2_low * square);
  const VecF w = bounded * q;
  const VecF w_low = fma(bounded, sum_low + cubic_low + c1_low, product_error(bounded, q));
  const VecF h = exp_bounded(w * broadcast(-0.5F)) * fma(w_low, broadcast(-0.5F), one);
  const VecF r = x / fma(h, h, one);
  return join_tail(x, least, r * h * h, r);
}

// exp(x) - 1 for x <= 0: near zero by its series, since the subtraction would cancel.
POLYPHASE_INLINE VecF exp_minus_one(VecF x) {
  constexpr float factors[] = {1.0F, 0.5F, 1.66666667e-1F, 4.16666667e-2F, 8.33333333e-3F, 1.38888889e-3F};
  const VecF series = x * polynomial(x, factors);
  return select(less(x, broadcast(-0.3F)), exp_or_zero(x) - broadcast(1.0F), series);
}

// log(1 + e^-|x|) + max(x, 0).
POLYPHASE_INLINE VecF softplus(VecF x) {
  const VecF u = exp_or_zero(broadcast(0.0F) - abs(x));
  return is_nan_select(x, max(broadcast(0.0F), x) + log_one_plus(u));
}

template <EndingKind kind>
POLYPHASE_INLINE VecF rounded(VecF x) {
  uint16_t lanes[vec_width];
  if constexpr (kind == EndingKind::round_f16) {
    store_f16(lanes, x);
    return load_f16(lanes);
  } else {
    store_bf16(lanes, x);
    return load_bf16(lanes);
  }
}

// -1, 0 or 1; a NaN stays.
POLYPHASE_INLINE VecF sign_of(VecF x) {
  const VecF zero = broadcast(0.0F);
  const VecF positive = select(less(zero, x), broadcast(1.0F), zero);
  return is_nan_select(x, select(less(x, zero), broadcast(-1.0F), positive));
}

template <EndingKind kind>
POLYPHASE_INLINE VecF ending_value(VecF x, VecF v, VecF alpha, VecF beta) {
  const VecF zero = broadcast(0.0F);
  if constexpr (kind == EndingKind::keep) return x;
  if constexpr (kind == EndingKind::add) return x + v;
  if constexpr (kind == EndingKind::subtract) return x - v;
  if constexpr (kind == EndingKind::multiply) return x * v;
  if constexpr (kind == EndingKind::prelu) return select(less(x, zero), x * v, x);
  if constexpr (kind == EndingKind::relu) return max(zero, x);
  if constexpr (kind == EndingKind::leaky_relu) return select(less(x, zero), x * alpha, x);
  if constexpr (kind == EndingKind::clip) return min(beta, max(alpha, x));
  if constexpr (kind == EndingKind::sigmoid) return sigmoid(x);
  if constexpr (kind == EndingKind::tanh) return tanh(x);
  if constexpr (kind == EndingKind::silu) return silu(x);
  if constexpr (kind == EndingKind::gelu_erf) return gelu_erf(x);
  if constexpr (kind == EndingKind::gelu_tanh) return gelu_tanh(x);
  if constexpr (kind == EndingKind::hard_sigmoid) return hard_sigmoid(x, alpha, beta);
  if constexpr (kind == EndingKind::hard_swish) {
    // x * min(6, max(0, x + 3)) / 6: exact where the sum is, also near -3.
    return x * min(broadcast(6.0F), max(zero, x + broadcast(3.0F))) / broadcast(6.0F);
  }
  if constexpr (kind == EndingKind::mish) return mish(x);
  if constexpr (kind == EndingKind::elu) return select(less(x, zero), alpha * exp_minus_one(min(zero, x)), x);
  if constexpr (kind == EndingKind::softplus) return softplus(x);
  if constexpr (kind == EndingKind::exp) return exp(x);
  if constexpr (kind == EndingKind::divide) return x / v;
  if constexpr (kind == EndingKind::subtract_from) return v - x;
  if constexpr (kind == EndingKind::divide_into) return v / x;
  if constexpr (kind == EndingKind::minimum) return is_nan_select(x, min(x, v));
  if constexpr (kind == EndingKind::maximum) return is_nan_select(x, max(x, v));
  if constexpr (kind == EndingKind::power) return power(x, v);
  if constexpr (kind == EndingKind::asin) return asin(x);
  if constexpr (kind == EndingKind::acos) return acos(x);
  if constexpr (kind == EndingKind::atan) return atan(x);
  if constexpr (kind == EndingKind::log) return log(x);
  if constexpr (kind == EndingKind::abs) return abs(x);
  if constexpr (kind == EndingKind::negate) return broadcast(-0.0F) - x;
  if constexpr (kind == EndingKind::square) return x * x;
  if constexpr (kind == EndingKind::square_root) return sqrt(x);
  if constexpr (kind == EndingKind::reciprocal) return broadcast(1.0F) / x;
  if constexpr (kind == EndingKind::floor) return floor(x);
  if constexpr (kind == EndingKind::ceil) return zero - floor(zero - x);
  if constexpr (kind == EndingKind::round) return round_nearest(x);
  if constexpr (kind == EndingKind::sign) return sign_of(x);
  if constexpr (kind == EndingKind::sin) return sin(x);
  if constexpr (kind == EndingKind::cos) return cos(x);
  if constexpr (kind == EndingKind::erf) return erf(x);
  if constexpr (kind == EndingKind::softsign) return x / (broadcast(1.0F) + abs(x));
  if constexpr (kind == EndingKind::selu) {
    return beta * select(less(zero, x), x, alpha * exp_minus_one(min(zero, x)));
  }
  if constexpr (kind == EndingKind::celu) return select(less(zero, x), x, alpha * exp_minus_one(min(zero, x / alpha)));
  if constexpr (kind == EndingKind::thresholded_relu) return select(less(alpha, x), x, is_nan_select(x, zero));
  if constexpr (kind == EndingKind::round_f16 || kind == EndingKind::round_bf16) return rounded<kind>(x);
}

// The operand of one step along a run: elements `stride` apart, 0 being a broadcast; that of the next row `row_step`
// elements behind.
struct EndingRun {
  const float* data;
  int64_t stride;
  int64_t row_step = 0;

  POLYPHASE_INLINE VecF at(int64_t i, int n) const {
    if (data == nullptr) return broadcast(0.0F);
    if (stride == 0) return broadcast(*data);
    return stride == 1 ? load_some(data + i, n) : gathered(i, n);
  }
  __attribute__((noinline)) VecF gathered(int64_t i, int n) const {
    float lanes[vec_width] = {};
    for (int j = 0; j < n; ++j) lanes[j] = data[(i + j) * stride];
    return load(lanes);
  }
};

// Rows of as many results: the channels of some pixels of a line.
struct EndingRows {
  int64_t count = 1;
  int64_t step = 0;    // floats from one to the next
  int64_t pixels = 0;  // along the last axis, from one to the next
};

template <EndingKind kind>
inline void run_ending(const EndingStep& step, EndingRun operand, const float* from, float* to, int64_t n,
                       const EndingRows& rows) {
  const VecF alpha = broadcast(step.alpha);
  const VecF beta = broadcast(step.beta);
  constexpr int64_t ahead = 16;  // rows of an image that is added, which are fetched
  const bool fetches = takes_operand(kind) && operand.stride == 1 && operand.row_step != 0;
  for (int64_t row = 0; row < rows.count; ++row) {
    if (fetches && row + ahead < rows.count) prefetch_to_load(operand.data + ahead * operand.row_step, n);
    int64_t i = 0;
    for (; i + vec_width <= n; i += vec_width) {
      store(to + i, ending_value<kind>(load(from + i), operand.at(i, vec_width), alpha, beta));
    }
    if (i < n) {
      const int rest = static_cast<int>(n - i);
      store_first(to + i, ending_value<kind>(load_first(from + i, rest), operand.at(i, rest), alpha, beta), rest);
    }
    from += rows.step;
    to += rows.step;
    operand.data += operand.row_step;
  }
}

// Functions that the C library computes better than a short polynomial would.
inline double (*library_function(EndingKind kind))(double) {
  switch (kind) {
    case EndingKind::tan:
      return std::tan;
    case EndingKind::sinh:
      return std::sinh;
    case EndingKind::cosh:
      return std::cosh;
    case EndingKind::asinh:
      return std::asinh;
    case EndingKind::acosh:
      return std::acosh;
    default:  // atanh, the last of them
      return std::atanh;
  }
}

// The steps that the C library does, number by number.
inline void run_library_ending(EndingKind kind, const float* from, float* to, int64_t n, const EndingRows& rows) {
  double (*const function)(double) = library_function(kind);
  for (int64_t row = 0; row < rows.count; ++row, from += rows.step, to += rows.step) {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(function(static_cast<double>(from[i])));
  }
}

// to[i] = step(from[i]) for 0 <= i < n, and the same of the rows behind; `from` may be `to`.
inline void run_ending(const EndingStep& step, EndingRun operand, const float* from, float* to, int64_t n,
                       const EndingRows& rows = {}) {
  switch (step.kind) {
#define POLYPHASE_ENDING(name) \
  case EndingKind::name:       \
    return run_ending<EndingKind::name>(step, operand, from, to, n, rows);
    POLYPHASE_ENDING(power)
    POLYPHASE_ENDING(asin)
    POLYPHASE_ENDING(acos)
    POLYPHASE_ENDING(atan)
    POLYPHASE_ENDING(add)
    POLYPHASE_ENDING(subtract)
    POLYPHASE_ENDING(multiply)
    POLYPHASE_ENDING(prelu)
    POLYPHASE_ENDING(relu)
    POLYPHASE_ENDING(leaky_relu)
    POLYPHASE_ENDING(clip)
    POLYPHASE_ENDING(sigmoid)
    POLYPHASE_ENDING(tanh)
    POLYPHASE_ENDING(silu)
    POLYPHASE_ENDING(gelu_erf)
    POLYPHASE_ENDING(gelu_tanh)
    POLYPHASE_ENDING(hard_sigmoid)
    POLYPHASE_ENDING(hard_swish)
    POLYPHASE_ENDING(mish)
    POLYPHASE_ENDING(elu)
    POLYPHASE_ENDING(softplus)
    POLYPHASE_ENDING(exp)
    POLYPHASE_ENDING(divide)
    POLYPHASE_ENDING(subtract_from)
    POLYPHASE_ENDING(divide_into)
    POLYPHASE_ENDING(minimum)
    POLYPHASE_ENDING(maximum)
    POLYPHASE_ENDING(keep)
    POLYPHASE_ENDING(log)
    POLYPHASE_ENDING(abs)
    POLYPHASE_ENDING(negate)
    POLYPHASE_ENDING(square)
    POLYPHASE_ENDING(square_root)
    POLYPHASE_ENDING(reciprocal)
    POLYPHASE_ENDING(floor)
    POLYPHASE_ENDING(ceil)
    POLYPHASE_ENDING(round)
    POLYPHASE_ENDING(sign)
    POLYPHASE_ENDING(sin)
    POLYPHASE_ENDING(cos)
    POLYPHASE_ENDING(erf)
    POLYPHASE_ENDING(softsign)
    POLYPHASE_ENDING(selu)
    POLYPHASE_ENDING(celu)
    POLYPHASE_ENDING(thresholded_relu)
    POLYPHASE_ENDING(round_f16)
    POLYPHASE_ENDING(round_bf16)
#undef POLYPHASE_ENDING
    case EndingKind::add_bf16:  // apply_endings' own
      break;
    case EndingKind::tan:
    case EndingKind::sinh:
    case EndingKind::cosh:
    case EndingKind::asinh:
    case EndingKind::acosh:
    case EndingKind::atanh:
      run_library_ending(step.kind, from, to, n, rows);
  }
}

// Where a run of results lies in the output: its first element, in logical coordinates.
struct ResultPlace {
  int64_t batch;
  int64_t channel;
  int64_t axis[3];
};

// Writes from[0..n) to where an operand lies: the memory is the caller's, handed in as the operands are.
inline void keep_values(EndingRun operand, const float* from, int64_t n) {
  float* to = const_cast<float*>(operand.data);
  if (operand.stride == 1) return copy_row(from, to, n);
  for (int64_t i = 0; i < n; ++i) to[i * operand.stride] = from[i];
}

// Of an operand in bf16, elements `stride` apart.
__attribute__((noinline)) inline void add_halves(const uint16_t* from, int64_t stride, float* data, int64_t n) {
  for (int64_t i = 0; i < n; i += vec_width) {
    const int count = lanes_of(n - i);
    uint16_t lanes[vec_width] = {};
    for (int j = 0; j < count && stride != 1; ++j) lanes[j] = from[(i + j) * stride];
    const VecF v = stride == 1 ? load_bf16_first(from + i, count) : load_bf16(lanes);
    store_first(data + i, load_first(data + i, count) + v, count);
  }
}

// Of an operand what belongs to the result at a place.
POLYPHASE_INLINE const float* operand_at(const float* operand, const ImageStrides& s, const ResultPlace& place,
                                         bool in_bf16 = false) {
  const int64_t elements = place.batch * s.batch + place.channel * s.channel + place.axis[0] * s.axis[0] +
                           place.axis[1] * s.axis[1] + place.axis[2] * s.axis[2];
  return in_bf16 ? reinterpret_cast<const float*>(reinterpret_cast<const uint16_t*>(operand) + elements)
                 : operand + elements;
}

// Applies all steps to data[0..n), consecutive channels of one pixel or consecutive pixels (last axis) of one channel,
// and to the rows behind: one step after the other, so that what a step costs by itself is paid once for all rows.
inline void apply_endings(const EndingProgram& program, const float* const* operands, float* data, int64_t n,
                          const ResultPlace& place, bool along_channels, const EndingRows& rows = {}) {
  for (int i = 0; i < program.count; ++i) {
    const EndingStep& step = program.steps[i];
    EndingRun run = {nullptr, 0};
    if (takes_operand(step.kind)) {
      const ImageStrides& s = program.operands[step.operand];
      run.data = operand_at(operands[step.operand], s, place, step.kind == EndingKind::add_bf16);
      run.stride = along_channels ? s.channel : s.axis[2];
      run.row_step = rows.pixels * s.axis[2];
    }
    if (step.kind == EndingKind::add_bf16) {
      const auto* halves = reinterpret_cast<const uint16_t*>(run.data);
      for (int64_t row = 0; row < rows.count; ++row, halves += run.row_step)
        add_halves(halves, run.stride, data + row * rows.step, n);
    } else if (step.kind == EndingKind::keep) {
      for (int64_t row = 0; row < rows.count; ++row, run.data += run.row_step)
        keep_values(run, data + row * rows.step, n);
    } else {
      run_ending(step, run, data, data, n, rows);
    }
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

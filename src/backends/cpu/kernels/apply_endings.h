// Runs an ending program over a run of results, along the channels of one pixel or along the pixels of one channel.
#pragma once

#include <cmath>
#include <cstdint>

#include "backends/cpu/kernels/endings.h"
#include "backends/cpu/simd/math.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

POLYPHASE_INLINE VecF hard_sigmoid(VecF x, VecF alpha, VecF beta) {
  return min(broadcast(1.0F), max(broadcast(0.0F), fma(x, alpha, beta)));
}

// x * ((1 + e^x)^2 - 1) / ((1 + e^x)^2 + 1), which is x * tanh(log(1 + e^x)); for x > 20 it is x.
POLYPHASE_INLINE VecF mish(VecF x) {
  const VecF e = exp(min(broadcast(20.0F), x));
  const VecF n = e * (e + broadcast(2.0F));
  return is_nan_select(x, select(less(broadcast(20.0F), x), x, x * n / (n + broadcast(2.0F))));
}

// exp(x) - 1 for x <= 0: near zero by its series, since the subtraction would cancel.
POLYPHASE_INLINE VecF exp_minus_one(VecF x) {
  constexpr float kSeries[] = {1.0F, 0.5F, 1.66666667e-1F, 4.16666667e-2F, 8.33333333e-3F, 1.38888889e-3F};
  const VecF series = x * polynomial(x, kSeries);
  return select(less(x, broadcast(-0.3F)), exp(x) - broadcast(1.0F), series);
}

// log(1 + e^-|x|) + max(x, 0), with log(1 + u) = log(w) * u / (w - 1) for w = 1 + u, which undoes the rounding of w.
POLYPHASE_INLINE VecF softplus(VecF x) {
  const VecF one = broadcast(1.0F);
  const VecF u = exp(broadcast(0.0F) - abs(x));
  const VecF w = one + u;
  const VecF log_w = select(equal(w, one), u, log(w) * u / select(equal(w, one), one, w - one));
  return is_nan_select(x, max(broadcast(0.0F), x) + log_w);
}

// f on each lane; for what the C library does better than a short polynomial.
template <class F>
POLYPHASE_INLINE VecF map_lanes(VecF x, VecF v, F&& f) {
  float xs[kVecWidth];
  float vs[kVecWidth];
  store(xs, x);
  store(vs, v);
  for (int i = 0; i < kVecWidth; ++i)
    xs[i] = static_cast<float>(f(static_cast<double>(xs[i]), static_cast<double>(vs[i])));
  return load(xs);
}

template <EndingKind kind>
POLYPHASE_INLINE VecF library_value(VecF x, VecF v) {
  if constexpr (kind == EndingKind::kPower) return map_lanes(x, v, [](double a, double b) { return std::pow(a, b); });
  if constexpr (kind == EndingKind::kTan) return map_lanes(x, v, [](double a, double) { return std::tan(a); });
  if constexpr (kind == EndingKind::kAsin) return map_lanes(x, v, [](double a, double) { return std::asin(a); });
  if constexpr (kind == EndingKind::kAcos) return map_lanes(x, v, [](double a, double) { return std::acos(a); });
  if constexpr (kind == EndingKind::kAtan) return map_lanes(x, v, [](double a, double) { return std::atan(a); });
  if constexpr (kind == EndingKind::kSinh) return map_lanes(x, v, [](double a, double) { return std::sinh(a); });
  if constexpr (kind == EndingKind::kCosh) return map_lanes(x, v, [](double a, double) { return std::cosh(a); });
  if constexpr (kind == EndingKind::kAsinh) return map_lanes(x, v, [](double a, double) { return std::asinh(a); });
  if constexpr (kind == EndingKind::kAcosh) return map_lanes(x, v, [](double a, double) { return std::acosh(a); });
  if constexpr (kind == EndingKind::kAtanh) return map_lanes(x, v, [](double a, double) { return std::atanh(a); });
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
  const VecF half = broadcast(0.5F);
  if constexpr (kind == EndingKind::kAdd) return x + v;
  if constexpr (kind == EndingKind::kSubtract) return x - v;
  if constexpr (kind == EndingKind::kMultiply) return x * v;
  if constexpr (kind == EndingKind::kPrelu) return select(less(x, zero), x * v, x);
  if constexpr (kind == EndingKind::kRelu) return max(zero, x);
  if constexpr (kind == EndingKind::kLeakyRelu) return select(less(x, zero), x * alpha, x);
  if constexpr (kind == EndingKind::kClip) return min(beta, max(alpha, x));
  if constexpr (kind == EndingKind::kSigmoid) return sigmoid(x);
  if constexpr (kind == EndingKind::kTanh) return tanh(x);
  if constexpr (kind == EndingKind::kSilu) return x * sigmoid(x);
  if constexpr (kind == EndingKind::kGeluErf) return half * x * (broadcast(1.0F) + erf(x * broadcast(0.707106781F)));
  if constexpr (kind == EndingKind::kGeluTanh) {
    const VecF inner = broadcast(0.797884561F) * fma(x * x * x, broadcast(0.044715F), x);
    return half * x * (broadcast(1.0F) + tanh(inner));
  }
  if constexpr (kind == EndingKind::kHardSigmoid) return hard_sigmoid(x, alpha, beta);
  if constexpr (kind == EndingKind::kHardSwish) {
    // x * min(6, max(0, x + 3)) / 6: exact where the sum is, also near -3.
    return x * min(broadcast(6.0F), max(zero, x + broadcast(3.0F))) / broadcast(6.0F);
  }
  if constexpr (kind == EndingKind::kMish) return mish(x);
  if constexpr (kind == EndingKind::kElu) return select(less(x, zero), alpha * exp_minus_one(min(zero, x)), x);
  if constexpr (kind == EndingKind::kSoftplus) return softplus(x);
  if constexpr (kind == EndingKind::kExp) return exp(x);
  if constexpr (kind == EndingKind::kDivide) return x / v;
  if constexpr (kind == EndingKind::kSubtractFrom) return v - x;
  if constexpr (kind == EndingKind::kDivideInto) return v / x;
  if constexpr (kind == EndingKind::kMinimum) return is_nan_select(x, min(x, v));
  if constexpr (kind == EndingKind::kMaximum) return is_nan_select(x, max(x, v));
  if constexpr (kind == EndingKind::kLog) return log(x);
  if constexpr (kind == EndingKind::kAbs) return abs(x);
  if constexpr (kind == EndingKind::kNegate) return broadcast(-0.0F) - x;
  if constexpr (kind == EndingKind::kSquareRoot) return sqrt(x);
  if constexpr (kind == EndingKind::kReciprocal) return broadcast(1.0F) / x;
  if constexpr (kind == EndingKind::kFloor) return floor(x);
  if constexpr (kind == EndingKind::kCeil) return zero - floor(zero - x);
  if constexpr (kind == EndingKind::kRound) return round_nearest(x);
  if constexpr (kind == EndingKind::kSign) return sign_of(x);
  if constexpr (kind == EndingKind::kSin) return sin(x);
  if constexpr (kind == EndingKind::kCos) return cos(x);
  if constexpr (kind == EndingKind::kErf) return erf(x);
  if constexpr (kind == EndingKind::kSoftsign) return x / (broadcast(1.0F) + abs(x));
  if constexpr (kind == EndingKind::kSelu) {
    return beta * select(less(zero, x), x, alpha * exp_minus_one(min(zero, x)));
  }
  if constexpr (kind == EndingKind::kCelu) return select(less(zero, x), x, alpha * exp_minus_one(min(zero, x / alpha)));
  if constexpr (kind == EndingKind::kThresholdedRelu) return select(less(alpha, x), x, is_nan_select(x, zero));
  if constexpr (kind == EndingKind::kPower || kind >= EndingKind::kTan) return library_value<kind>(x, v);
}

// The operand of one step along a run: elements `stride` apart, 0 being a broadcast.
struct EndingRun {
  const float* data;
  int64_t stride;

  POLYPHASE_INLINE VecF at(int64_t i, int n) const {
    if (data == nullptr) return broadcast(0.0F);
    if (stride == 0) return broadcast(*data);
    if (stride == 1) return n == kVecWidth ? load(data + i) : load_first(data + i, n);
    float lanes[kVecWidth] = {};
    for (int j = 0; j < n; ++j) lanes[j] = data[(i + j) * stride];
    return load(lanes);
  }
};

template <EndingKind kind>
inline void run_ending(const EndingStep& step, EndingRun operand, const float* from, float* to, int64_t n) {
  const VecF alpha = broadcast(step.alpha);
  const VecF beta = broadcast(step.beta);
  int64_t i = 0;
  for (; i + kVecWidth <= n; i += kVecWidth) {
    store(to + i, ending_value<kind>(load(from + i), operand.at(i, kVecWidth), alpha, beta));
  }
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    store_first(to + i, ending_value<kind>(load_first(from + i, rest), operand.at(i, rest), alpha, beta), rest);
  }
}

// to[i] = step(from[i]) for 0 <= i < n; `from` may be `to`.
inline void run_ending(const EndingStep& step, EndingRun operand, const float* from, float* to, int64_t n) {
  switch (step.kind) {
#define POLYPHASE_ENDING(name) \
  case EndingKind::name:       \
    return run_ending<EndingKind::name>(step, operand, from, to, n);
    POLYPHASE_ENDING(kAdd)
    POLYPHASE_ENDING(kSubtract)
    POLYPHASE_ENDING(kMultiply)
    POLYPHASE_ENDING(kPrelu)
    POLYPHASE_ENDING(kRelu)
    POLYPHASE_ENDING(kLeakyRelu)
    POLYPHASE_ENDING(kClip)
    POLYPHASE_ENDING(kSigmoid)
    POLYPHASE_ENDING(kTanh)
    POLYPHASE_ENDING(kSilu)
    POLYPHASE_ENDING(kGeluErf)
    POLYPHASE_ENDING(kGeluTanh)
    POLYPHASE_ENDING(kHardSigmoid)
    POLYPHASE_ENDING(kHardSwish)
    POLYPHASE_ENDING(kMish)
    POLYPHASE_ENDING(kElu)
    POLYPHASE_ENDING(kSoftplus)
    POLYPHASE_ENDING(kExp)
    POLYPHASE_ENDING(kDivide)
    POLYPHASE_ENDING(kSubtractFrom)
    POLYPHASE_ENDING(kDivideInto)
    POLYPHASE_ENDING(kMinimum)
    POLYPHASE_ENDING(kMaximum)
    POLYPHASE_ENDING(kPower)
    POLYPHASE_ENDING(kLog)
    POLYPHASE_ENDING(kAbs)
    POLYPHASE_ENDING(kNegate)
    POLYPHASE_ENDING(kSquareRoot)
    POLYPHASE_ENDING(kReciprocal)
    POLYPHASE_ENDING(kFloor)
    POLYPHASE_ENDING(kCeil)
    POLYPHASE_ENDING(kRound)
    POLYPHASE_ENDING(kSign)
    POLYPHASE_ENDING(kSin)
    POLYPHASE_ENDING(kCos)
    POLYPHASE_ENDING(kErf)
    POLYPHASE_ENDING(kSoftsign)
    POLYPHASE_ENDING(kSelu)
    POLYPHASE_ENDING(kCelu)
    POLYPHASE_ENDING(kThresholdedRelu)
    POLYPHASE_ENDING(kTan)
    POLYPHASE_ENDING(kAsin)
    POLYPHASE_ENDING(kAcos)
    POLYPHASE_ENDING(kAtan)
    POLYPHASE_ENDING(kSinh)
    POLYPHASE_ENDING(kCosh)
    POLYPHASE_ENDING(kAsinh)
    POLYPHASE_ENDING(kAcosh)
    POLYPHASE_ENDING(kAtanh)
#undef POLYPHASE_ENDING
  }
}

// Where a run of results lies in the output: its first element, in logical coordinates.
struct ResultPlace {
  int64_t batch;
  int64_t channel;
  int64_t axis[3];
};

// Applies all steps to data[0..n), consecutive channels of one pixel or consecutive pixels (last axis) of one channel.
inline void apply_endings(const EndingProgram& program, const float* const* operands, float* data, int64_t n,
                          const ResultPlace& place, bool along_channels) {
  for (int i = 0; i < program.count; ++i) {
    const EndingStep& step = program.steps[i];
    EndingRun run = {nullptr, 0};
    if (takes_operand(step.kind)) {
      const ImageStrides& s = program.operands[step.operand];
      run.data = operands[step.operand] + place.batch * s.batch + place.channel * s.channel +
                 place.axis[0] * s.axis[0] + place.axis[1] * s.axis[1] + place.axis[2] * s.axis[2];
      run.stride = along_channels ? s.channel : s.axis[2];
    }
    run_ending(step, run, data, data, n);
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

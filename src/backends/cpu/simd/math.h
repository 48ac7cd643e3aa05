// Elementary functions on vectors of floats: exp, log, power, tanh, sigmoid, erf, sin, cos, asin, acos, atan; about 1
// to 2 ulp over the whole range.
//
// Each one reduces its argument to a short interval and evaluates a polynomial there, minimax or a series. NaN stays
// NaN.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// c[0] + x*(c[1] + x*(c[2] + ...))
template <size_t n>
POLYPHASE_INLINE VecF polynomial(VecF x, const float (&c)[n]) {
  VecF r = broadcast(c[n - 1]);
  for (size_t i = n - 1; i-- > 0;) r = fma(r, x, broadcast(c[i]));
  return r;
}

// The same, even and odd powers by themselves: a chain half as long, and a rounding more.
template <size_t n>
POLYPHASE_INLINE VecF polynomial_by_parity(VecF x, const float (&c)[n]) {
  static_assert(n % 2 == 0);
  const VecF t = x * x;
  VecF even = broadcast(c[n - 2]);
  VecF odd = broadcast(c[n - 1]);
  for (size_t i = n - 2; i > 0; i -= 2) {
    even = fma(even, t, broadcast(c[i - 2]));
    odd = fma(odd, t, broadcast(c[i - 1]));
  }
  return fma(odd, x, even);
}

POLYPHASE_INLINE VecF is_nan_select(VecF x, VecF otherwise) { return select(equal(x, x), otherwise, x); }

POLYPHASE_INLINE VecF copy_sign(VecF magnitude, VecF sign) {
  return as_float((as_int(magnitude) & broadcast(0x7fffffff)) | (as_int(sign) & broadcast(INT32_MIN)));
}

// 2^n for integer lanes -126 <= n <= 127.
POLYPHASE_INLINE VecF power_of_two(VecI n) { return as_float(shift_left<23>(n + broadcast(127))); }

// x * 2^n for whole numbers n, -252 <= n <= 254, rounded where it is subnormal.
POLYPHASE_INLINE VecF scale(VecF x, VecF n) {
#if POLYPHASE_SIMD_ID == 2
  return {_mm512_scalef_ps(x.v, n.v)};
#else
  const VecF half = floor(n * broadcast(0.5F));
  return x * power_of_two(to_int(half)) * power_of_two(to_int(n - half));
#endif
}

// exp(x) = 2^n * exp(r), |r| <= ln(2)/2. The bounds are taken such that NaN passes them.
POLYPHASE_INLINE VecF exp(VecF x) {
  const VecF bounded = min(broadcast(89.0F), max(broadcast(-105.0F), x));
  const VecF n = round_nearest(bounded * broadcast(1.44269504F));
  VecF r = fma(n, broadcast(-0.693359375F), bounded);
  r = fma(n, broadcast(2.12194440e-4F), r);
  constexpr float tail[] = {0.5F, 0.16666574F, 0.04166686F, 0.00836373F, 0.00139015F};
  return scale(fma(r * r, polynomial(r, tail), r) + broadcast(1.0F), n);
}

// exp(x) for -87.3365 <= x <= 88, where a power of two is one shift: adding 1.5 * 2^23 rounds to n and leaves n + 127
// in the lowest bits. Half the chain of exp, which what waits for it (activations) takes half of its time with.
POLYPHASE_INLINE VecF exp_bounded(VecF x) {
  const VecF rounding = broadcast(12582912.0F + 127.0F);
  const VecF biased = fma(x, broadcast(1.44269504F), rounding);
  const VecF n = biased - rounding;
  VecF r = fma(n, broadcast(-0.693359375F), x);
  r = fma(n, broadcast(2.12194440e-4F), r);
  const VecF t = r * r;
  const VecF low = fma(r, broadcast(0.16666574F), broadcast(0.5F));
  const VecF high = fma(t, broadcast(0.00139015F), fma(r, broadcast(0.00836373F), broadcast(0.04166686F)));
  return (fma(t, fma(t, high, low), r) + broadcast(1.0F)) * as_float(shift_left<23>(as_int(biased)));
}

// exp(x) where some of it lies beyond the bound above.
inline __attribute__((noinline)) VecF exp_far_above(VecF x) { return exp(x); }

// exp(x), 0 where that would be subnormal: whatever makes or reads such numbers takes a hundred times as long, and
// beside 1 they are nothing.
constexpr float least_normal_exponent = -87.33654F;
POLYPHASE_INLINE VecF exp_or_zero(VecF x) {
  const VecF least = broadcast(least_normal_exponent);
  const Mask below = less(x, least);
  const VecF bounded = max(least, x);
  const VecF e = any(less(broadcast(88.0F), x)) ? exp_far_above(bounded) : exp_bounded(bounded);
  return select(below, broadcast(0.0F), e);
}

// (log(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) - 1 <= f < sqrt(2) - 1.
POLYPHASE_INLINE VecF log_tail(VecF f) {
  constexpr float tail[] = {0.33333331F,  -0.24999994F, 0.20000715F,  -0.16668054F, 0.14249297F,
                            -0.12420228F, 0.11677382F,  -0.11514077F, 0.07035812F};
  return polynomial(f, tail);
}

// x = 2^exponent * mantissa, sqrt(1/2) <= mantissa < sqrt(2), for finite x > 0; subnormals are scaled up first.
struct Parts {
  VecF exponent;
  VecF mantissa;
};
POLYPHASE_INLINE Parts parts_of(VecF x) {
  const Mask tiny = less(x, broadcast(1.17549435e-38F));
  const VecF scaled = select(tiny, x * broadcast(0x1p24F), x);
  const VecI bits = as_int(scaled) - broadcast(0x3f3504f3);  // places the split of the exponent at sqrt(1/2)
  const VecI biased = shift_right_logical<23>(bits + broadcast(0x40000000));  // the exponent + 128
  const VecF exponent = to_float(biased - broadcast(128)) - select(tiny, broadcast(24.0F), broadcast(0.0F));
  return {exponent, as_float((bits & broadcast(0x007fffff)) + broadcast(0x3f3504f3))};
}

// log(x) = e*ln(2) + log(m) of x's parts; log(0) = -inf, log(x < 0) = NaN.
POLYPHASE_INLINE VecF log(VecF x) {
  const auto [e, m] = parts_of(x);
  const VecF f = m - broadcast(1.0F);
  VecF low = fma(e, broadcast(-2.12194440e-4F), f * f * f * log_tail(f));
  low = fma(f * f, broadcast(-0.5F), low);
  VecF result = fma(e, broadcast(0.693359375F), low + f);
  const VecF infinity = broadcast(std::numeric_limits<float>::infinity());
  result = select(equal(x, infinity), infinity, result);
  result = select(equal(x, broadcast(0.0F)), broadcast(0.0F) - infinity, result);
  result = select(less(x, broadcast(0.0F)), broadcast(std::numeric_limits<float>::quiet_NaN()), result);
  return is_nan_select(x, result);
}

// A number in two floats, whose sum it is: the second holds what the first leaves out. Dekker, A floating-point
// technique for extending the available precision, Numerische Mathematik 18 (1971). What is held is not multiplied and
// added in one, which would round less than the second float says.
struct TwoFloats {
  VecF high;
  VecF low;
};

// a + b where a is no smaller.
POLYPHASE_INLINE TwoFloats exact_sum(VecF a, VecF b) {
  hold(b);
  VecF high = a + b;
  hold(high);
  return {high, (a - high) + b};
}

POLYPHASE_INLINE TwoFloats exact_product(VecF a, VecF b) {
  VecF high = a * b;
  hold(high);
  return {high, product_error(a, b)};
}

// log2(x) = e + 2 / ln(2) * artanh(s), s = (m - 1) / (m + 1) of x's parts, to some 2^-34 of it. The first two factors
// of the series, and sums and products of its first two terms, are in two floats.
POLYPHASE_INLINE TwoFloats log2_in_two(VecF x) {
  const VecF one = broadcast(1.0F);
  const auto [e, m] = parts_of(x);
  const VecF above = m - one;
  const VecF below = m + one;
  const VecF left_out = m - (below - one);
  const VecF s = above / below;
  const TwoFloats undone = exact_product(s, below);
  const VecF s_low = ((above - undone.high) - undone.low - s * left_out) / below;
  const TwoFloats square = exact_product(s, s);
  constexpr float tail[] = {0.577078016F, 0.412198583F, 0.320598898F, 0.262308189F, 0.221953083F};
  TwoFloats third = exact_sum(broadcast(0.961796701F), square.high * polynomial(square.high, tail));
  third.low = third.low + broadcast(-7.0284617e-9F);
  const TwoFloats beside = exact_product(square.high, third.high);
  TwoFloats factor = exact_sum(broadcast(2.88539004F), beside.high);
  const VecF square_low = fma(broadcast(2.0F) * s, s_low, square.low);
  factor.low =
      factor.low + broadcast(3.85192598e-8F) + (beside.low + fma(square.high, third.low, square_low * third.high));
  const TwoFloats fraction = exact_product(s, factor.high);
  TwoFloats result = exact_sum(e, fraction.high);
  result.low = result.low + (fraction.low + fma(s, factor.low, s_low * factor.high));
  return result;
}

// x to the y = 2^(y * log2 |x|), with the sign of x where y is odd; special values as C's pow has them (IEEE 754,
// 9.2.1).
POLYPHASE_INLINE VecF power(VecF x, VecF y) {
  const VecF zero = broadcast(0.0F);
  const VecF one = broadcast(1.0F);
  const VecF infinity = broadcast(std::numeric_limits<float>::infinity());
  const VecF a = abs(x);
  const TwoFloats logarithm = log2_in_two(a);
  const TwoFloats exponent = exact_product(y, logarithm.high);
  const VecF low = fma(y, logarithm.low, exponent.low);
  const VecF bounded = min(broadcast(200.0F), max(broadcast(-200.0F), exponent.high));
  const VecF n = round_nearest(bounded);
  const VecF r = (bounded - n) + select(less(abs(exponent.high), broadcast(200.0F)), low, zero);
  constexpr float tail[] = {0.693147181F,   0.240226507F,   5.55041087e-2F, 9.61812911e-3F,
                            1.33335581e-3F, 1.54035304e-4F, 1.52527338e-5F};
  VecF result = scale(fma(r, polynomial(r, tail), one), n);
  const Mask grows = less(zero, y);
  result = select(equal(a, zero), select(grows, zero, infinity), result);
  result = select(equal(a, infinity), select(grows, infinity, zero), result);
  result = select(equal(a, one), one, result);
  const VecF half = y * broadcast(0.5F);
  const Mask is_whole = equal(floor(y), y);
  const VecF signs = select(equal(floor(half), half), zero, select(is_whole, x, zero));
  result = copy_sign(result, signs);
  const VecF of_fraction = select(equal(a, infinity), result, broadcast(std::numeric_limits<float>::quiet_NaN()));
  result = select(less(x, zero), select(is_whole, result, of_fraction), result);
  result = is_nan_select(y, is_nan_select(x, result));
  return select(equal(y, zero), one, select(equal(x, one), one, result));
}

// log(1 + u) for 0 <= u <= 1, which is log(2) + log(1 + (u - 1) / 2) from sqrt(2) on. No square of u by itself, which
// may be subnormal.
POLYPHASE_INLINE VecF log_one_plus(VecF u) {
  const Mask small = less(u, broadcast(0.414213562F));
  const VecF f = select(small, u, fma(u, broadcast(0.5F), broadcast(-0.5F)));
  const VecF part = fma(f, fma(f, log_tail(f), broadcast(-0.5F)), broadcast(1.0F));
  return fma(f, part, select(small, broadcast(0.0F), broadcast(0.693147181F)));
}

POLYPHASE_INLINE VecF tanh(VecF x) {
  const VecF a = abs(x);
  const VecF t = x * x;
  constexpr float small[] = {-0.33333328F, 0.13332719F, -0.05384331F, 0.02096151F, -0.00604539F};
  const VecF near_zero = fma(x * t, polynomial(t, small), x);
  const VecF e = exp_bounded(min(broadcast(10.0F), a) * broadcast(2.0F));
  const VecF far = broadcast(1.0F) - broadcast(2.0F) / (e + broadcast(1.0F));
  return select(less(a, broadcast(0.625F)), near_zero, copy_sign(far, x));
}

// 0 where 1 / (1 + exp(-x)) would be subnormal, or nearly.
POLYPHASE_INLINE VecF sigmoid(VecF x) {
  const VecF most = broadcast(-least_normal_exponent);
  const VecF lower = broadcast(least_normal_exponent);
  const VecF e = exp_bounded(min(most, max(lower, broadcast(0.0F) - x)));
  return select(less(x, lower), broadcast(0.0F), broadcast(1.0F) / (broadcast(1.0F) + e));
}

// |x| < 1: x * P(x^2). Beyond: 1 - exp(-Q(|x|)), which is 1 in FP32 from |x| = 3.92 on.
POLYPHASE_INLINE VecF erf(VecF x) {
  const VecF a = min(broadcast(4.0F), abs(x));
  const VecF t = a * a;
  constexpr float small[] = {1.12837917F,     -3.76126384e-01F, 1.12837820e-01F, -2.68654000e-02F,
                             5.22094545e-03F, -8.48282908e-04F, 1.12569496e-04F, -9.64152105e-06F};
  constexpr float large[] = {-2.93987606e-04F, 1.13013045F,      6.31996942e-01F, 1.09923803e-01F, -2.63348218e-02F,
                             4.73004923e-03F,  -5.90669230e-04F, 4.53495003e-05F, -1.60224952e-06F};
  const VecF near_zero = a * polynomial(t, small);
  const VecF far = broadcast(1.0F) - exp_bounded(broadcast(0.0F) - polynomial(a, large));
  return copy_sign(select(less(a, broadcast(1.0F)), near_zero, far), x);
}

// atan(|x|) = pi/4 * k + atan(t): t = x up to tan(pi/8), (x - 1) / (x + 1) up to tan(3/8 pi), -1 / x beyond.
POLYPHASE_INLINE VecF atan(VecF x) {
  const VecF a = abs(x);
  const VecF one = broadcast(1.0F);
  const Mask middle = less(broadcast(0.414213562F), a);
  const Mask far = less(broadcast(2.41421356F), a);
  const VecF above = select(far, broadcast(-1.0F), select(middle, a - one, a));
  const VecF below = select(far, a, select(middle, a + one, one));
  const VecF k = select(far, broadcast(2.0F), select(middle, one, broadcast(0.0F)));
  const VecF t = above / below;
  const VecF z = t * t;
  constexpr float tail[] = {-0.333333164F, 0.199984714F, -0.142435327F, 0.105938129F, -0.0607821941F};
  const VecF beside = fma(t * z, polynomial(z, tail), k * broadcast(-2.18556941e-8F));
  const VecF value = fma(k, broadcast(0.785398185F), t + beside);
  return is_nan_select(x, copy_sign(value, x));
}

// (asin(s) - s) / s for z = s^2 up to 1/4.
POLYPHASE_INLINE VecF arcsine_tail(VecF z) {
  constexpr float tail[] = {0.166667521F, 0.0749529749F, 0.0454703793F, 0.0241795033F, 0.0421663299F};
  return z * polynomial(z, tail);
}

// Beyond 1/2 asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)). NaN beyond 1.
template <bool cosine>
POLYPHASE_INLINE VecF arcsine(VecF x) {
  const VecF a = abs(x);
  const Mask near = less_equal(a, broadcast(0.5F));
  const VecF z = select(near, a * a, fma(a, broadcast(-0.5F), broadcast(0.5F)));
  const VecF s = select(near, a, sqrt(z));
  const VecF beside = s * arcsine_tail(z);
  const VecF angle = s + beside;
  const auto from_quarters = [&](float quarters, VecF first, VecF second) POLYPHASE_INLINE_LAMBDA {
    const TwoFloats rest = exact_sum(broadcast(1.57079637F * quarters), broadcast(0.0F) - first);
    return rest.high + (rest.low + (broadcast(-4.37113883e-8F * quarters) - second));
  };
  if constexpr (cosine) {
    const VecF inside = from_quarters(1, copy_sign(s, x), copy_sign(beside, x));
    const VecF below = from_quarters(2, s + s, beside + beside);
    return select(near, inside, select(less(x, broadcast(0.0F)), below, angle + angle));
  }
  return copy_sign(select(near, angle, from_quarters(1, s + s, beside + beside)), x);
}

POLYPHASE_INLINE VecF asin(VecF x) { return arcsine<false>(x); }
POLYPHASE_INLINE VecF acos(VecF x) { return arcsine<true>(x); }

// sin and cos share the reduction x = q*pi/2 + r, |r| <= pi/4, with pi/2 in three parts: good to |x| < 8192; larger
// arguments, which networks do not produce, go lane by lane through the C library.
template <bool cosine>
POLYPHASE_INLINE VecF sine(VecF x) {
  if (any(less_equal(broadcast(8192.0F), abs(x)))) {
    float lanes[vec_width];
    store(lanes, x);
    for (float& lane : lanes) lane = cosine ? std::cos(lane) : std::sin(lane);
    return load(lanes);
  }
  const VecF q = round_nearest(x * broadcast(0.636619772F));
  VecF r = fma(q, broadcast(-1.5703125F), x);
  r = fma(q, broadcast(-4.83751296997e-4F), r);
  r = fma(q, broadcast(-7.54978994e-8F), r);
  const VecI quadrant = to_int(q) + broadcast(cosine ? 1 : 0);
  const VecF t = r * r;
  constexpr float sin_tail[] = {-0.16666665F, 0.00833274F, -0.00019586F};
  constexpr float cos_tail[] = {4.16666646e-02F, -1.38882950e-03F, 2.45463159e-05F};
  const VecF s = fma(r * t, polynomial(t, sin_tail), r);
  const VecF c = fma(t * t, polynomial(t, cos_tail), fma(t, broadcast(-0.5F), broadcast(1.0F)));
  const VecF use_cos = to_float(quadrant & broadcast(1));
  const VecF value = select(equal(use_cos, broadcast(1.0F)), c, s);
  return as_float(as_int(value) + shift_left<30>(quadrant & broadcast(2)));  // bit 1 of the quadrant flips the sign
}

POLYPHASE_INLINE VecF sin(VecF x) { return sine<false>(x); }
POLYPHASE_INLINE VecF cos(VecF x) { return sine<true>(x); }

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

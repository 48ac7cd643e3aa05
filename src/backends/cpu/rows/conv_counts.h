// What the estimates of convolution kernels count alike.
#pragma once

#include <algorithm>

#include "backends/cpu/kernels/conv_shape.h"

namespace polyphase::cpu {

constexpr double ns = 1e-9;
constexpr int avx512_width = 16;

template <class... Factors>
inline double product_of_factors(Factors... factors) {
  return (1.0 * ... * static_cast<double>(factors));
}

inline double points_of(const int64_t (&extents)[3]) { return product_of_factors(extents[0], extents[1], extents[2]); }

inline double elements_read(const ConvShape& s) {
  return product_of_factors(s.batch, s.groups, s.in_channels) * points_of(s.in);
}
inline double elements_written(const ConvShape& s) {
  return product_of_factors(s.batch, s.groups, s.out_channels) * points_of(s.out);
}

inline double bytes_of_images(const ConvShape& s) {
  return static_cast<double>(size_bytes(s.types.in)) * elements_read(s) +
         static_cast<double>(size_bytes(s.types.out)) * elements_written(s);
}

// Nanoseconds of an element that is not stored as it is multiplied or summed up.
struct ConversionFactors {
  double widened;   // to f32
  double rounded;   // of f32, to bf16
  double narrowed;  // a result
};
// Of f32 kernels, a guess, which was not fitted.
inline constexpr ConversionFactors of_floats = {.widened = 0.03, .rounded = 0, .narrowed = 0.1};

inline double conversion_seconds(const ConvShape& s, const ConversionFactors& by) {
  const bool in_pairs = s.products == Products::pairs;
  const double of_read = is_narrow(s.types.in) ? by.widened : in_pairs ? by.rounded : 0;
  return (of_read * elements_read(s) + (is_narrow(s.types.out) ? by.narrowed * elements_written(s) : 0)) * ns;
}

// Of packed weights what lies behind the second-level cache.
inline double weights_beyond(double bytes) {
  constexpr double bytes_near = 512e3;
  return std::max(0.0, bytes - bytes_near);
}

// To fetch them once: what little else there is to do for few pixels does not hide it all, and though a layer alone
// would find them in the third-level cache, the other layers of a network may have pushed them out. Twice as much, the
// memory's rate, had cost networks whose weights do come from memory up to half of their time (40 layers of 17 MB each:
// 3.7 ms a layer, now 2.4), as products hide most of it. Of a layer that no such cache holds, each byte beyond it takes
// `beyond` nanoseconds more.
inline double weights_seconds(double bytes, double beyond) {
  constexpr double of_byte = 0.025;
  constexpr double bytes_held = 32e6;
  return (of_byte * weights_beyond(bytes) + beyond * std::max(0.0, bytes - bytes_held)) * ns;
}

// In floats that counts for more than its time: filtering enlarges weights by half, and where a layer reads so many for
// few pixels it gains little or nothing for the memory (1024 to 1536 channels of 7 taps at 40 pixels: 63 MB instead of
// 44, and the same time on Zen 3 and on Emerald Rapids).
constexpr double float_beyond(int width) { return width == avx512_width ? 0.06 : 0.15; }
constexpr double pair_beyond = 0.03;

inline double bytes_beyond_caches(const ConvShape& s) {
  constexpr double bytes_in_caches = 8e6;
  return std::max(0.0, bytes_of_images(s) - bytes_in_caches);
}

}  // namespace polyphase::cpu

// What the estimates of convolution kernels count alike.
#pragma once

#include <algorithm>

#include "backends/cpu/kernels/conv_shape.h"

namespace polyphase::cpu {

constexpr double ns = 1e-9;

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

// Of narrow images, which f32 kernels widen as they copy them and round as they store them: a
// guess, which was not fitted.
inline double conversion_seconds(const ConvShape& s) {
  constexpr double widened = 0.03;
  constexpr double narrowed = 0.1;
  return ((is_narrow(s.types.in) ? widened * elements_read(s) : 0) +
          (is_narrow(s.types.out) ? narrowed * elements_written(s) : 0)) *
         ns;
}

inline double bytes_beyond_caches(const ConvShape& s) {
  constexpr double bytes_in_caches = 8e6;
  return std::max(0.0, bytes_of_images(s) - bytes_in_caches);
}

}  // namespace polyphase::cpu

// Images as they are stored, in FP32 or half as wide: kernels widen what they copy in, and narrow what they copy out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/convert.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/transpose.h"
#include "base/dtype.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Pixels and channels that are widened or narrowed at once: they stay in the first-level cache.
inline constexpr int64_t converted_pixels = 64;

// From some element of an image on.
template <class Byte, class Float>
struct StoredElements {
  Byte* data;
  DType type;

  StoredElements(Float* elements, DType stored) : data(reinterpret_cast<Byte*>(elements)), type(stored) {}
  StoredElements(Byte* at, DType stored) : data(at), type(stored) {}
  bool wide() const { return type == DType::f32; }
  Float* floats() const { return reinterpret_cast<Float*>(data); }  // where they are wide
  StoredElements operator+(int64_t elements) const {
    return {data + elements * static_cast<int64_t>(wide() ? sizeof(float) : sizeof(uint16_t)), type};
  }
};
using StoredImage = StoredElements<const std::byte, const float>;
using StoredResult = StoredElements<std::byte, float>;

// to[p * to_pitch + c] = from[c * pitch + p]
inline void turn_to_pixels(StoredImage from, int64_t pitch, float* to, int64_t to_pitch, int64_t channels,
                           int64_t pixels) {
  if (from.wide()) return transpose(from.floats(), pitch, to, to_pitch, channels, pixels);
  float wide[vec_width * converted_pixels];
  for (int64_t c = 0; c < channels; c += vec_width) {
    const int64_t height = std::min<int64_t>(vec_width, channels - c);
    for (int64_t p = 0; p < pixels; p += converted_pixels) {
      const int64_t count = std::min(converted_pixels, pixels - p);
      for (int64_t k = 0; k < height; ++k)
        load_elements(from.type, (from + ((c + k) * pitch + p)).data, 1, wide + k * converted_pixels, count);
      transpose(wide, converted_pixels, to + p * to_pitch + c, to_pitch, height, count);
    }
  }
}

// to[c * to_pitch + p * to_step] = from[p * pitch + c], of narrow elements; `end(c, p, values, count)` is called before
// they are rounded.
template <class End>
inline void turn_to_narrow_rows(const float* from, int64_t pitch, StoredResult to, int64_t to_pitch, int64_t to_step,
                                int64_t pixels, int64_t channels, End end) {
  float turned[vec_width * converted_pixels];
  for (int64_t c = 0; c < channels; c += vec_width) {
    const int64_t height = std::min<int64_t>(vec_width, channels - c);
    for (int64_t p = 0; p < pixels; p += converted_pixels) {
      const int64_t count = std::min(converted_pixels, pixels - p);
      if (pitch == 1) {
        copy_row(from + p, turned, count);
      } else {
        transpose(from + p * pitch + c, pitch, turned, converted_pixels, count, height);
      }
      for (int64_t k = 0; k < height; ++k) {
        float* const values = turned + k * converted_pixels;
        end(c + k, p, values, count);
        store_elements(to.type, values, (to + ((c + k) * to_pitch + p * to_step)).data, to_step, count);
      }
    }
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

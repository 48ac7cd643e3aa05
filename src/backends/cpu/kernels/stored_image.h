// Images as they are stored, in FP32 or half as wide: kernels widen what they copy in, and narrow what they copy out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/convert.h"
#include "backends/cpu/simd/fetch.h"
#include "backends/cpu/simd/pairs.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/transpose.h"
#include "base/dtype.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Pixels and channels that are widened or narrowed at once: they stay in the first-level cache.
inline constexpr int64_t converted_pixels = 64;

// From some element of an image on.
template <class Byte, class Float>
struct StoredElements {
  Byte* data = nullptr;
  DType type = DType::f32;

  StoredElements() = default;
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

// Fetches a line that is copied soon: lines of different channels are too far apart for the processor to foresee them.
POLYPHASE_INLINE void fetch_line(StoredImage from, int64_t count) {
  constexpr int64_t line = 64;
  const std::byte* const end = (from + count).data;
  for (const std::byte* at = from.data; at < end; at += line) __builtin_prefetch(at, 0, 2);
}

// Fetches a row that is written soon, where rows lie too far apart for the processor to foresee the next one: stores
// that wait for one line of the caches after the other take several times as long.
POLYPHASE_INLINE void fetch_for_store(StoredResult to, int64_t count) {
  constexpr int64_t line = 64;
  const std::byte* const end = (to + count).data;
  for (const std::byte* at = to.data; at < end; at += line) prefetch_for_store(at);
  if (count > 0) prefetch_for_store(end - 1);
}

// Elements of a storage of floats as a vector, from `i` on: all lanes, or the first n, zeros behind them.
template <DType type>
POLYPHASE_INLINE VecF load_stored(const std::byte* from, int64_t i) {
  if constexpr (type == DType::f32) return load(reinterpret_cast<const float*>(from) + i);
  if constexpr (type == DType::f16) return load_f16(reinterpret_cast<const uint16_t*>(from) + i);
  if constexpr (type == DType::bf16) return load_bf16(reinterpret_cast<const uint16_t*>(from) + i);
}
template <DType type>
POLYPHASE_INLINE VecF load_stored_first(const std::byte* from, int64_t i, int n) {
  if constexpr (type == DType::f32) return load_first(reinterpret_cast<const float*>(from) + i, n);
  if constexpr (type == DType::f16) return load_f16_first(reinterpret_cast<const uint16_t*>(from) + i, n);
  if constexpr (type == DType::bf16) return load_bf16_first(reinterpret_cast<const uint16_t*>(from) + i, n);
}

template <DType type>
POLYPHASE_INLINE void store_stored_first(std::byte* to, int64_t i, VecF values, int n) {
  if constexpr (type == DType::f32) store_first(reinterpret_cast<float*>(to) + i, values, n);
  if constexpr (type == DType::f16) store_f16_first(reinterpret_cast<uint16_t*>(to) + i, values, n);
  if constexpr (type == DType::bf16) store_bf16_first(reinterpret_cast<uint16_t*>(to) + i, values, n);
}

// Elements as they were loaded, two channels' in each lane: bf16 is the upper half of what it was widened to.
template <DType type>
POLYPHASE_INLINE VecI pair_elements(VecF even, VecF odd) {
  if constexpr (type != DType::bf16) return pair_sums(even, odd);
  return shift_right_logical<16>(as_int(even)) | (as_int(odd) & broadcast(static_cast<int32_t>(0xffff0000U)));
}

// to[i] = from[i * stride]; whole runs at a time, so that no kernel needs code of its own for each type.
__attribute__((noinline)) inline void load_run(StoredImage from, int64_t stride, float* to, int64_t n) {
  if (from.wide()) return widen_numbers<float>(from.data, stride, to, n);
  if (from.type == DType::f16) return widen_floats<true>(from.data, stride, to, n);
  widen_floats<false>(from.data, stride, to, n);
}

// to[i * stride] = from[i], rounded once.
__attribute__((noinline)) inline void store_run(const float* from, StoredResult to, int64_t stride, int64_t n) {
  store_elements(to.type, from, to.data, stride, n);
}

__attribute__((noinline)) inline void turn_block(const float* from, int64_t pitch, float* to, int64_t to_pitch,
                                                 int64_t rows, int64_t columns) {
  transpose(from, pitch, to, to_pitch, rows, columns);
}

__attribute__((noinline)) inline void turn_planes(const float* from, int64_t pitch, float* to, int64_t to_pitch,
                                                  int64_t lines, int64_t columns) {
  transpose_far_rows(from, pitch, to, to_pitch, lines, columns);
}

// to[c * to_pitch + p] = from[p * pitch + c]
inline void turn_to_lines(StoredImage from, int64_t pitch, float* to, int64_t to_pitch, int64_t pixels,
                          int64_t channels) {
  if (from.wide()) return transpose(from.floats(), pitch, to, to_pitch, pixels, channels);
  for (int64_t c = 0; c < channels; ++c) load_run(from + c, pitch, to + c * to_pitch, pixels);
}

template <bool half>
inline void stream_lines(const float* from, uint16_t* to, int64_t n) {
  for (int64_t i = 0; i < n; i += vec_width)
    half ? stream_f16(to + i, load(from + i)) : stream_bf16(to + i, load(from + i));
}

// Narrow elements past the caches, but for what begins and ends within a line of them.
__attribute__((noinline)) inline void stream_narrow(const float* from, StoredResult to, int64_t n) {
  constexpr int64_t line = 64 / sizeof(uint16_t);
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to.data) / sizeof(uint16_t)) % line;
  const int64_t lead = std::min(n, (line - past) % line);
  const int64_t whole = (n - lead) / line * line;
  if (lead > 0) store_run(from, to, 1, lead);
  auto* const lines = reinterpret_cast<uint16_t*>((to + lead).data);
  to.type == DType::f16 ? stream_lines<true>(from + lead, lines, whole)
                        : stream_lines<false>(from + lead, lines, whole);
  const int64_t done = lead + whole;
  if (done < n) store_run(from + done, to + done, 1, n - done);
}

// A run of results, past the caches if it is asked for and `stride` is 1.
inline void store_line(const float* from, StoredResult to, int64_t stride, int64_t n, bool past_caches) {
  if (stride != 1) return store_run(from, to, stride, n);
  if (!to.wide()) return past_caches ? stream_narrow(from, to, n) : store_run(from, to, 1, n);
  past_caches ? stream_row(from, to.floats(), n) : copy_row(from, to.floats(), n);
}

// f(row, its rows, column, its columns) for blocks of at most vec_width rows and columns, one row of blocks after the
// other. The last ones are whole as well, where there are that many, and overlap those before them.
template <class F>
POLYPHASE_INLINE void by_whole_blocks(int64_t rows, int64_t columns, F&& f) {
  const auto begin = [](int64_t at, int64_t size) {
    return size < vec_width ? at : std::min<int64_t>(at, size - vec_width);
  };
  for (int64_t r = 0; r < rows; r += vec_width) {
    const int64_t row = begin(r, rows);
    const int of_rows = extent_of_block(rows - row);
    for (int64_t c = 0; c < columns; c += vec_width) {
      const int64_t column = begin(c, columns);
      f(row, of_rows, column, extent_of_block(columns - column));
    }
  }
}

// Blocks of at most vec_width channels and pixels that are widened and turned in registers; `half`: from f16, otherwise
// bf16.
__attribute__((noinline)) inline void widen_to_pixels(bool half, const uint16_t* from, int64_t pitch, float* to,
                                                      int64_t to_pitch, int64_t channels, int64_t pixels) {
  by_whole_blocks(channels, pixels, [&](int64_t c, int width, int64_t p, int height) POLYPHASE_INLINE_LAMBDA {
    VecF lanes[vec_width];
    for (int k = 0; k < vec_width; ++k) {
      const uint16_t* const line = from + (c + (k < width ? k : 0)) * pitch + p;
      if (height == vec_width) {
        lanes[k] = half ? load_f16(line) : load_bf16(line);
      } else {
        lanes[k] = half ? load_f16_first(line, height) : load_bf16_first(line, height);
      }
    }
    transpose_lanes(lanes);
    float* const block = to + p * to_pitch + c;
    for (int i = 0; i < height; ++i) {
      if (width == vec_width) {
        store(block + i * to_pitch, lanes[i]);
      } else {
        store_first(block + i * to_pitch, lanes[i], width);
      }
    }
  });
}

// to[p * to_pitch + c] = from[c * pitch + p]
inline void turn_to_pixels(StoredImage from, int64_t pitch, float* to, int64_t to_pitch, int64_t channels,
                           int64_t pixels) {
  if (from.wide()) return turn_planes(from.floats(), pitch, to, to_pitch, channels, pixels);
  const auto* const halves = reinterpret_cast<const uint16_t*>(from.data);
  widen_to_pixels(from.type == DType::f16, halves, pitch, to, to_pitch, channels, pixels);
}

// Where narrow elements go, some channels by some pixels.
struct NarrowRows {
  StoredResult to;
  int64_t pitch;  // elements from channel to channel
  int64_t step;   // and from pixel to pixel
  bool past_caches;
  bool ends;  // something is done to the elements before they are rounded
};

// Blocks of at most vec_width pixels and channels that are turned and rounded in registers (`half`: to f16, otherwise
// bf16): to[c * to_pitch + p] = from[p * pitch + c].
__attribute__((noinline)) inline void narrow_to_lines(bool half, const float* from, int64_t pitch, uint16_t* to,
                                                      int64_t to_pitch, int64_t pixels, int64_t channels) {
  by_whole_blocks(channels, pixels, [&](int64_t c, int width, int64_t p, int height) POLYPHASE_INLINE_LAMBDA {
    const float* const block = from + p * pitch + c;
    VecF lanes[vec_width];
    for (int i = 0; i < vec_width; ++i)
      lanes[i] = width == vec_width ? load(block + (i < height ? i : 0) * pitch)
                                    : load_first(block + (i < height ? i : 0) * pitch, width);
    transpose_lanes(lanes);
    for (int k = 0; k < width; ++k) {
      uint16_t* const line = to + (c + k) * to_pitch + p;
      if (height == vec_width) {
        half ? store_f16(line, lanes[k]) : store_bf16(line, lanes[k]);
      } else {
        half ? store_f16_first(line, lanes[k], height) : store_bf16_first(line, lanes[k], height);
      }
    }
  });
}

// A block of pixels and channels, turned to lines of channels on its way.
template <class End>
inline void turn_to_narrow_lines(const float* from, int64_t pitch, const NarrowRows& rows, int64_t pixels,
                                 int64_t channels, End end) {
  constexpr int64_t line = 64 / sizeof(uint16_t);
  const bool streams = rows.past_caches && rows.step == 1 && rows.pitch % line == 0;
  // Blocks of pixels begin where lines of the caches do.
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(rows.to.data) / sizeof(uint16_t)) % line;
  const int64_t lead = streams && past > 0 ? std::min(pixels, line - past) : 0;
  if (!rows.ends && !streams && rows.step == 1) {
    auto* const to = reinterpret_cast<uint16_t*>(rows.to.data);
    return narrow_to_lines(rows.to.type == DType::f16, from, pitch, to, rows.pitch, pixels, channels);
  }
  float turned[vec_width * converted_pixels];
  for (int64_t c = 0; c < channels; c += vec_width) {
    const int64_t height = std::min<int64_t>(vec_width, channels - c);
    int64_t count = 0;
    for (int64_t p = 0; p < pixels; p += count) {
      count = p < lead ? lead : std::min(converted_pixels, pixels - p);
      turn_block(from + p * pitch + c, pitch, turned, converted_pixels, count, height);
      for (int64_t k = 0; k < height; ++k) {
        float* const values = turned + k * converted_pixels;
        if (rows.ends) end(c + k, p, values, count);
        const StoredResult to = rows.to + ((c + k) * rows.pitch + p * rows.step);
        streams ? stream_narrow(values, to, count) : store_run(values, to, rows.step, count);
      }
    }
  }
  if (streams) finish_streams();
}

// rows[c][p] = from[p * pitch + c]; where rows.ends, `end(c, p, values, count)` is called before they are rounded, with
// those of a single channel (then `pitch` is 1) where they lie.
template <class End>
inline void turn_to_narrow_rows(float* from, int64_t pitch, const NarrowRows& rows, int64_t pixels, int64_t channels,
                                End end) {
  const bool beside = rows.pitch == 1 && !rows.ends;  // channels, which leave as they lie
  if (pitch == 1 || (beside && rows.step == pitch)) {
    if (pitch == 1 && rows.ends) end(0, 0, from, pixels);
    const int64_t step = pitch == 1 ? rows.step : 1;
    if (!rows.past_caches || step != 1) return store_run(from, rows.to, step, pixels * pitch);
    stream_narrow(from, rows.to, pixels * pitch);
    finish_streams();
  } else if (beside) {
    for (int64_t p = 0; p < pixels; ++p) store_run(from + p * pitch, rows.to + p * rows.step, 1, channels);
  } else {
    turn_to_narrow_lines(from, pitch, rows, pixels, channels, end);
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

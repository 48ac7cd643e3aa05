// Convolution and transposed convolution lifted to three axes, and their phases: the one geometry all kernels share.
//
// On the un-cropped output grid of a transposed convolution write o + pre = s*q + r. With g = gcd(s, d), a phase r that
// g does not divide receives no tap; the others receive t = t_r + j*s/g at input position q + (r - d*t)/s:
//
//     s = 2, d = 1, k = 5        phase 0: taps 0 2 4 at shifts 0 -1 -2      phase 1: taps 1 3 at shifts 0 -1
//
// A forward convolution is the same picture with one phase, whose input position is s*q + (d*t - pre).
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/dim.h"
#include "base/dtype.h"

namespace polyphase::cpu {

// What stands before and behind the elements of a spatial axis that a forward convolution reads.
enum class PadMode : uint8_t { zero, reflect, edge, wrap };

// Which of the axis' `size` elements stands at position i of the padded axis; not for zeros.
inline int64_t padded_index(PadMode mode, int64_t i, int64_t size) {
  if (i >= 0 && i < size) return i;
  if (mode == PadMode::edge) return i < 0 ? 0 : size - 1;
  if (mode == PadMode::wrap) return floor_mod(i, size);
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1);
  const int64_t at = floor_mod(i, period);
  return at < size ? at : period - at;
}

// How the elements of the images are stored; sums are FP32 in any case.
struct ImageTypes {
  DType in = DType::f32;
  DType out = DType::f32;
};

// What is multiplied: floats, or what they are in bf16, two channels at a time.
enum class Products : uint8_t { floats, pairs };

// Channel counts are those of one group. A missing axis has extent, kernel, stride and dilation 1 and no crop. `pre` is
// the crop of a transposed convolution or the zero padding of a forward one, of any sign; `out` says the rest.
struct ConvShape {
  bool transposed;
  int64_t batch;
  int64_t groups;
  int64_t in_channels;
  int64_t out_channels;
  int64_t in[3];
  int64_t kernel[3];
  int64_t stride[3];
  int64_t dilation[3];
  int64_t pre[3];
  int64_t out[3];
  PadMode pad_mode;
  ImageTypes types;
  Products products;
  bool fours;  // conv_winograd filters four outputs at once along an axis instead of two

  int64_t kernel_points() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t out_points() const { return out[0] * out[1] * out[2]; }
  int64_t in_points() const { return in[0] * in[1] * in[2]; }
  // Words of 32 bits that a pixel's input channels take: floats, or pairs, the last of which may be half zero.
  int64_t in_words() const { return products == Products::pairs ? (in_channels + 1) / 2 : in_channels; }

  // Output phases of all axes, if they are no more than `most`; else most + 1.
  int64_t phases(int64_t most = INT64_MAX - 1) const {
    int64_t count = 1;
    for (int a = 0; a < 3 && transposed; ++a) {
      if (stride[a] > most / count) return most + 1;
      count *= stride[a];
    }
    return count;
  }
};

// Where element (n, c, d, h, w) of an image lies: strides in elements.
struct ImageStrides {
  int64_t batch;
  int64_t channel;
  int64_t axis[3];
};

// Of dense images: channels-first, and channels-last whose points lie `pitch` elements apart.
inline ImageStrides planar_strides(const int64_t (&extent)[3], int64_t channels) {
  const int64_t points = extent[0] * extent[1] * extent[2];
  return {channels * points, points, {extent[1] * extent[2], extent[2], 1}};
}
inline ImageStrides pixel_strides(const int64_t (&extent)[3], int64_t pitch) {
  const int64_t line = extent[2] * pitch;
  return {extent[0] * extent[1] * line, 1, {extent[1] * line, line, pitch}};
}

// The taps of one phase of one axis, in ascending input position.
struct AxisTaps {
  int64_t count;
  int64_t first_shift;  // input position of tap j of output q: in_step*q + first_shift + j*shift_step
  int64_t shift_step;
  int64_t first_index;  // kernel index of tap j: first_index + j*index_step
  int64_t index_step;
};

// The least size of pieces of `whole` that are no more than pieces of `most` would be.
inline int64_t even_pieces(int64_t whole, int64_t most) {
  const int64_t pieces = ceil_div(whole, std::max<int64_t>(1, most));
  return std::max<int64_t>(1, ceil_div(whole, std::max<int64_t>(1, pieces)));
}

// One axis of a ConvShape: how it falls into phases.
struct ConvAxis {
  bool transposed;
  int64_t in;
  int64_t kernel;
  int64_t stride;
  int64_t dilation;
  int64_t pre;
  int64_t out;

  ConvAxis(const ConvShape& s, int a)
      : transposed(s.transposed),
        in(s.in[a]),
        kernel(s.kernel[a]),
        stride(s.stride[a]),
        dilation(s.dilation[a]),
        pre(s.pre[a]),
        out(s.out[a]) {}

  int64_t phases() const { return transposed ? stride : 1; }
  int64_t in_step() const { return transposed ? 1 : stride; }
  int64_t crop() const { return transposed ? pre : 0; }

  AxisTaps taps(int64_t phase) const {
    if (!transposed) return {kernel, -pre, dilation, 0, 1};
    const int64_t g = std::gcd(stride, dilation);
    const int64_t period = stride / g;
    int64_t first = phase;
    if (dilation != 1) {
      first = kernel;
      for (int64_t t = 0; t < period && t < kernel && phase % g == 0; ++t) {
        if (dilation * t % stride == phase) {
          first = t;
          break;
        }
      }
    }
    if (first >= kernel) return {0, 0, 0, 0, 0};
    const int64_t count = (kernel - 1 - first) / period + 1;
    const int64_t last = first + (count - 1) * period;
    return {count, (phase - dilation * last) / stride, dilation / g, last, -period};
  }

  // The q in [q0, q1) at which all taps that lie `least` to `greatest` from it read the image.
  struct Span {
    int64_t from;
    int64_t to;
  };
  Span inside(int64_t least, int64_t greatest, int64_t q0, int64_t q1) const {
    const int64_t from = std::clamp(ceil_div(-least, in_step()), q0, q1);
    return {from, std::clamp(ceil_div(in - greatest, in_step()), from, q1)};
  }
  Span inside(const AxisTaps& taps, int64_t q0, int64_t q1) const {
    return inside(taps.first_shift, taps.first_shift + (taps.count - 1) * taps.shift_step, q0, q1);
  }

  // Of the taps of all outputs, those that read the image; `stacked`: of all phases stacked into columns.
  double share_inside(bool stacked) const {
    double all = 0;
    double read = 0;
    for (int64_t r = 0; r < (stacked ? 1 : phases()); ++r) {
      const AxisTaps of_phase = stacked ? stacked_taps() : taps(r);
      const int64_t q0 = stacked ? begin_q() : first_q(r, 0);
      const int64_t q1 = stacked ? q0 + count_q() : first_q(r, out);
      all += static_cast<double>(of_phase.count) * static_cast<double>(q1 - q0);
      for (int64_t j = 0; j < of_phase.count; ++j) {
        const int64_t shift = of_phase.first_shift + j * of_phase.shift_step;
        const Span span = inside(shift, shift, q0, q1);
        read += static_cast<double>(span.to - span.from);
      }
    }
    return all == 0 ? 1.0 : read / all;
  }

  // The positions of the image that the outputs [o0, o1) read; none if from >= to.
  Span reads(int64_t o0, int64_t o1) const {
    const int64_t reach = (kernel - 1) * dilation;
    const int64_t from = transposed ? ceil_div(o0 + pre - reach, stride) : o0 * stride - pre;
    const int64_t last = transposed ? floor_div(o1 - 1 + pre, stride) : (o1 - 1) * stride - pre + reach;
    return {std::max<int64_t>(0, from), std::min(in, last + 1)};
  }

  // The most positions that so many outputs beside each other read.
  int64_t most_read(int64_t outputs) const {
    const int64_t reach = (kernel - 1) * dilation;
    const int64_t last = transposed ? (outputs - 1 + reach) / stride : (outputs - 1) * stride + reach;
    return std::min(in, last + 1);
  }

  // How many taps the phases before this one have together.
  int64_t taps_before(int64_t phase) const {
    if (!transposed) return 0;
    if (dilation == 1) return kernel / stride * phase + (kernel % stride < phase ? kernel % stride : phase);
    int64_t count = 0;
    for (int64_t t = 0; t < kernel; ++t) count += dilation * t % stride < phase ? 1 : 0;
    return count;
  }

  // All phases stacked into columns (dilation 1 only): ceil(k/s) taps shared by every phase; tap j of phase r is kernel
  // index r + s*(count - 1 - j), which may lie outside the kernel.
  AxisTaps stacked_taps() const {
    const int64_t count = ceil_div(kernel, stride);
    return {count, -(count - 1), 1, stride * (count - 1), -stride};
  }

  // The q of all phases together that have outputs; at least one.
  int64_t begin_q() const { return floor_div(crop(), phases()); }
  int64_t count_q() const { return std::max<int64_t>(1, ceil_div(out + crop(), phases()) - begin_q()); }

  // The first q of a phase whose output coordinate is at least o.
  int64_t first_q(int64_t phase, int64_t o) const { return transposed ? ceil_div(o + pre - phase, stride) : o; }
  int64_t output_of(int64_t phase, int64_t q) const { return transposed ? q * stride + phase - pre : q; }
};

// Whether the output is so large that keeping it in the caches only evicts what is still needed.
inline bool is_past_caches(const ConvShape& shape) {
  constexpr int64_t bytes = 16 << 20;
  const auto element = static_cast<int64_t>(size_bytes(shape.types.out));
  return shape.batch * shape.groups * shape.out_channels * shape.out_points() >= bytes / element;
}

// Outputs of a run that goes past the caches: of shorter ones too much lies in lines of the caches that they share.
inline constexpr int64_t least_streamed = 64;

}  // namespace polyphase::cpu

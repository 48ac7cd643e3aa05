// Packs weights into the panels of conv_gemm: plain loops, so any machine can pack for any cluster.
#include <algorithm>

#include "backends/cpu/kernels/conv_gemm.h"

namespace polyphase::cpu {
namespace {

struct Packer {
  const ConvShape& shape;
  const ConvGemmFormat& format;
  const float* weights;
  WeightStrides strides;

  // Weight of input channel c and output channel o of a group, or null where the index lies outside the kernel.
  const float* at(int64_t group, int64_t c, int64_t o, const int64_t (&index)[3]) const {
    for (int a = 0; a < 3; ++a) {
      if (index[a] < 0 || index[a] >= shape.kernel[a]) return nullptr;
    }
    const int64_t first = shape.transposed ? group * shape.in_channels + c : group * shape.out_channels + o;
    const int64_t second = shape.transposed ? o : c;
    return weights + first * strides.first + second * strides.second + index[0] * strides.axis[0] +
           index[1] * strides.axis[1] + index[2] * strides.axis[2];
  }

  // One vector panel's row of columns [column, column + count) for one tap and input channel.
  void row(int64_t group, int64_t c, int64_t column_group, int64_t column, int64_t count, const int64_t (&tap)[3],
           float* to) const {
    const int64_t step = shape.transposed ? strides.second : strides.first;
    const int64_t there = std::clamp<int64_t>(format.columns - column, 0, count);
    int64_t run = 0;  // output channels of one phase
    for (int64_t i = 0; i < there; i += run) {
      const int64_t n = column + i;
      const int64_t o = n % shape.out_channels;
      const int64_t phase = format.stacked ? n / shape.out_channels : column_group;
      run = std::min(there - i, shape.out_channels - o);
      const int64_t index[3] = {tap[0], tap[1], format.stacked ? tap[2] + phase : tap[2]};
      const float* from = at(group, c, o, index);
      if (from == nullptr) {
        std::fill_n(to + i, run, 0.0F);
      } else {
        for (int64_t k = 0; k < run; ++k) to[i + k] = from[k * step];
      }
    }
    std::fill(to + there, to + count, 0.0F);
  }

  float* column_group(int64_t group, const AxisTaps& d, const AxisTaps& h, int64_t r, float* to) const {
    const ConvAxis axis(shape, 2);
    const AxisTaps w = format.stacked ? axis.stacked_taps() : axis.taps(r);
    const PanelGrid panels(format.columns, format.width);
    for (int64_t p = 0; p < panels.count(); ++p) {
      const int64_t count = panels.vectors_of(p) * format.width;
      for (int64_t i = 0; i < d.count * h.count * w.count; ++i) {
        const int64_t tap[3] = {d.first_index + i / (h.count * w.count) * d.index_step,
                                h.first_index + i / w.count % h.count * h.index_step,
                                w.first_index + i % w.count * w.index_step};
        for (int64_t c = 0; c < shape.in_channels; ++c) {
          row(group, c, r, p * 2 * format.width, count, tap, to);
          to += count;
        }
      }
    }
    return to;
  }
};

}  // namespace

int64_t conv_gemm_packed_floats(const ConvShape& shape, int width) {
  return ConvGemmFormat(shape, width).group_size * shape.groups;
}

void pack_conv_gemm(const ConvShape& shape, int width, const float* weights, const WeightStrides& strides,
                    float* packed) {
  const ConvGemmFormat format(shape, width);
  const Packer packer = {shape, format, weights, strides};
  const ConvAxis d(shape, 0);
  const ConvAxis h(shape, 1);
  float* to = packed;
  for (int64_t g = 0; g < shape.groups; ++g) {
    for (int64_t rd = 0; rd < d.phases(); ++rd) {
      for (int64_t rh = 0; rh < h.phases(); ++rh) {
        for (int64_t r = 0; r < format.column_groups; ++r) to = packer.column_group(g, d.taps(rd), h.taps(rh), r, to);
      }
    }
  }
}

}  // namespace polyphase::cpu

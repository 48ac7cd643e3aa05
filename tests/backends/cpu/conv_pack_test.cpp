// Packed weights: the same bytes whatever the weights' strides are, and in however many shares they are written.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "backends/cpu/kernels/conv_depthwise.h"
#include "backends/cpu/kernels/conv_disjoint.h"
#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_overlap.h"
#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/kernels/conv_winograd.h"
#include "suite_size.h"

namespace polyphase::cpu {
namespace {

using Floats = std::vector<float>;
using Pack = std::function<void(const float* weights, const WeightStrides& strides, PackShare share, float* to)>;

struct Format {
  int64_t floats;
  bool changed;  // transformed or rounded: the weights themselves are not there
  Pack pack;
};

ConvShape random_shape(std::mt19937_64& random) {
  const auto pick = [&](int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random() % static_cast<uint64_t>(hi - lo + 1));
  };
  ConvShape s = {};
  s.transposed = pick(0, 2) != 0;
  s.batch = 1;
  const int64_t style = pick(0, 3);
  s.groups = style == 0 ? pick(2, 20) : 1;
  s.in_channels = style == 0 ? 1 : pick(1, 40);
  s.out_channels = style == 0 ? pick(1, 3) : pick(1, 60);
  for (int a = 0; a < 3; ++a) {
    s.in[a] = s.out[a] = 8;
    s.kernel[a] = a == 0 ? pick(1, 2) : pick(1, a == 1 ? 4 : 9);
    s.stride[a] = a == 0 ? 1 : pick(1, 4);
    s.dilation[a] = a == 0 || pick(0, 2) != 0 ? 1 : pick(1, 4);
  }
  if (style != 1 || !s.transposed) return s;
  s.in_channels = pick(1, 7);  // kernels of several strides, which conv_disjoint unfolds
  s.out_channels = pick(1, 7);
  for (int a = 1; a < 3; ++a) {
    s.stride[a] = a == 1 ? pick(1, 3) : pick(16, 19);
    s.kernel[a] = 2 * s.stride[a];
    s.dilation[a] = 1;
  }
  return s;
}

std::vector<Format> formats_of(const ConvShape& s) {
  std::vector<Format> out;
  for (const int width : {4, 8, 16}) {
    const auto add_shape = [&](const ConvShape& shape, auto floats, auto pack, bool changed) {
      out.push_back({floats(shape, width), changed,
                     [=](const float* weights, const WeightStrides& strides, PackShare share, float* to) {
                       pack(shape, width, weights, strides, share, to);
                     }});
    };
    const auto add = [&](auto floats, auto pack, bool changed = false) { add_shape(s, floats, pack, changed); };
    ConvShape in_fours = s;
    in_fours.fours = true;
    const auto add_pairs = [&](auto floats, auto pack) {
      ConvShape in_pairs = s;
      in_pairs.products = Products::pairs;
      add_shape(in_pairs, floats, pack, true);
    };
    add(conv_gemm_packed_floats, pack_conv_gemm);
    if (conv_winograd_takes(s)) add(conv_winograd_packed_floats, pack_conv_winograd, true);
    if (conv_winograd_takes(in_fours)) add_shape(in_fours, conv_winograd_packed_floats, pack_conv_winograd, true);
    if (conv_disjoint_takes(s)) add(conv_disjoint_packed_floats, pack_conv_disjoint);
    if (conv_pixels_takes(s)) add(conv_pixels_packed_floats, pack_conv_pixels);
    ConvShape flat = s;
    flat.in[0] = flat.out[0] = 1;
    if (conv_overlap_takes(flat)) {
      add_shape(flat, conv_overlap_packed_floats, pack_conv_overlap, false);
      add_shape(flat, conv_overlap_last_packed_floats, pack_conv_overlap_last, false);
    }
    if (conv_winograd_takes(s)) add_pairs(conv_winograd_packed_floats, pack_conv_winograd);
    if (conv_disjoint_takes(s)) add_pairs(conv_disjoint_packed_floats, pack_conv_disjoint);
    if (s.in_channels == 1 && s.groups > 1) add(conv_depthwise_packed_floats, pack_conv_depthwise);
  }
  return out;
}

// Weights laid out in some order of their axes, each forwards or backwards.
struct Laid {
  Floats memory;
  int64_t first = 0;  // where the element with index 0, … lies
  std::array<int64_t, 5> strides = {};

  WeightStrides weight_strides() const { return {strides[0], strides[1], {strides[2], strides[3], strides[4]}}; }
};

Laid lay_out(const std::array<int64_t, 5>& sizes, std::array<int, 5> order, unsigned backwards, int64_t gap) {
  Laid out;
  int64_t step = 1;
  for (std::size_t i = 5; i-- > 0;) {
    const auto axis = static_cast<std::size_t>(order[i]);
    const bool is_backwards = ((backwards >> axis) & 1U) != 0;
    out.strides[axis] = is_backwards ? -step : step;
    if (is_backwards) out.first += step * (sizes[axis] - 1);
    step *= sizes[axis] + (i == 2 ? gap : 0);
  }
  out.memory.assign(static_cast<std::size_t>(step), std::numeric_limits<float>::quiet_NaN());
  int64_t number = 0;
  std::array<int64_t, 5> at = {};
  for (at[0] = 0; at[0] < sizes[0]; ++at[0]) {
    for (at[1] = 0; at[1] < sizes[1]; ++at[1]) {
      for (at[2] = 0; at[2] < sizes[2]; ++at[2]) {
        for (at[3] = 0; at[3] < sizes[3]; ++at[3]) {
          for (at[4] = 0; at[4] < sizes[4]; ++at[4]) {
            const int64_t place = std::inner_product(at.begin(), at.end(), out.strides.begin(), out.first);
            out.memory[static_cast<std::size_t>(place)] = static_cast<float>(++number);
          }
        }
      }
    }
  }
  return out;
}

Floats packed(const Format& format, const Laid& weights, int64_t shares) {
  Floats out(static_cast<std::size_t>(format.floats), std::numeric_limits<float>::quiet_NaN());
  for (int64_t i = shares; i-- > 0;)
    format.pack(weights.memory.data() + weights.first, weights.weight_strides(), {i, shares}, out.data());
  return out;
}

TEST(ConvPack, StridesAndSharesDoNotMatter) {
  constexpr std::array<int, 5> row_major = {0, 1, 2, 3, 4};
  const uint64_t shapes = test::suite_size("POLYPHASE_FUZZ_CASES", 100, 300);
  for (uint64_t seed = 0; seed < shapes; ++seed) {
    std::mt19937_64 random(seed);
    const ConvShape s = random_shape(random);
    const int64_t first = (s.transposed ? s.in_channels : s.out_channels) * s.groups;
    const std::array<int64_t, 5> sizes = {first, s.transposed ? s.out_channels : s.in_channels, s.kernel[0],
                                          s.kernel[1], s.kernel[2]};
    const Laid plain = lay_out(sizes, row_major, 0, 0);
    for (const Format& format : formats_of(s)) {
      const Floats want = packed(format, plain, 1);
      // Every weight is there, and nothing is left unwritten.
      const double total = std::accumulate(want.begin(), want.end(), 0.0);
      const auto count = static_cast<double>(plain.memory.size());
      if (format.changed) {
        ASSERT_FALSE(std::isnan(total)) << "seed " << seed;
      } else {
        ASSERT_EQ(total, count * (count + 1) / 2) << "seed " << seed;
      }
      for (int trial = 0; trial < 4; ++trial) {
        std::array<int, 5> order = row_major;
        std::shuffle(order.begin(), order.end(), random);
        const Laid other = lay_out(sizes, order, static_cast<unsigned>(random() % 32), trial % 2 == 0 ? 0 : 3);
        const int64_t shares = 1 + static_cast<int64_t>(random() % 4);
        ASSERT_EQ(packed(format, other, shares), want) << "seed " << seed << ", trial " << trial;
      }
    }
  }
}

}  // namespace
}  // namespace polyphase::cpu

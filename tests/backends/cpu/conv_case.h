// A convolution geometry as one line of text, its double-precision reference, and a way to run a kernel of any cluster
// on it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/cluster_kernels.h"
#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/kernels/endings.h"

namespace polyphase::cpu::testing {

// `name conv_transpose n1 g1 c256:128 in64x64 k3x3 s2x2 d1x1 pre1x1 post0x0 bias` ; 1 to 3 axes; `conv` has pads for
// crops.
struct ConvCase {
  std::string name;
  ConvShape shape = {};
  int rank = 3;
  bool bias = false;

  std::string text() const;
};

// Nothing if the line is a comment or empty; aborts with a message if it cannot be read.
std::optional<ConvCase> parse_conv_case(const std::string& line);
// Output extent of one axis; may be negative.
int64_t output_extent(const ConvShape& shape, int axis, int64_t post);

struct ConvData {
  std::vector<float> in;       // channels-first
  std::vector<float> weights;  // [in, out/g, k...] or [out, in/g, k...]
  std::vector<float> bias;
  // What the kernels end with: a sum with an image like the result (channels-first; empty: none), then an activation:
  // relu, leaky_relu by half, clip from -6 to 6, or keep: none; then what is below 0 by the channel's slope (empty:
  // not).
  std::vector<float> added;
  bool added_in_bf16 = false;
  bool adds_last = false;  // instead of first
  EndingKind activation = EndingKind::keep;
  std::vector<float> slopes;
};
inline constexpr float leaky_slope = 0.5F;
inline constexpr float clip_bound = 6;

// Small integers, so that every sum is exact; or values as a network has them.
ConvData make_data(const ConvCase& c, uint64_t seed, bool integers);

inline size_t result_elements(const ConvShape& s) {
  return static_cast<size_t>(s.batch * s.groups * s.out_channels * s.out_points());
}

// Channels-first result in double.
std::vector<double> reference(const ConvCase& c, const ConvData& data);

// What lies in the scratch before a kernel runs: a number so large that sums would show it.
inline constexpr uint32_t huge_word = 0x7f7f7f7f;
// One that is subnormal as a float, as small integers and halves of pointers are: multiplied a hundred times slower.
inline constexpr uint32_t subnormal_word = 0x00012345;

struct Layouts {
  bool in_planar = true;
  bool out_planar = true;
  ImageTypes types = {};    // as the images are stored
  int64_t extra = 0;        // pixels (channels-last) or lines (channels-first) lie this many elements further apart
  int64_t narrow_past = 1;  // elements by which images half as wide begin past a line of the caches
  uint32_t scratch = huge_word;

  std::string text() const;
};

// A cluster that the tests have beside the CPU's: its "pairs" use the matrix unit, the rest is scalar.
inline constexpr std::string_view emulated_matrix_unit = "emulated amx";

const ClusterKernels& cluster_kernels(const std::string& name);
const std::vector<std::string>& runnable_clusters();

ImageStrides image_strides(int64_t channels, const int64_t (&extent)[3], bool planar, int64_t extra);

}  // namespace polyphase::cpu::testing

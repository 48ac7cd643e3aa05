// Reading, filling and judging convolution cases.
#include "backends/cpu/conv_case.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>

#include "backends/cpu/catalogue.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu::testing {
namespace {

[[noreturn]] void fail(const std::string& line, const std::string& why) {
  std::fprintf(stderr, "conv case: %s in: %s\n", why.c_str(), line.c_str());
  std::abort();
}

std::vector<int64_t> numbers(const std::string& text, char separator) {
  std::vector<int64_t> result;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, separator);) result.push_back(std::stoll(part));
  return result;
}

// Right-aligns 1 to 3 numbers into three axes.
void set_axes(int64_t (&to)[3], const std::vector<int64_t>& from, int64_t missing) {
  for (int a = 0; a < 3; ++a) {
    const int64_t i = static_cast<int64_t>(from.size()) - 3 + a;
    to[a] = i < 0 ? missing : from[static_cast<size_t>(i)];
  }
}

template <class T>
std::string axes(const T (&v)[3], int rank) {
  std::string text;
  for (int a = 3 - rank; a < 3; ++a) text += (text.empty() ? "" : "x") + std::to_string(v[a]);
  return text;
}

}  // namespace
}  // namespace polyphase::cpu::testing

namespace polyphase::cpu::emulated_amx {
extern const PairUnit pair_unit;
}  // namespace polyphase::cpu::emulated_amx

namespace polyphase::cpu::testing {

int64_t output_extent(const ConvShape& s, int a, int64_t post) {
  const int64_t reach = (s.kernel[a] - 1) * s.dilation[a];
  if (s.transposed) return s.in[a] == 0 ? 0 : (s.in[a] - 1) * s.stride[a] + reach + 1 - s.pre[a] - post;
  const int64_t room = s.in[a] + s.pre[a] + post - reach - 1;
  return room < 0 ? 0 : room / s.stride[a] + 1;
}

std::string ConvCase::text() const {
  int64_t post[3];
  for (int a = 0; a < 3; ++a) {  // any post that gives the same extent
    ConvShape s = shape;
    post[a] = output_extent(s, a, 0) - shape.out[a];
    if (!shape.transposed)
      post[a] = (shape.out[a] - 1) * s.stride[a] + (s.kernel[a] - 1) * s.dilation[a] + 1 - s.in[a] - s.pre[a];
  }
  std::ostringstream out;
  out << name << (shape.transposed ? " conv_transpose" : " conv") << " n" << shape.batch << " g" << shape.groups << " c"
      << shape.in_channels * shape.groups << ":" << shape.out_channels * shape.groups << " in" << axes(shape.in, rank)
      << " k" << axes(shape.kernel, rank) << " s" << axes(shape.stride, rank) << " d" << axes(shape.dilation, rank)
      << " pre" << axes(shape.pre, rank) << " post" << axes(post, rank) << (bias ? " bias" : "");
  constexpr const char* pads[] = {"", ", padded by reflection", ", padded by its edges", ", padded by the other end"};
  out << pads[static_cast<int>(shape.pad_mode)];
  return out.str();
}

std::string Layouts::text() const {
  const auto image = [](bool planar, DType type) {
    return std::string(planar ? "planar " : "channels-last ") + std::string(name_of(type));
  };
  return image(in_planar, types.in) + " to " + image(out_planar, types.out) + ", extra " + std::to_string(extra) +
         ", narrow ones " + std::to_string(narrow_past) + " past a line";
}

std::optional<ConvCase> parse_conv_case(const std::string& line) {
  if (line.empty() || line[0] == '#') return std::nullopt;
  ConvCase c;
  std::stringstream in(line);
  std::string op;
  in >> c.name >> op;
  c.shape.transposed = op == "conv_transpose";
  if (!c.shape.transposed && op != "conv") fail(line, "operator '" + op + "' is neither conv nor conv_transpose");
  std::vector<int64_t> extent, kernel, stride, dilation, pre, post, channels;
  c.shape.batch = c.shape.groups = 1;
  for (std::string word; in >> word;) {
    if (word == "bias")
      c.bias = true;
    else if (word.starts_with("pre"))
      pre = numbers(word.substr(3), 'x');
    else if (word.starts_with("post"))
      post = numbers(word.substr(4), 'x');
    else if (word.starts_with("in"))
      extent = numbers(word.substr(2), 'x');
    else if (word[0] == 'n')
      c.shape.batch = std::stoll(word.substr(1));
    else if (word[0] == 'g')
      c.shape.groups = std::stoll(word.substr(1));
    else if (word[0] == 'c')
      channels = numbers(word.substr(1), ':');
    else if (word[0] == 'k')
      kernel = numbers(word.substr(1), 'x');
    else if (word[0] == 's')
      stride = numbers(word.substr(1), 'x');
    else if (word[0] == 'd')
      dilation = numbers(word.substr(1), 'x');
    else
      fail(line, "unknown word '" + word + "'");
  }
  if (channels.size() != 2 || extent.empty() || kernel.size() != extent.size()) fail(line, "missing sizes");
  if (c.shape.groups < 1 || channels[0] % c.shape.groups != 0 || channels[1] % c.shape.groups != 0)
    fail(line, "the groups do not divide the channels, which are those of all groups");
  c.rank = static_cast<int>(extent.size());
  c.shape.in_channels = channels[0] / c.shape.groups;
  c.shape.out_channels = channels[1] / c.shape.groups;
  set_axes(c.shape.in, extent, 1);
  set_axes(c.shape.kernel, kernel, 1);
  set_axes(c.shape.stride, stride, 1);
  set_axes(c.shape.dilation, dilation, 1);
  set_axes(c.shape.pre, pre, 0);
  int64_t after[3];
  set_axes(after, post, 0);
  for (int a = 0; a < 3; ++a) c.shape.out[a] = std::max<int64_t>(0, output_extent(c.shape, a, after[a]));
  return c;
}

ConvData make_data(const ConvCase& c, uint64_t seed, bool integers) {
  const ConvShape& s = c.shape;
  std::mt19937_64 random(seed);
  const auto fill = [&](std::vector<float>& v, int64_t count, float scale) {
    v.resize(static_cast<size_t>(count));
    uint64_t bits = 0;
    for (size_t i = 0; i < v.size(); ++i) {
      if (i % 4 == 0) bits = random();
      const auto part = static_cast<uint32_t>(bits >> (16U * (i % 4)) & 0xffffU);
      v[i] = integers ? static_cast<float>(static_cast<int>(part % 9) - 4)
                      : (static_cast<float>(part) / 32768.0F - 1.0F) * scale;
    }
  };
  ConvData data;
  fill(data.in, s.batch * s.groups * s.in_channels * s.in_points(), 1.0F);
  fill(data.weights, s.groups * s.in_channels * s.out_channels * s.kernel_points(), 0.05F);
  if (c.bias) fill(data.bias, s.groups * s.out_channels, 1.0F);
  return data;
}

std::vector<double> reference(const ConvCase& c, const ConvData& data) {
  const ConvShape& s = c.shape;
  const int64_t in_points = s.in_points();
  const int64_t out_points = s.out_points();
  std::vector<double> out(result_elements(s));
  for (int64_t n = 0; n < s.batch * s.groups; ++n) {
    const int64_t g = n % s.groups;
    for (int64_t o = 0; o < s.out_channels; ++o) {
      double* image = out.data() + (n * s.out_channels + o) * out_points;
      const double start = c.bias ? static_cast<double>(data.bias[static_cast<size_t>(g * s.out_channels + o)]) : 0.0;
      std::fill_n(image, out_points, start);
      for (int64_t i = 0; i < s.in_channels; ++i) {
        const float* from = data.in.data() + (n * s.in_channels + i) * in_points;
        const int64_t w =
            s.transposed ? (g * s.in_channels + i) * s.out_channels + o : (g * s.out_channels + o) * s.in_channels + i;
        const float* weight = data.weights.data() + w * s.kernel_points();
        for (int64_t k = 0; k < s.kernel_points(); ++k) {
          const int64_t t[3] = {k / (s.kernel[1] * s.kernel[2]), k / s.kernel[2] % s.kernel[1], k % s.kernel[2]};
          const double v = static_cast<double>(weight[k]);
          // Walks the smaller grid of the pair: positions p of the strided side, p*stride + t*dilation - pre of the
          // other, which may be padded by its own elements.
          const auto place = [&s](int64_t at, int64_t size) {
            return s.pad_mode == PadMode::zero || size == 0 ? at : padded_index(s.pad_mode, at, size);
          };
          const int64_t* walk = s.transposed ? s.in : s.out;
          const int64_t* other = s.transposed ? s.out : s.in;
          for (int64_t a = 0; a < walk[0]; ++a) {
            const int64_t x = place(a * s.stride[0] + t[0] * s.dilation[0] - s.pre[0], other[0]);
            if (x < 0 || x >= other[0]) continue;
            for (int64_t b = 0; b < walk[1]; ++b) {
              const int64_t y = place(b * s.stride[1] + t[1] * s.dilation[1] - s.pre[1], other[1]);
              if (y < 0 || y >= other[1]) continue;
              for (int64_t e = 0; e < walk[2]; ++e) {
                const int64_t z = place(e * s.stride[2] + t[2] * s.dilation[2] - s.pre[2], other[2]);
                if (z < 0 || z >= other[2]) continue;
                const int64_t near = (a * walk[1] + b) * walk[2] + e;
                const int64_t far = (x * other[1] + y) * other[2] + z;
                image[s.transposed ? far : near] += v * static_cast<double>(from[s.transposed ? near : far]);
              }
            }
          }
        }
      }
    }
  }
  const auto points = static_cast<size_t>(s.out_points());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!data.added.empty() && !data.adds_last) out[i] += static_cast<double>(data.added[i]);
    if (data.activation == EndingKind::clip) out[i] = std::clamp<double>(out[i], -clip_bound, clip_bound);
    if (data.activation == EndingKind::relu && out[i] < 0) out[i] = 0;
    if (data.activation == EndingKind::leaky_relu && out[i] < 0) out[i] *= static_cast<double>(leaky_slope);
    if (!data.slopes.empty() && out[i] < 0) out[i] *= static_cast<double>(data.slopes[i / points % data.slopes.size()]);
    if (!data.added.empty() && data.adds_last) out[i] += static_cast<double>(data.added[i]);
  }
  return out;
}

const ClusterKernels& cluster_kernels(const std::string& name) {
  static const ClusterKernels emulated = [] {
    ClusterKernels kernels = kernels_of(Cluster::scalar);
    kernels.pair_unit = &emulated_amx::pair_unit;
    return kernels;
  }();
  return name == emulated_matrix_unit ? emulated : kernels_of(*cluster_from_name(name));
}

const std::vector<std::string>& runnable_clusters() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const Cluster cluster : all_clusters) {
      if (runs_here(cluster)) found.emplace_back(name_of(cluster));
    }
    return found;
  }();
  return names;
}

ImageStrides image_strides(int64_t channels, const int64_t (&extent)[3], bool planar, int64_t extra) {
  if (planar) {  // cut out of a wider image
    const int64_t line = extent[2] + extra;
    const int64_t points = extent[0] * extent[1] * line;
    return {points * channels, points, {extent[1] * line, line, 1}};
  }
  const int64_t pitch = channels + extra;
  return {extent[0] * extent[1] * extent[2] * pitch, 1, {extent[1] * extent[2] * pitch, extent[2] * pitch, pitch}};
}

}  // namespace polyphase::cpu::testing

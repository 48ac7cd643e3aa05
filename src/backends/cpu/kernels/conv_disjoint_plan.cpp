// Plans and packs transposed convolution whose taps do not meet.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "backends/cpu/kernels/blocked_sum.h"
#include "backends/cpu/kernels/conv_disjoint.h"
#include "backends/cpu/kernels/panel_lines.h"
#include "backends/cpu/kernels/scratch_pieces.h"

namespace polyphase::cpu {
namespace {

constexpr int64_t most_phases = 256;             // of the last axis: a tile's line has so many outputs for each pixel
constexpr int64_t aimed_columns = 48;            // of a block: its weights are read once for all pixels of a tile
constexpr int64_t most_columns = 96;             // of a block with short lines
constexpr int64_t panel_words = 64 * 1024;       // input of a tile: half of a small second-level cache
constexpr int64_t sums_floats = 16 * 1024;       // of a block of columns
constexpr int64_t slice_words = 4 * 1024;        // of the panel, with which a register block stays in the first level
constexpr int64_t least_tile_outputs = 1 << 15;  // outputs: less work is not worth a tile
constexpr int64_t disjoint_tiles_aimed = 16;
constexpr int64_t most_disjoint_tiles_aimed = 48;  // where each has columns enough to pay for its copy of the pixels
constexpr int64_t columns_for_copy = 192;
constexpr int64_t filled_bytes = 1 << 19;  // by a tile at a time: a quarter to a half of the second-level cache
constexpr int64_t least_unread = 4;        // of a line so many parts, one of which is worth to leave out
constexpr int64_t most_unfolded = 8;       // times the image
// Stride of lines with which a kernel is unfolded: with shorter ones, or along one axis only, conv_gemm and
// conv_pixels are as fast, 1.2 to 1.8 times as slow with these.
constexpr int64_t least_unfolded_stride = 16;

bool is_unfolded(const ConvShape& shape) {
  int64_t taps = 1;
  int axes = 0;
  for (int a = 0; a < 3; ++a) {
    if (!shape.transposed || shape.kernel[a] <= shape.stride[a]) continue;
    if (shape.kernel[a] % shape.stride[a] != 0 || shape.kernel[a] / shape.stride[a] > most_unfolded) return false;
    taps *= shape.kernel[a] / shape.stride[a];
    ++axes;
  }
  return axes >= 2 && taps <= most_unfolded && shape.kernel[2] > shape.stride[2] &&
         shape.stride[2] >= least_unfolded_stride;
}

// Of the unfolded image.
ConvShape unfolded(const ConvShape& given) {
  const ConvUnfolding unfolding(given, {});
  ConvShape shape = given;
  shape.in_channels *= unfolding.count();
  for (int a = 0; a < 3; ++a) {
    shape.in[a] = unfolding.point(a);
    shape.kernel[a] /= unfolding.taps[a];
  }
  return shape;
}

// Crops: input pixels that lead to no output are not multiplied. Planes and lines cost little to leave out; but lines
// of which only a part is read do not follow each other, and where they are copied to be multiplied, that takes as long
// as the products of a fifth of them.
void place_image(const ImageStrides& in, ConvDisjointPlan& plan) {
  ConvShape& s = plan.shape;
  for (int a = 0; a < 3; ++a) {
    plan.crop[a] = s.transposed ? s.pre[a] : -s.pre[a];
    const int64_t step = ConvAxis(s, a).phases();
    const int64_t first = std::clamp<int64_t>(ceil_div(plan.crop[a] - s.kernel[a] + 1, step), 0, s.in[a]);
    const int64_t end = std::clamp<int64_t>(ceil_div(s.out[a] + plan.crop[a], step), first, s.in[a]);
    const bool is_free = a < 2 || s.in_channels == 1;
    if (!is_free && (s.in[a] - (end - first)) * least_unread < s.in[a]) continue;
    s.in[a] = end - first;
    plan.crop[a] -= first * step;
    plan.in_first += first * in.axis[a];
  }
}

// How many lines of the kernel make a block: as many as fill its chunks best.
int64_t lines_of_block(int64_t line, int64_t lines, int64_t chunk) {
  int64_t best = 1;
  double best_filled = 0;
  for (int64_t count = 1; count <= lines && (count == 1 || count * line <= most_columns); ++count) {
    const int64_t columns = count * line;
    const double filled = static_cast<double>(columns) / static_cast<double>(ceil_div(columns, chunk) * chunk);
    const bool nearer = std::abs(columns - aimed_columns) < std::abs(best * line - aimed_columns);
    if (filled > best_filled || (filled == best_filled && nearer)) {
      best = count;
      best_filled = filled;
    }
  }
  return best;
}

// Whether all lines of an image begin a cache line where the first one does.
bool has_whole_cache_lines(const ConvShape& shape, const ImageStrides& out) {
  const auto elements = cache_line / static_cast<int64_t>(size_bytes(shape.types.out));
  bool whole = (shape.batch == 1 || out.batch % elements == 0) && out.channel % elements == 0;
  for (int a = 0; a < 2; ++a) whole = whole && (shape.out[a] == 1 || out.axis[a] % elements == 0);
  return whole;
}

// Whether tiles fill the lines between those that they reach: most lines, which lie in the order of the input's, and
// not so many at a time that the inner caches lose them before the tile writes its own.
bool fills_gaps(const ConvDisjointPlan& plan) {
  const ConvShape& s = plan.shape;
  if (!plan.has_gaps || !plan.joined_lines || plan.streams || plan.by_lines || s.in_points() == 0) return false;
  if (s.kernel[0] != 1 || s.kernel[1] != 1) return false;
  if (plan.pixel_tiles > 1 && plan.tile_pixels % s.in[2] != 0) return false;
  const int64_t bytes = s.out_points() / plan.pixel_tiles * plan.format.lines_per_block * 4;
  return s.out[0] * s.out[1] >= 2 * s.in[0] * s.in[1] && bytes <= filled_bytes;
}

// Whether the outputs of a vector of pixels fill whole cache lines.
bool fills_cache_lines(const ConvShape& shape, const ConvDisjointFormat& f, int width) {
  return width * f.leaving * static_cast<int64_t>(size_bytes(shape.types.out)) % cache_line == 0;
}

}  // namespace

bool conv_disjoint_takes(const ConvShape& shape) {
  for (int a = 0; a < 3; ++a) {
    if (shape.dilation[a] != 1 && shape.kernel[a] != 1) return false;
    if (!shape.transposed && (shape.kernel[a] != 1 || shape.stride[a] != 1)) return false;
    if (shape.transposed && shape.kernel[a] > shape.stride[a] && !is_unfolded(shape)) return false;
  }
  return !shape.transposed || shape.stride[2] <= most_phases;
}

ConvUnfolding::ConvUnfolding(const ConvShape& shape, const ImageStrides& in_strides)
    : channels(shape.in_channels), strides(in_strides) {
  const bool unfolds = is_unfolded(shape);
  for (int a = 0; a < 3; ++a) {
    taps[a] = unfolds ? ceil_div(shape.kernel[a], shape.stride[a]) : 1;
    in[a] = shape.in[a];
  }
}

ConvDisjointFormat::ConvDisjointFormat(const ConvShape& given, int width) {
  const ConvShape shape = unfolded(given);
  words = shape.in_words();
  const int64_t line = shape.kernel[2];
  lines = shape.out_channels * shape.kernel[0] * shape.kernel[1];
  interleaved = shape.transposed && line == shape.stride[2] && line <= most_interleaved_phases ? line : 1;
  const bool is_every_other = width >= least_width_of_gaps && shape.transposed && line == 1 && shape.stride[2] == 2;
  leaving = is_every_other ? 2 : interleaved;
  const int64_t most = pixel_columns(width) / interleaved * interleaved;
  lines_per_block = lines_of_block(line, lines, most);
  blocks = ceil_div(lines, lines_per_block);
  chunks = ceil_div(lines_per_block * line, most);
  chunk = ceil_div(lines_per_block * line, chunks);
  while (!is_chunk(width, chunk, interleaved)) ++chunk;
  chunks = ceil_div(lines_per_block * line, chunk);
  block_words = chunks * chunk * words;
}

ConvDisjointPlan plan_conv_disjoint(const ConvShape& given, const ImageStrides& in, const ImageStrides& out,
                                    const EndingProgram& endings, bool has_bias, int width) {
  ConvDisjointPlan plan = {};
  plan.unfolding = ConvUnfolding(given, in);
  plan.shape = unfolded(given);
  plan.in = in;
  if (plan.unfolding.count() > 1) {
    plan.in = planar_strides(plan.shape.in, given.groups * plan.shape.in_channels);
    plan.shared_bytes = given.batch * plan.in.batch * static_cast<int64_t>(size_bytes(given.types.in));
  }
  place_image(plan.in, plan);
  const ConvShape& shape = plan.shape;
  plan.format = ConvDisjointFormat(given, width);
  plan.out = out;
  plan.endings = endings;
  plan.has_bias = has_bias;
  plan.streams = is_past_caches(shape) && shape.out[2] >= least_streamed;
  plan.alike_endings = true;
  for (int i = 0; i < endings.count; ++i) {
    if (!takes_operand(endings.steps[i].kind)) continue;
    const ImageStrides& operand = endings.operands[endings.steps[i].operand];
    plan.alike_endings &= operand.axis[0] == 0 && operand.axis[1] == 0 && operand.axis[2] == 0;
  }
  for (int a = 0; a < 2; ++a) {
    const int64_t s = ConvAxis(shape, a).phases();
    plan.has_gaps |= shape.kernel[a] < s || plan.crop[a] < 0 || shape.out[a] + plan.crop[a] > s * shape.in[a];
  }
  plan.has_gaps |= shape.in_points() == 0;
  plan.phases = ConvAxis(shape, 2).phases();
  plan.front = std::clamp<int64_t>(-plan.crop[2], 0, shape.out[2]);
  plan.behind = std::clamp<int64_t>(shape.in[2] * plan.phases - plan.crop[2], 0, shape.out[2]);
  const ConvDisjointFormat& f = plan.format;
  plan.pixels = pixel_vectors(width, static_cast<int>(f.chunk)) * width;
  const int64_t points = shape.in_points();
  const int64_t columns = f.columns();
  const int64_t sums = f.sums();
  const int64_t fitting = std::min({panel_words / std::max<int64_t>(1, f.words), sums_floats / sums,
                                    sums_floats / plan.phases, ceil_div(points, plan.pixels) * plan.pixels});
  plan.tile_pixels = std::max<int64_t>(1, fitting / plan.pixels) * plan.pixels;
  plan.panel_step = (std::max<int64_t>(1, f.words) | 1) * plan.pixels;
  plan.pixel_tiles = ceil_div(points, plan.tile_pixels);
  plan.vector_runs = most_product_runs(width, f.leaving);
  const int64_t pieces = shape.batch * plan.pixel_tiles;
  const int64_t outputs = plan.tile_pixels * columns * f.blocks;
  plan.groups_per_tile = std::clamp<int64_t>(
      std::min(least_tile_outputs / std::max<int64_t>(1, outputs), shape.groups * pieces / disjoint_tiles_aimed), 1,
      std::max<int64_t>(1, shape.groups));
  plan.group_tiles = ceil_div(shape.groups, plan.groups_per_tile);
  const int64_t whole_tiles = std::max<int64_t>(1, pieces * plan.group_tiles);
  const int64_t splits =
      std::max(ceil_div(disjoint_tiles_aimed, whole_tiles),
               std::min(ceil_div(most_disjoint_tiles_aimed, whole_tiles), f.blocks * columns / columns_for_copy));
  plan.blocks_per_tile = ceil_div(f.blocks, std::clamp<int64_t>(splits, 1, f.blocks));
  plan.block_tiles = ceil_div(f.blocks, plan.blocks_per_tile);
  const int64_t most_depth = std::clamp<int64_t>(slice_words / plan.pixels, 1, 2 * sum_piece);
  const int64_t slices = ceil_div(std::max<int64_t>(1, f.words), most_depth);
  plan.depth = ceil_div(std::max<int64_t>(1, f.words), slices);
  const bool narrows = is_narrow(shape.types.out);
  plan.straight = out.axis[2] == 1 && endings.count == 0 && f.leaving == plan.phases &&
                  (!plan.streams || (has_whole_cache_lines(shape, out) && fills_cache_lines(shape, f, width)));
  plan.by_lines = shape.in_channels == 1 && f.interleaved == plan.phases && plan.phases > 1 && plan.in.axis[2] == 1;
  plan.direct = !narrows && out.axis[2] == 1 && !plan.streams;
  plan.joined_lines = plan.alike_endings && (shape.out[1] == 1 || out.axis[1] == shape.out[2] * out.axis[2]) &&
                      (shape.out[0] == 1 || out.axis[0] == shape.out[1] * shape.out[2] * out.axis[2]);
  plan.fills = fills_gaps(plan);
  plan.most_held = plan.tile_pixels / width + ceil_div(plan.tile_pixels, std::max<int64_t>(1, shape.in[2])) + 2;
  plan.scratch_bytes =
      scratch_piece_bytes<HeldLine>(plan.most_held) + scratch_piece_bytes<ProductTarget>(plan.tile_pixels / width) +
      scratch_piece_bytes<ProductRun>(plan.tile_pixels / width * plan.vector_runs) +
      2 * scratch_piece_bytes<int64_t>(columns) + scratch_piece_bytes<KernelLine>(f.lines_per_block) +
      scratch_piece_bytes<float>(plan.tile_pixels / plan.pixels * plan.panel_step) +
      scratch_piece_bytes<float>(sums * plan.tile_pixels) + scratch_piece_bytes<float>(columns * plan.tile_pixels) +
      scratch_piece_bytes<float>(plan.tile_pixels * plan.phases) + 2 * scratch_piece_bytes<float>(plan.tile_pixels) +
      scratch_piece_bytes<float>(columns);
  return plan;
}

int64_t conv_disjoint_tiles(const ConvDisjointPlan& plan, int phase) {
  const ConvShape& s = plan.shape;
  if (s.batch * s.out_points() * s.groups * s.out_channels == 0) return 0;
  if (phase + 1 < conv_disjoint_phases(plan)) return s.batch * s.groups * plan.unfolding.channels;
  const int64_t gaps = plan.has_gaps && !plan.fills ? s.batch * s.groups * s.out_channels : 0;
  return plan.product_tiles() + gaps;
}

void unfold_image(const ConvDisjointPlan& plan, const std::byte* in, std::byte* shared, int64_t tile) {
  const ConvUnfolding& u = plan.unfolding;
  const auto element = static_cast<int64_t>(size_bytes(plan.shape.types.in));
  const int64_t line = u.point(2) * element;
  const int64_t group = tile / u.channels;
  const std::byte* const channel =
      in + (group / plan.shape.groups * u.strides.batch +
            (group % plan.shape.groups * u.channels + tile % u.channels) * u.strides.channel) *
               element;
  std::byte* to = shared + (group * u.count() * u.channels + tile % u.channels) * u.points() * element;
  for (int64_t tap = 0; tap < u.count(); ++tap, to += (u.channels - 1) * u.points() * element) {
    const std::array<int64_t, 3> skipped = u.place_of(tap);
    const int64_t before = skipped[2] * element;
    for (int64_t i = 0; i < u.point(0) * u.point(1); ++i, to += line) {
      const int64_t z = i / u.point(1) - skipped[0];
      const int64_t y = i % u.point(1) - skipped[1];
      if (z < 0 || z >= u.in[0] || y < 0 || y >= u.in[1]) {
        std::memset(to, 0, static_cast<std::size_t>(line));
        continue;
      }
      const std::byte* const from = channel + (z * u.strides.axis[0] + y * u.strides.axis[1]) * element;
      std::memset(to, 0, static_cast<std::size_t>(before));
      if (u.strides.axis[2] == 1) {
        std::memcpy(to + before, from, static_cast<std::size_t>(u.in[2] * element));
      } else {
        for (int64_t x = 0; x < u.in[2]; ++x) {
          std::memcpy(to + before + x * element, from + x * u.strides.axis[2] * element,
                      static_cast<std::size_t>(element));
        }
      }
      std::memset(to + before + u.in[2] * element, 0, static_cast<std::size_t>(line - before - u.in[2] * element));
    }
  }
}

int64_t conv_disjoint_packed_floats(const ConvShape& shape, int width) {
  const ConvDisjointFormat format(shape, width);
  return format.block_words * format.blocks * shape.groups;
}

void pack_conv_disjoint(const ConvShape& given, int width, const float* weights, const WeightStrides& strides,
                        PackShare share, float* packed) {
  const ConvDisjointFormat f(given, width);
  const ConvShape shape = unfolded(given);
  const ConvUnfolding unfolding(given, {});
  const int64_t* k = shape.kernel;
  const int64_t columns = f.lines * k[2];
  const auto place_of = [&](int64_t column) {
    const int64_t line = column / k[2];
    return line / (k[0] * k[1]) * strides.out_step(shape) + line / k[1] % k[0] * strides.axis[0] +
           line % k[1] * strides.axis[1] + column % k[2] * strides.axis[2];
  };
  // Where the weights of an input channel lie as their columns do, a chunk is one run of them.
  const int64_t step = k[2] > 1   ? strides.axis[2]
                       : k[1] > 1 ? strides.axis[1]
                       : k[0] > 1 ? strides.axis[0]
                                  : strides.out_step(shape);
  const bool is_even = unfolding.count() == 1 && (k[1] == 1 || strides.axis[1] == k[2] * step) &&
                       (k[0] == 1 || strides.axis[0] == k[1] * k[2] * step) &&
                       (shape.out_channels == 1 || strides.out_step(shape) == shape.kernel_points() * step);
  std::vector<PanelTap> taps;
  for (int64_t t = 0; t < unfolding.count(); ++t) {
    const auto [d, h, w] = unfolding.place_of(t);
    taps.push_back({d * k[0] * strides.axis[0] + h * k[1] * strides.axis[1] + w * k[2] * strides.axis[2],
                    t * given.in_channels * f.chunk});
  }
  std::sort(taps.begin(), taps.end(), [](const PanelTap& a, const PanelTap& b) { return a.from < b.from; });
  const PackRange chunks(shape.groups * f.blocks * f.chunks, share);
  const bool in_pairs = shape.products == Products::pairs;
  std::vector<float> wide(static_cast<std::size_t>(in_pairs ? 2 * f.words * f.chunk : 0));
  for (int64_t i = chunks.begin; i < chunks.end; ++i) {
    float* const chunk = packed + i * f.chunk * f.words;
    float* const to = in_pairs ? wide.data() : chunk;
    const int64_t in_block = i % f.chunks * f.chunk;
    const int64_t first = i / f.chunks % f.blocks * f.lines_per_block * k[2] + in_block;
    const int64_t end = std::min(columns, first - in_block + f.lines_per_block * k[2]);
    int64_t run = f.chunk;
    for (int64_t column = first; column < first + f.chunk; column += run) {
      // Columns of one line of the kernel lie side by side; those behind the last one are zeros.
      const int64_t left = first + f.chunk - column;
      if (!is_even) run = column < end ? std::min(left, k[2] - column % k[2]) : left;
      write_panel_lines({.from = weights + i / (f.chunks * f.blocks) * strides.group_step(given) +
                                 place_of(std::min(column, columns - 1)),
                         .to = to + column - first,
                         .lanes = run,
                         .filled = std::clamp<int64_t>(end - column, 0, run),
                         .lane_step = step,
                         .channels = given.in_channels,
                         .channel_step = strides.in_step(given),
                         .line_step = f.chunk,
                         .taps = taps.data(),
                         .tap_count = unfolding.count()});
    }
    if (in_pairs) pair_channels(wide.data(), f.words, f.chunk, reinterpret_cast<uint32_t*>(chunk));
  }
}

}  // namespace polyphase::cpu

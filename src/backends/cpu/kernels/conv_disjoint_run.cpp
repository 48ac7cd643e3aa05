// Computes one tile of a transposed convolution whose taps do not meet.
#include "backends/cpu/kernels/conv_disjoint_run.h"

#include <algorithm>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/disjoint_lines.h"
#include "backends/cpu/kernels/planar_input.h"
#include "backends/cpu/kernels/product_tile.h"
#include "backends/cpu/kernels/scratch_pieces.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

class DisjointWork {
 public:
  DisjointWork(const ConvDisjointPlan& plan, const ConvPointers& pointers, std::byte* scratch)
      : plan_(plan),
        f_(plan.format),
        s_(plan.shape),
        p_(pointers),
        direct_margins_(plan.alike_endings && !is_narrow(s_.types.out) && plan.out.axis[2] == 1) {
    place_.channel = -1;  // none has begun
    ScratchPieces pieces(scratch);
    lines_ = pieces.next<HeldLine>(plan.most_held);
    targets_ = pieces.next<ProductTarget>(plan.tile_pixels / vec_width);
    runs_ = pieces.next<ProductRun>(plan.tile_pixels / vec_width * plan.vector_runs);
    line_out_ = pieces.next<int64_t>(f_.columns());
    line_sums_ = pieces.next<int64_t>(f_.columns());
    kernel_lines_ = pieces.next<KernelLine>(f_.lines_per_block);
    panel_ = pieces.next<float>(plan.tile_pixels / plan.pixels * plan.panel_step);
    sums_ = pieces.next<float>(f_.sums() * plan.tile_pixels);
    partial_ = pieces.next<float>(f_.columns() * plan.tile_pixels);
    line_ = pieces.next<float>(plan.tile_pixels * plan.phases);
    gathered_ = pieces.next<float>(plan.tile_pixels);
    untouched_ = pieces.next<float>(plan.tile_pixels);
    bias_ = pieces.next<float>(f_.columns());
    for (int64_t i = 0; i < f_.columns(); ++i) line_sums_[i] = i * f_.leaving * plan.tile_pixels;
  }

  void run(int64_t tile) {
    const int64_t block_tile = tile % plan_.block_tiles;
    tile /= plan_.block_tiles;
    first_ = tile % plan_.pixel_tiles * plan_.tile_pixels;
    last_ = std::min(s_.in_points(), first_ + plan_.tile_pixels);
    tile /= plan_.pixel_tiles;
    const int64_t group0 = tile % plan_.group_tiles * plan_.groups_per_tile;
    place_.batch = tile / plan_.group_tiles;
    const int64_t block0 = block_tile * plan_.blocks_per_tile;
    const int64_t block1 = std::min(f_.blocks, block0 + plan_.blocks_per_tile);
    if (!plan_.by_lines) find_targets();
    find_lines();
    for (group_ = group0; group_ < std::min(s_.groups, group0 + plan_.groups_per_tile); ++group_) {
      if (!plan_.by_lines) fill_panel();
      for (block_ = block0; block_ < block1; ++block_) {
        if (plan_.by_lines) {
          write_by_lines();
          continue;
        }
        if (plan_.fills) fill_lines();
        compute();
        if (lines_ != lines_end_) write();
      }
    }
    finish_streams();
  }

  // The lines of one channel of one image that no tap reaches.
  void run_gaps(int64_t tile) {
    const int64_t channels = s_.groups * s_.out_channels;
    place_.batch = tile / channels;
    begin_channel(tile % channels);
    int64_t run = 0;  // lines before the present one that no tap reaches, and that are filled as one
    const auto fill_run = [&](int64_t end) {
      if (run == 0) return;
      begin_line((end - run) / s_.out[1], (end - run) % s_.out[1]);
      fill(0, run * s_.out[2]);
      run = 0;
    };
    ReachedOutputs planes(plan_, 0);
    for (int64_t z = 0; z < s_.out[0]; ++z) {
      const bool plane_reached = planes.next() && s_.in[2] > 0;
      ReachedOutputs lines(plan_, 1);
      for (int64_t y = 0; y < s_.out[1]; ++y) {
        const bool is_gap = !(lines.next() && plane_reached);
        if (!is_gap || !plan_.joined_lines) fill_run(z * s_.out[1] + y);
        if (is_gap) ++run;
      }
    }
    fill_run(s_.out[0] * s_.out[1]);
    finish_streams();
  }

 private:
  int64_t step(int axis) const { return ConvAxis(s_, axis).phases(); }

  // Whether taps reach the outputs of an axis, one after the other: counted on, since divisions for every line of an
  // image would take longer than to fill those that there are.
  class ReachedOutputs {
   public:
    ReachedOutputs(const ConvDisjointPlan& plan, int axis)
        : step_(ConvAxis(plan.shape, axis).phases()),
          taps_(plan.shape.kernel[axis]),
          end_(step_ * plan.shape.in[axis]),
          at_(plan.crop[axis]),
          phase_(floor_mod(at_, step_)) {}

    bool next() {
      const bool reached = at_ >= 0 && at_ < end_ && phase_ < taps_;
      ++at_;
      if (++phase_ == step_) phase_ = 0;
      return reached;
    }

   private:
    int64_t step_;
    int64_t taps_;
    int64_t end_;
    int64_t at_;  // of the next output without crop
    int64_t phase_;
  };

  StoredImage group_image() const {
    return StoredImage(p_.in, s_.types.in) +
           (plan_.in_first + place_.batch * plan_.in.batch + group_ * s_.in_channels * plan_.in.channel);
  }

  void fill_panel() {
    const PixelPanel panel = {plan_.pixels, plan_.panel_step};
    if (s_.products == Products::pairs)
      return copy_pair_panel(s_, plan_.in, group_image(), first_, last_, panel, gathered_, panel_);
    copy_panel(s_, plan_.in, group_image(), first_, last_, panel, gathered_, panel_);
  }

  int64_t lines_of_block() const { return std::min(f_.lines_per_block, f_.lines - block_ * f_.lines_per_block); }

  // Where the outputs of the vector that begins with a pixel of the tile go straight to, and the runs of those that lie
  // in several lines, written from `runs` on. False: the kernel's lines lead some of them out of the image.
  bool find_straight_target(int64_t pixel, ProductRun* runs, ProductTarget& target) const {
    if (!plan_.straight) return false;
    const StoredResult image = StoredResult(p_.out, s_.types.out) + place_.batch * plan_.out.batch;
    const int64_t begin = first_ + pixel;
    const int64_t end = std::min(last_, begin + vec_width);
    const bool in_words = image.type == DType::bf16 && plan_.phases % 2 == 0;  // two outputs are a lane
    const int64_t lanes = in_words ? 2 * vec_width : vec_width;
    target = {image.data, image.type, line_out_, runs, 0, false};
    for (int64_t point = begin; point < end;) {
      const int64_t line = point / s_.in[2];
      const int64_t next = std::min(end, (line + 1) * s_.in[2]);
      const int64_t at[2] = {line / s_.in[1] * step(0) - plan_.crop[0], line % s_.in[1] * step(1) - plan_.crop[1]};
      for (int a = 0; a < 2; ++a) {
        if (at[a] < 0 || at[a] + s_.kernel[a] > s_.out[a]) return false;
      }
      // Output o of the vector is the line's output o + x.
      const int64_t x = (begin - line * s_.in[2]) * plan_.phases - plan_.crop[2];
      const int64_t from = std::max((point - begin) * plan_.phases, -x);
      const int64_t to = std::min((next - begin) * plan_.phases, s_.out[2] - x);
      const int64_t line_at = at[0] * plan_.out.axis[0] + at[1] * plan_.out.axis[1] + x;
      if (to - from == vec_width * plan_.phases) {
        target = {(image + line_at).data, image.type, line_out_, nullptr, 0, plan_.streams};
        break;
      }
      for (int64_t i = from / lanes; from < to && i * lanes < to; ++i) {
        runs[target.run_count++] = {line_at + i * lanes, static_cast<int32_t>(i),
                                    static_cast<int32_t>(std::max<int64_t>(0, from - i * lanes)),
                                    static_cast<int32_t>(std::min(lanes, to - i * lanes))};
      }
      point = next;
    }
    if (target.runs != nullptr && !(stores_ranges_fast && (image.wide() || in_words))) return false;
    return !plan_.streams || (target.streams && reinterpret_cast<uintptr_t>(target.first) % cache_line == 0);
  }

  void find_targets() {
    const int64_t filled = ceil_div(last_ - first_, plan_.pixels) * plan_.pixels;
    for (int64_t pixel = 0; pixel < filled; pixel += vec_width) {
      ProductTarget& target = targets_[pixel / vec_width];
      if (!find_straight_target(pixel, runs_ + pixel / vec_width * plan_.vector_runs, target))
        target = {reinterpret_cast<std::byte*>(sums_ + pixel * f_.leaving), DType::f32, line_sums_, nullptr, 0, false};
    }
  }

  // The tile's pixels by lines, but for those whose outputs have gone where they belong.
  void find_lines() {
    lines_end_ = lines_;
    const auto is_straight = [&](int64_t point) {
      return !plan_.by_lines && targets_[(point - first_) / vec_width].lines == line_out_;
    };
    for (int64_t point = first_; point < last_;) {
      const int64_t line = point / s_.in[2];
      const int64_t line_end = std::min(last_, (line + 1) * s_.in[2]);
      const auto vector_end = [&](int64_t at) {
        return std::min(line_end, first_ + ((at - first_) / vec_width + 1) * vec_width);
      };
      int64_t end = point;
      while (end < line_end && !is_straight(end)) end = vector_end(end);
      const int64_t q0 = point - line * s_.in[2];
      int64_t next = end;
      while (next < line_end && is_straight(next)) next = vector_end(next);
      const int64_t q1 = next - line * s_.in[2];
      const bool begins = plan_.has_margins() && q0 == 0;
      const bool ends = plan_.has_margins() && q1 == s_.in[2];
      if (end > point || begins || ends) {
        *lines_end_++ = {
            line / s_.in[1] * step(0),
            line % s_.in[1] * step(1),
            q0,
            end - line * s_.in[2],
            point - first_,
            line / s_.in[1] * plan_.in.axis[0] + line % s_.in[1] * plan_.in.axis[1] + q0 * plan_.in.axis[2],
            begins,
            ends};
      }
      point = next;
    }
  }

  // The columns of a block: straight into the output, or into sums_[column][pixel] or [line][pixel][phase].
  void compute() {
    begin_columns();
    const PanelProduct product = {.panel = panel_,
                                  .panel_step = plan_.panel_step,
                                  .block = plan_.pixels,
                                  .pixels = last_ - first_,
                                  .words = f_.words,
                                  .depth = plan_.depth,
                                  .weights = p_.weights + (group_ * f_.blocks + block_) * f_.block_words,
                                  .chunk = f_.chunk,
                                  .columns = lines_of_block() * s_.kernel[2],
                                  .taps = f_.interleaved,
                                  .phases = f_.leaving,
                                  .init = bias_,
                                  .partial = partial_,
                                  .targets = targets_};
    s_.products == Products::pairs ? plan_.pairs(product) : multiply_panel<Products::floats>(product);
  }

  // What the columns of a block begin with, and where its lines lie in the output: counted on, since divisions for
  // every column would take a block of few pixels as long as its products.
  void begin_columns() {
    const int64_t lines = lines_of_block();
    int64_t rest = block_ * f_.lines_per_block;
    int64_t y = rest % s_.kernel[1];
    rest /= s_.kernel[1];
    int64_t z = rest % s_.kernel[0];
    int64_t channel = group_ * s_.out_channels + rest / s_.kernel[0];
    float* bias = bias_;
    for (int64_t i = 0; i < lines; ++i) {
      line_out_[i] = channel * plan_.out.channel + z * plan_.out.axis[0] + y * plan_.out.axis[1];
      bias = std::fill_n(bias, s_.kernel[2], plan_.has_bias ? p_.bias[channel] : 0.0F);
      if (++y < s_.kernel[1]) continue;
      y = 0;
      if (++z < s_.kernel[0]) continue;
      z = 0;
      ++channel;
    }
    std::fill(bias, bias_ + f_.columns(), 0.0F);
  }

  // The output's lines in front of those that the input line at this pixel leads to, in the order in which they lie.
  int64_t lines_before(int64_t pixel) const {
    if (pixel == 0) return 0;
    const int64_t all = s_.out[0] * s_.out[1];
    if (pixel >= s_.in_points()) return all;
    const int64_t line = pixel / s_.in[2];
    const int64_t z = line / s_.in[1] * step(0) - plan_.crop[0];
    const int64_t y = line % s_.in[1] * step(1) - plan_.crop[1];
    if (z < 0 || z >= s_.out[0]) return z < 0 ? 0 : all;
    return z * s_.out[1] + std::clamp<int64_t>(y, 0, s_.out[1]);
  }

  // All lines from the tile's first to the next tile's, of the channels of the block.
  void fill_lines() {
    const int64_t first = lines_before(first_);
    const int64_t end = lines_before(last_);
    for (int64_t i = 0; i < lines_of_block(); ++i) {
      begin_channel(group_ * s_.out_channels + block_ * f_.lines_per_block + i);
      begin_line(0, 0);
      fill(first * s_.out[2], end * s_.out[2]);
    }
  }

  // What went to sums_ to where it belongs: each line of the kernel leads every line of the input to another line.
  void write() {
    for (int64_t i = 0; i < lines_of_block(); ++i) {
      const int64_t line = block_ * f_.lines_per_block + i;
      const int64_t channel = group_ * s_.out_channels + line / (s_.kernel[0] * s_.kernel[1]);
      if (channel != place_.channel) begin_channel(channel);
      float* values = sums_ + i * (s_.kernel[2] / f_.interleaved) * f_.leaving * plan_.tile_pixels;
      if (plan_.phases != f_.leaving) {
        interleave_phases(values);
        values = line_;
      }
      if (plan_.alike_endings) end(values, 0, (last_ - first_) * plan_.phases);
      const int64_t z = line / s_.kernel[1] % s_.kernel[0] - plan_.crop[0];
      const int64_t y = line % s_.kernel[1] - plan_.crop[1];
      for (const HeldLine* q = lines_; q != lines_end_; ++q) {
        if (q->z + z < 0 || q->z + z >= s_.out[0] || q->y + y < 0 || q->y + y >= s_.out[1]) continue;
        if (q->q0 < q->q1) {
          begin_line(q->z + z, q->y + y);
          write_line(*q, values + q->pixel * plan_.phases);
        }
        if (q->begins || q->ends) write_margins(*q, q->z + z, q->y + y);
      }
    }
  }

  // One input channel: its lines become output lines one by one, straight from one image to the other where they can;
  // narrow ones are widened in the room of the panel.
  void write_by_lines() {
    const StoredImage image = group_image();
    const float* weights = p_.weights + (group_ * f_.blocks + block_) * f_.block_words;
    for (int64_t i = 0; i < lines_of_block(); ++i) {
      const int64_t line = block_ * f_.lines_per_block + i;
      kernel_lines_[i] = {line / s_.kernel[1] % s_.kernel[0] - plan_.crop[0], line % s_.kernel[1] - plan_.crop[1],
                          group_ * s_.out_channels + line / (s_.kernel[0] * s_.kernel[1])};
    }
    for (const HeldLine* q = lines_; q != lines_end_; ++q) {
      const StoredImage from = image + q->from;
      if (!from.wide()) load_run(from, 1, panel_, q->q1 - q->q0);
      const float* const pixels = from.wide() ? from.floats() : panel_;
      for (int64_t i = 0; i < lines_of_block(); ++i) {
        const KernelLine& line = kernel_lines_[i];
        const int64_t z = q->z + line.z;
        const int64_t y = q->y + line.y;
        if (z < 0 || z >= s_.out[0] || y < 0 || y >= s_.out[1]) continue;
        if (line.channel != place_.channel) begin_channel(line.channel);
        begin_line(z, y);
        scale_line(*q, pixels, weights + i * s_.kernel[2]);
      }
    }
  }

  void scale_line(const HeldLine& q, const float* from, const float* weights) {
    const int64_t x = q.q0 * plan_.phases - plan_.crop[2];
    const int64_t count = (q.q1 - q.q0) * plan_.phases;
    const bool straight = plan_.direct && x >= 0 && x + count <= s_.out[2];
    float* const values = straight ? out_.floats() + x : line_;
    scale_to_phases(plan_.phases, from, weights, value_, values, q.q1 - q.q0);
    if (straight) {
      end(values, x, count);
    } else {
      if (plan_.alike_endings) end(values, 0, count);
      write_line(q, values);
    }
    if (q.begins || q.ends) write_margins(q, place_.axis[0], place_.axis[1]);
  }

  void begin_channel(int64_t channel) {
    place_.channel = channel;
    channel_out_ = StoredResult(p_.out, s_.types.out) + (place_.batch * plan_.out.batch + channel * plan_.out.channel);
    value_ = plan_.has_bias ? p_.bias[channel] : 0.0F;
    if (s_.kernel[2] < plan_.phases) std::fill_n(untouched_, plan_.tile_pixels, value_);
    margin_ = value_;
    if (plan_.has_margins() && plan_.alike_endings) end(&margin_, 0, 1);
  }

  void begin_line(int64_t z, int64_t y) {
    place_.axis[0] = z;
    place_.axis[1] = y;
    out_ = channel_out_ + (z * plan_.out.axis[0] + y * plan_.out.axis[1]);
  }

  // Outputs of some pixels of a line.
  void write_line(const HeldLine& q, float* values) {
    const int64_t x = q.q0 * plan_.phases - plan_.crop[2];
    const int64_t count = (q.q1 - q.q0) * plan_.phases;
    const int64_t lo = std::clamp<int64_t>(-x, 0, count);
    const int64_t hi = std::clamp<int64_t>(s_.out[2] - x, lo, count);
    if (lo < hi) {
      if (!plan_.alike_endings) end(values + lo, x + lo, hi - lo);
      store_run(x + lo, values + lo, hi - lo);
    }
  }

  // Outputs of line (z, y) beside the image, with the line's first and last pixel.
  void write_margins(const HeldLine& q, int64_t z, int64_t y) {
    if (!direct_margins_) {
      begin_line(z, y);
      if (q.begins) fill(0, plan_.front);
      if (q.ends) fill(plan_.behind, s_.out[2]);
      return;
    }
    float* const line = channel_out_.floats() + z * plan_.out.axis[0] + y * plan_.out.axis[1];
    if (q.begins) fill_margin(line, plan_.front);
    if (q.ends) fill_margin(line + plan_.behind, s_.out[2] - plan_.behind);
  }

  // Few outputs, of which every line has some.
  void fill_margin(float* to, int64_t count) const {
    const VecF margin = broadcast(margin_);
    for (; count >= vec_width; count -= vec_width, to += vec_width) store(to, margin);
    if (count > 0) store_first(to, margin, static_cast<int>(count));
  }

  // All pixels of the tile through one line of the kernel, into line_.
  void interleave_phases(const float* sums) const {
    const int64_t count = last_ - first_;
    if (s_.kernel[2] == plan_.phases) {
      interleave(sums, plan_.tile_pixels, line_, plan_.phases, count);
    } else {
      interleave_first(sums, plan_.tile_pixels, s_.kernel[2], untouched_, line_, plan_.phases, count);
    }
  }

  // Outputs [x0, x1) of the present line that are the bias.
  __attribute__((noinline)) void fill(int64_t x0, int64_t x1) {
    for (; x0 < x1; x0 += plan_.tile_pixels) {
      const int64_t count = std::min(plan_.tile_pixels, x1 - x0);
      std::fill_n(gathered_, count, value_);
      end(gathered_, x0, count);
      store_run(x0, gathered_, count);
    }
  }

  void end(float* values, int64_t x, int64_t count) {
    place_.axis[2] = x;
    apply_endings(plan_.endings, p_.operands, values, count, place_, false);
  }

  void store_run(int64_t x, const float* values, int64_t count) const {
    const int64_t step = plan_.out.axis[2];
    store_line(values, out_ + x * step, step, count, plan_.streams && count >= least_streamed);
  }

  const ConvDisjointPlan& plan_;
  const ConvDisjointFormat& f_;
  const ConvShape& s_;
  const ConvPointers& p_;
  float* panel_;
  float* sums_;
  float* partial_;
  float* line_;
  float* gathered_;
  float* untouched_;          // what outputs are that no tap reaches
  float* bias_;               // of the columns of a block
  ProductTarget* targets_;    // of each vector of pixels
  ProductRun* runs_;          // of those that have several, or not all their outputs
  int64_t* line_out_;         // of the block's lines in the output
  int64_t* line_sums_;        // and in sums_
  KernelLine* kernel_lines_;  // of the block
  HeldLine* lines_;
  HeldLine* lines_end_ = nullptr;
  bool direct_margins_;  // outputs beside a line's pixels can be stored where they belong
  StoredResult channel_out_ = {p_.out, s_.types.out};
  StoredResult out_ = channel_out_;  // of the present line
  float value_ = 0;                  // of a channel's outputs that no tap reaches
  float margin_ = 0;                 // that, after endings that are alike
  int64_t group_ = 0;
  int64_t block_ = 0;
  int64_t first_ = 0, last_ = 0;  // input pixels of the tile
  ResultPlace place_ = {};
};

}  // namespace

void run_conv_disjoint(const ConvDisjointPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                       std::byte* scratch) {
  ConvPointers p = pointers;
  if (conv_disjoint_phases(plan) > 1) {
    if (phase == 0)
      return unfold_image(plan, reinterpret_cast<const std::byte*>(p.in), reinterpret_cast<std::byte*>(p.shared), tile);
    p.in = p.shared;
  }
  DisjointWork run(plan, p, scratch);
  if (tile < plan.product_tiles()) return run.run(tile);
  run.run_gaps(tile - plan.product_tiles());
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

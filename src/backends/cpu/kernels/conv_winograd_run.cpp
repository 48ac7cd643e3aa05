// Computes one block of convolution by minimal filtering: transformed inputs, a product per point, outputs back.
#include "backends/cpu/kernels/conv_winograd_run.h"

#include <algorithm>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/blocked_sum.h"
#include "backends/cpu/kernels/gemm_tile.h"
#include "backends/cpu/kernels/planar_input.h"
#include "backends/cpu/kernels/winograd_transform.h"
#include "backends/cpu/simd/transpose.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

constexpr int vw = vec_width;
constexpr int64_t panel_columns = 2 * vw;

// out[i] = rows[i] * panel for MR rows `pitch` apart and a panel of `depth` lines of NV vectors.
template <int MR, int NV>
void multiply_rows(const float* rows, int64_t pitch, const float* panel, int64_t depth, float* out) {
  for (int64_t first = 0; first == 0 || first < depth; first += sum_piece) {
    const int64_t end = std::min(depth, first + sum_piece);
    VecF acc[MR][NV];
    for (int i = 0; i < MR; ++i) {
      for (int j = 0; j < NV; ++j) acc[i][j] = broadcast(0.0F);
    }
    for (int64_t c = first; c < end; ++c) {
      VecF column[NV];
      for (int j = 0; j < NV; ++j) column[j] = load(panel + j * vw);
      panel += NV * vw;
      for (int i = 0; i < MR; ++i) {
        const VecF a = broadcast(rows[i * pitch + c]);
        for (int j = 0; j < NV; ++j) acc[i][j] = fma(a, column[j], acc[i][j]);
      }
    }
    for (int i = 0; i < MR; ++i) {
      for (int j = 0; j < NV; ++j) {
        float* const to = out + (i * NV + j) * vw;
        store(to, first == 0 ? acc[i][j] : acc[i][j] + load(to));
      }
    }
  }
}

using MultiplyRows = void (*)(const float*, int64_t, const float*, int64_t, float*);

template <int NV, int... Rows>
MultiplyRows pick_rows(int rows, std::integer_sequence<int, Rows...>) {
  static constexpr MultiplyRows table[] = {multiply_rows<Rows + 1, NV>...};
  return table[rows - 1];
}

MultiplyRows multiply_rows_of(int rows, int vectors) {
  if (vectors == 1) return pick_rows<1>(rows, std::make_integer_sequence<int, tile_rows(1)>());
  if (vectors == 2) return pick_rows<2>(rows, std::make_integer_sequence<int, tile_rows(2)>());
  return pick_rows<3>(rows, std::make_integer_sequence<int, tile_rows(3)>());
}

// The first output of a tile: its image, its place in the phase's grid of outputs; and where each output goes, null
// where the image ends before it.
struct TilePlace {
  int64_t batch;
  int64_t q[3];
  float* out[2][2];
};
static_assert(sizeof(TilePlace) == winograd_place_bytes);

class Block {
 public:
  Block(const ConvWinogradPlan& plan, const ConvPointers& pointers, std::byte* scratch)
      : plan_(plan), s_(plan.shape), p_(pointers) {
    const auto take = [&](int64_t bytes) {
      std::byte* const taken = scratch;
      scratch += ceil_div(bytes, 64) * 64;
      return taken;
    };
    inputs_ = reinterpret_cast<float*>(take(plan.max_points * plan.block * plan.pitch * 4));
    products_ = reinterpret_cast<float*>(take(plan.max_points * plan.block * max_vectors * vw * 4));
    bias_ = reinterpret_cast<float*>(take((plan.n_block + max_vectors * vw) * 4));
    zeros_ = reinterpret_cast<float*>(take((s_.in_channels + vw) * 4));
    places_ = reinterpret_cast<TilePlace*>(take(plan.block * winograd_place_bytes));
    const int64_t channels = s_.groups * s_.in_channels;
    in_ = plan.in_copied ? p_.shared : p_.in;
    in_strides_ = plan.in_copied ? copied_strides(s_, channels) : plan.in;
    out_ = plan.out_planar ? p_.shared + plan.result_at : p_.out;
    const int64_t c = s_.groups * s_.out_channels;
    out_strides_ = plan.out;
    if (plan.out_planar) out_strides_ = {s_.out_points() * c, 1, {s_.out[1] * s_.out[2] * c, s_.out[2] * c, c}};
  }

  void run(int64_t number) {
    const int64_t n_tile = number % plan_.n_blocks;
    n0_ = n_tile * plan_.n_block;
    n1_ = n_tile + 1 == plan_.n_blocks ? plan_.format.columns : n0_ + plan_.n_block;
    number /= plan_.n_blocks;
    int64_t phase = number % plan_.phases;
    number /= plan_.phases;
    const int64_t block = number % plan_.blocks;
    group_ = number / plan_.blocks;
    for (int a = 2; a >= 0; --a) {
      const int64_t phases = ConvAxis(s_, a).phases();
      phase_[a] = phase % phases;
      phase /= phases;
    }
    for (int a = 0; a < 3; ++a) axes_[a] = FilterAxis(s_, a, phase_[a]);
    if (n0_ >= n1_ || !place(block)) return;
    std::fill_n(zeros_, s_.in_channels + vw, 0.0F);
    fill_bias();
    const int taps_h = axes_[1].taps();
    const int taps_w = axes_[2].taps();
    if (taps_h == 1) {
      if (taps_w == 1) return run_taps<1, 1>();
      return taps_w == 2 ? run_taps<1, 2>() : run_taps<1, 3>();
    }
    if (taps_h == 2) {
      if (taps_w == 1) return run_taps<2, 1>();
      return taps_w == 2 ? run_taps<2, 2>() : run_taps<2, 3>();
    }
    if (taps_w == 1) return run_taps<3, 1>();
    return taps_w == 2 ? run_taps<3, 2>() : run_taps<3, 3>();
  }

 private:
  // Which tiles the block has; false if none.
  bool place(int64_t block) {
    int64_t tiles[3];
    for (int a = 0; a < 3; ++a) {
      const ConvAxis axis(s_, a);
      first_q_[a] = axis.first_q(phase_[a], 0);
      end_q_[a] = axis.first_q(phase_[a], axis.out);
      tiles[a] = axes_[a].tiles(std::max<int64_t>(0, end_q_[a] - first_q_[a]));
    }
    const int64_t image = tiles[0] * tiles[1] * tiles[2];
    const int64_t first = block * plan_.block;
    count_ = std::min(plan_.block, s_.batch * image - first);
    for (int64_t i = 0; i < count_; ++i) {
      int64_t at = first + i;
      TilePlace& tile = places_[i];
      for (int a = 2; a >= 0; --a) {
        tile.q[a] = first_q_[a] + axes_[a].first_output(at % tiles[a], end_q_[a] - first_q_[a]);
        at /= tiles[a];
      }
      tile.batch = at;
      place_outputs(tile);
    }
    return count_ > 0;
  }

  void place_outputs(TilePlace& tile) const {
    const auto offset = [&](int a, int64_t q) {
      return ConvAxis(s_, a).output_of(phase_[a], q) * out_strides_.axis[a];
    };
    float* const base = out_ + tile.batch * out_strides_.batch + offset(0, tile.q[0]) + group_ * s_.out_channels;
    for (int i = 0; i < 2; ++i) {
      const int64_t h = tile.q[1] + i * axes_[1].output_step();
      for (int j = 0; j < 2; ++j) {
        const int64_t w = tile.q[2] + j * axes_[2].output_step();
        tile.out[i][j] = h < end_q_[1] && w < end_q_[2] ? base + offset(1, h) + offset(2, w) : nullptr;
      }
    }
  }

  void fill_bias() {
    const int64_t columns = plan_.n_block + max_vectors * vw;
    std::fill_n(bias_, columns, 0.0F);
    if (plan_.has_bias) std::copy_n(p_.bias + group_ * s_.out_channels + n0_, n1_ - n0_, bias_);
  }

  template <int RH, int RW>
  void run_taps() {
    for (int64_t i = 0; i < count_; ++i) transform_tile<RH, RW>(places_[i], inputs_ + i * plan_.pitch);
    const PanelGrid panels(plan_.format.columns, vw);
    const int64_t last = std::min(panels.count(), ceil_div(n1_, panel_columns));
    for (int64_t panel = n0_ / panel_columns; panel < last; ++panel) {
      column_ = panel * panel_columns;
      vectors_ = panels.vectors_of(panel);
      multiply(filter_points(RH) * filter_points(RW));
      for (int64_t i = 0; i < count_; ++i) {
        const float* products = products_ + i * vectors_ * vw;
        for (int j = 0; j < vectors_; ++j) finish_tile<RH, RW>(places_[i], products + j * vw, column_ + j * vw);
      }
    }
    if (plan_.fast_endings) return;
    for (int64_t i = 0; i < count_; ++i) end_tile<RH, RW>(places_[i]);
  }

  // Offset of an input line or pixel along an axis; -1 outside, where the input is zero.
  int64_t input_offset(int a, int64_t at) const {
    if (s_.pad_mode != PadMode::zero) at = padded_index(s_.pad_mode, at, s_.in[a]);
    return at < 0 || at >= s_.in[a] ? -1 : at * in_strides_.axis[a];
  }

  // Row `to` of every point's matrix: the filters' transformed inputs one after the other.
  template <int RH, int RW>
  void transform_tile(const TilePlace& tile, float* to) {
    constexpr int PH = filter_points(RH);
    constexpr int PW = filter_points(RW);
    const float* const image = in_ + tile.batch * in_strides_.batch + group_ * s_.in_channels * in_strides_.channel;
    for (int64_t fd = 0; fd < axes_[0].filters(); ++fd) {
      const int64_t plane = input_offset(0, axes_[0].first_input(tile.q[0], fd));
      for (int64_t fh = 0; fh < axes_[1].filters(); ++fh) {
        const int64_t h = axes_[1].first_input(tile.q[1], fh);
        int64_t lines[PH];
        for (int i = 0; i < PH; ++i) {
          const int64_t line = plane < 0 ? -1 : input_offset(1, h + i * axes_[1].point_step());
          lines[i] = line < 0 ? -1 : plane + line;
        }
        for (int64_t fw = 0; fw < axes_[2].filters(); ++fw) {
          const int64_t w = axes_[2].first_input(tile.q[2], fw);
          const float* from[PH][PW];
          for (int j = 0; j < PW; ++j) {
            const int64_t pixel = input_offset(2, w + j * axes_[2].point_step());
            for (int i = 0; i < PH; ++i) from[i][j] = (lines[i] | pixel) < 0 ? zeros_ : image + lines[i] + pixel;
          }
          transform_channels<RH, RW>(from, to);
          to += s_.in_channels;
        }
      }
    }
  }

  // Whole vectors are written: what is too much is the next filter's, or the room at the end of the row.
  template <int RH, int RW>
  POLYPHASE_INLINE void transform_channels(const float* const (&from)[filter_points(RH)][filter_points(RW)],
                                           float* to) const {
    constexpr int PH = filter_points(RH);
    constexpr int PW = filter_points(RW);
    const int64_t apart = plan_.block * plan_.pitch;
    for (int64_t c = 0; c < s_.in_channels; c += vw) {
      const int lanes = static_cast<int>(std::min<int64_t>(vw, s_.in_channels - c));
      VecF v[PW][PH];
      for (int j = 0; j < PW; ++j) {
        for (int i = 0; i < PH; ++i) v[j][i] = lanes == vw ? load(from[i][j] + c) : load_first(from[i][j] + c, lanes);
        transform_inputs<RH>(v[j]);
      }
      for (int i = 0; i < PH; ++i) {
        VecF row[PW];
        for (int j = 0; j < PW; ++j) row[j] = v[j][i];
        transform_inputs<RW>(row);
        for (int j = 0; j < PW; ++j) store(to + (i * PW + j) * apart + c, row[j]);
      }
    }
  }

  // products_[point][tile][vectors * vw] of the present panel.
  void multiply(int points) {
    const int64_t depth = axes_[0].filters() * axes_[1].filters() * axes_[2].filters() * s_.in_channels;
    const int64_t all_columns = ceil_div(plan_.format.columns, vw) * vw;
    const float* panel = p_.weights + group_ * plan_.format.group_size +
                         conv_winograd_line(s_, phase_[0], phase_[1], phase_[2]) * all_columns +
                         points * depth * column_;
    const int64_t lanes = vectors_ * vw;
    const int64_t tiles = ceil_div(count_, tile_rows(vectors_));
    for (int point = 0; point < points; ++point, panel += depth * lanes) {
      const float* rows = inputs_ + point * plan_.block * plan_.pitch;
      float* out = products_ + point * plan_.block * lanes;
      for (int64_t i = 0, row = 0; i < tiles; ++i) {
        const int count = static_cast<int>(count_ / tiles + (i < count_ % tiles ? 1 : 0));
        multiply_rows_of(count, vectors_)(rows + row * plan_.pitch, plan_.pitch, panel, depth, out + row * lanes);
        row += count;
      }
    }
  }

  // One vector of columns of a tile's outputs.
  template <int RH, int RW>
  POLYPHASE_INLINE void finish_tile(const TilePlace& tile, const float* products, int64_t column) const {
    constexpr int PH = filter_points(RH);
    constexpr int PW = filter_points(RW);
    constexpr int OH = filter_outputs(RH);
    constexpr int OW = filter_outputs(RW);
    const int64_t lanes = std::min<int64_t>(vw, n1_ - column);
    if (lanes <= 0) return;
    const int64_t apart = plan_.block * vectors_ * vw;
    VecF rows[PH][OW];
    for (int i = 0; i < PH; ++i) {
      VecF m[PW];
      for (int j = 0; j < PW; ++j) m[j] = load(products + (i * PW + j) * apart);
      transform_products<RW>(m, rows[i]);
    }
    const VecF bias = load(bias_ + column - n0_);
    for (int j = 0; j < OW; ++j) {
      VecF m[PH];
      VecF y[OH];
      for (int i = 0; i < PH; ++i) m[i] = rows[i][j];
      transform_products<RH>(m, y);
      for (int i = 0; i < OH; ++i) {
        if (tile.out[i][j] == nullptr) continue;
        float* const to = tile.out[i][j] + column;
        const VecF value = activate(y[i] + bias);
        if (lanes == vw) {
          store(to, value);
        } else {
          store_first(to, value, static_cast<int>(lanes));
        }
      }
    }
  }

  POLYPHASE_INLINE VecF activate(VecF x) const {
    if (!plan_.fast_endings || plan_.endings.count == 0) return x;
    const EndingStep& step = plan_.endings.steps[0];
    const VecF zero = broadcast(0.0F);
    if (step.kind == EndingKind::relu) return max(zero, x);
    return select(less(x, zero), x * broadcast(step.alpha), x);
  }

  // Other endings, while the results are in the caches.
  template <int RH, int RW>
  void end_tile(const TilePlace& tile) const {
    for (int i = 0; i < filter_outputs(RH); ++i) {
      for (int j = 0; j < filter_outputs(RW); ++j) {
        if (tile.out[i][j] == nullptr) continue;
        const int64_t q[3] = {tile.q[0], tile.q[1] + i * axes_[1].output_step(),
                              tile.q[2] + j * axes_[2].output_step()};
        ResultPlace place = {tile.batch, group_ * s_.out_channels + n0_, {}};
        for (int a = 0; a < 3; ++a) place.axis[a] = ConvAxis(s_, a).output_of(phase_[a], q[a]);
        apply_endings(plan_.endings, p_.operands, tile.out[i][j] + n0_, n1_ - n0_, place, true);
      }
    }
  }

  const ConvWinogradPlan& plan_;
  const ConvShape& s_;
  const ConvPointers& p_;
  const float* in_ = nullptr;
  ImageStrides in_strides_ = {};
  float* out_ = nullptr;
  ImageStrides out_strides_ = {};

  float* inputs_ = nullptr;    // [point][tile][filter d, h, w][in channel], rows plan.pitch apart
  float* products_ = nullptr;  // [point][tile][column of the panel]
  float* bias_ = nullptr;
  float* zeros_ = nullptr;
  TilePlace* places_ = nullptr;

  FilterAxis axes_[3];
  int64_t phase_[3] = {};
  int64_t first_q_[3] = {};
  int64_t end_q_[3] = {};
  int64_t group_ = 0;
  int64_t n0_ = 0, n1_ = 0;
  int64_t count_ = 0;  // of tiles
  int64_t column_ = 0;
  int vectors_ = 0;
};

// Block `tile` of points of the channels-last result, turned to where the image lies.
void turn_result(const ConvWinogradPlan& plan, const ConvPointers& p, int64_t tile) {
  const ConvShape& s = plan.shape;
  const int64_t points = s.out_points();
  const int64_t channels = s.groups * s.out_channels;
  const int64_t blocks = ceil_div(points, plan.turn_points);
  const int64_t image = tile / blocks;
  const int64_t last = std::min(points, (tile % blocks + 1) * plan.turn_points);
  const bool lines_join = (s.out[1] == 1 || plan.out.axis[1] == s.out[2]) &&
                          (s.out[0] == 1 || plan.out.axis[0] == s.out[1] * s.out[2]) && plan.out.axis[2] == 1;
  const int64_t run = lines_join ? points : s.out[2];
  const float* from = p.shared + plan.result_at + image * points * channels;
  for (int64_t point = tile % blocks * plan.turn_points; point < last;) {
    const int64_t end = std::min(last, (point / run + 1) * run);
    const int64_t line = point / s.out[2];
    float* const to = p.out + image * plan.out.batch + line / s.out[1] * plan.out.axis[0] +
                      line % s.out[1] * plan.out.axis[1] + point % s.out[2] * plan.out.axis[2];
    transpose_to_rows(from + point * channels, channels, to, plan.out.channel, end - point, channels, plan.past_caches);
    point = end;
  }
}

}  // namespace

void run_conv_winograd(const ConvWinogradPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                       std::byte* scratch) {
  if (plan.in_copied && phase-- == 0) {
    copy_channels_last(plan.shape, plan.in, pointers.in, pointers.shared, plan.shape.groups * plan.shape.in_channels,
                       plan.turn_points, tile);
  } else if (phase == 1) {
    turn_result(plan, pointers, tile);
  } else {
    Block(plan, pointers, scratch).run(tile);
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

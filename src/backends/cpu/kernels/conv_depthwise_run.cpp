// Computes one tile of depthwise convolution.
#include "backends/cpu/kernels/conv_depthwise_run.h"

#include <algorithm>

#include "backends/cpu/kernels/apply_endings.h"
#include "backends/cpu/kernels/planar_input.h"
#include "backends/cpu/kernels/stored_image.h"
#include "backends/cpu/kernels/tile_endings.h"
#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/simd/unrolled.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

constexpr int pixels = 6;        // outputs of one phase beside each other: 12 accumulators with two vectors of channels
constexpr int slid_pixels = 8;   // that share their inputs: 8 accumulators with one vector of channels
constexpr int64_t few_taps = 3;  // along the last axis

// The same number, of which the compiler knows nothing: it would keep each multiple in memory where address modes
// multiply for nothing.
POLYPHASE_INLINE int64_t in_address(int64_t floats) {
  asm("" : "+r"(floats));
  return floats;
}

// An input line that the present output line reads, and the weights of its kernel row.
struct TapLine {
  const float* in;
  const float* weights;
};

class DepthwiseWork {
 public:
  DepthwiseWork(const ConvDepthwisePlan& plan, const ConvPointers& pointers, std::byte* scratch)
      : plan_(plan), s_(plan.shape), p_(pointers), d_(s_, 0), h_(s_, 1), w_(s_, 2) {
    lines_ = reinterpret_cast<TapLine*>(scratch);
    scratch += ceil_div(plan.max_taps * 16, 64) * 64;
    bias_ = reinterpret_cast<float*>(scratch);
    scratch += ceil_div(plan.pitch * 4, 64) * 64;
    staging_ = reinterpret_cast<float*>(scratch);
    in_ = plan.in_copied ? p_.shared : p_.in;
    in_strides_ = plan.in;
    if (plan.in_copied) {
      const int64_t c = plan.channels;
      in_strides_ = pixel_strides(s_.in, c);
    }
    std::fill_n(bias_, plan.pitch, 0.0F);
    if (plan.has_bias) std::copy_n(p_.bias, plan.channels, bias_);
  }

  void run(int64_t tile) {
    x0_ = tile % plan_.x_blocks * plan_.x_block;
    x1_ = std::min(s_.out[2], x0_ + plan_.x_block);
    const int64_t line0 = tile / plan_.x_blocks * plan_.lines_per_tile;
    const int64_t line1 = std::min(s_.batch * s_.out[0] * s_.out[1], line0 + plan_.lines_per_tile);
    for (int64_t line = line0; line < line1; ++line) run_line(line);
  }

 private:
  void run_line(int64_t line) {
    place_ = {line / (s_.out[0] * s_.out[1]), 0, {line / s_.out[1] % s_.out[0], line % s_.out[1], x0_}};
    find_lines();
    if (plan_.out_planar) {
      out_ = staging_ - x0_ * plan_.channels;
      out_pitch_ = plan_.channels;
    } else {
      out_ = p_.out + place_.batch * plan_.out.batch + place_.axis[0] * plan_.out.axis[0] +
             place_.axis[1] * plan_.out.axis[1];
      out_pitch_ = plan_.out.axis[2];
    }
    for (int64_t r = 0; r < w_.phases(); ++r) {
      taps_ = w_.taps(r);
      run_phase(r);
    }
    end_line();
  }

  static int64_t phase_of(const ConvAxis& axis, int64_t o) {
    return axis.transposed ? floor_mod(o + axis.pre, axis.stride) : 0;
  }

  void find_lines() {
    const int64_t phase_d = phase_of(d_, place_.axis[0]);
    const int64_t phase_h = phase_of(h_, place_.axis[1]);
    const AxisTaps taps_d = d_.taps(phase_d);
    const AxisTaps taps_h = h_.taps(phase_h);
    const int64_t first_d = d_.in_step() * d_.first_q(phase_d, place_.axis[0]) + taps_d.first_shift;
    const int64_t first_h = h_.in_step() * h_.first_q(phase_h, place_.axis[1]) + taps_h.first_shift;
    line_count_ = 0;
    const int64_t next_h = first_h + (taps_h.count - 1) * taps_h.shift_step + 1;
    const bool fetches = plan_.fetches_ahead && first_d >= 0 && first_d < s_.in[0] && next_h >= 0 && next_h < s_.in[1];
    ahead_ = fetches
                 ? in_ + place_.batch * in_strides_.batch + first_d * in_strides_.axis[0] + next_h * in_strides_.axis[1]
                 : nullptr;
    for (int64_t i = 0; i < taps_d.count; ++i) {
      const int64_t id = first_d + i * taps_d.shift_step;
      if (id < 0 || id >= s_.in[0]) continue;
      for (int64_t j = 0; j < taps_h.count; ++j) {
        const int64_t ih = first_h + j * taps_h.shift_step;
        if (ih < 0 || ih >= s_.in[1]) continue;
        const int64_t kernel_row =
            (taps_d.first_index + i * taps_d.index_step) * s_.kernel[1] + taps_h.first_index + j * taps_h.index_step;
        lines_[line_count_++] = {
            in_ + place_.batch * in_strides_.batch + id * in_strides_.axis[0] + ih * in_strides_.axis[1],
            p_.weights + kernel_row * s_.kernel[2] * plan_.pitch};
      }
    }
  }

  // By blocks of pixels, each with all channels, so that what lies behind each other in memory is read and written so;
  // of many taps, whose blocks share more of what they read, by channels, each with all pixels.
  void run_phase(int64_t r) {
    const int64_t q0 = w_.first_q(r, x0_);
    const int64_t q1 = w_.first_q(r, x1_);
    if (const Slide* slide = slide_of()) return slide_phase(*slide, r, q0, q1);
    // Between `from` and `to` every tap reads inside the input.
    const auto [from, to] = w_.inside(taps_, q0, q1);
    int64_t q = q0;
    for (; q < from; ++q) run_edge(r, q);
    const int64_t together = taps_.count <= few_taps ? pixels : (to - q) / pixels * pixels;
    for (; q + pixels <= to; q += together) run_blocks<pixels>(r, q, q + together, 0, taps_.count);
    for (; q < to; ++q) run_blocks<1>(r, q, q + 1, 0, taps_.count);
    for (; q < q1; ++q) run_edge(r, q);
  }

  // Outputs as far apart as their taps are, which read what their neighbours read as well: each input column is loaded
  // once for all of them.
  //
  //   columns   0 1 2 3 … 9      three taps
  //   output 0  └───┘            the first taps of output i read column i
  //   output 1    └───┘
  struct SlidPixels {
    int64_t phase;
    int64_t q;  // of the first
    int64_t count;
    int64_t from;  // columns [from, to) lie inside the image
    int64_t to;
  };
  struct Slide {
    int taps;
    void (DepthwiseWork::*inside)(const SlidPixels&);  // as many as there may be, with all their columns
    void (DepthwiseWork::*anywhere)(const SlidPixels&);
  };

  template <int Taps>
  static constexpr Slide slide() {
    return {Taps, &DepthwiseWork::slide_pixels<Taps, true>, &DepthwiseWork::slide_pixels<Taps, false>};
  }

  // Null where nothing is shared.
  const Slide* slide_of() const {
    if constexpr (vec_width > 4) {
      static constexpr Slide all[] = {slide<1>(), slide<2>(), slide<3>(), slide<4>(), slide<5>(), slide<7>()};
      if (plan_.channels < vw || !shares_columns(taps_.count, w_.in_step(), vw)) return nullptr;
      return std::find_if(std::begin(all), std::end(all), [&](const Slide& each) { return each.taps == taps_.count; });
    }
    return nullptr;
  }

  void slide_phase(const Slide& slide, int64_t phase, int64_t q0, int64_t q1) {
    const int64_t apart = taps_.shift_step;
    const int64_t columns = slid_pixels - 1 + slide.taps;
    for (int64_t first = q0; first < std::min(q0 + apart, q1); ++first) {
      const int64_t count = ceil_div(q1 - first, apart);
      for (int64_t i = 0; i < count; i += slid_pixels) {
        // The last ones once more, rather than a few by themselves.
        const int64_t begin = std::max<int64_t>(0, std::min(i, count - slid_pixels));
        const int64_t q = first + begin * apart;
        const int64_t at = q + taps_.first_shift;  // of column 0
        const int64_t from = std::clamp<int64_t>(ceil_div(-at, apart), 0, columns);
        const int64_t to = std::clamp<int64_t>(ceil_div(s_.in[2] - at, apart), 0, columns);
        const int64_t together = std::min<int64_t>(slid_pixels, count - begin);
        const bool is_inside = together == slid_pixels && from == 0 && to == columns;
        (this->*(is_inside ? slide.inside : slide.anywhere))({phase, q, together, from, to});
      }
    }
  }

  template <int Taps, bool Inside>
  __attribute__((noinline)) void slide_pixels(const SlidPixels& p) {
    const int64_t apart = taps_.shift_step;
    float* const out = out_ + w_.output_of(p.phase, p.q) * out_pitch_;
    const int64_t out_step = w_.phases() * apart * out_pitch_;
    const int64_t start = (p.q + taps_.first_shift) * in_strides_.axis[2];
    const int64_t in_step = apart * in_strides_.axis[2];
    const int64_t first_weight = taps_.first_index * plan_.pitch;
    const int64_t weight_step = taps_.index_step * plan_.pitch;
    const float* const ahead = ahead_ == nullptr ? nullptr : ahead_ + p.q * in_strides_.axis[2];
    for (int64_t c = 0;;) {
      if (Inside && ahead != nullptr) {
        float* to = out + c;
        const float* next = ahead + c;
        unrolled<slid_pixels>([&](int) POLYPHASE_INLINE_LAMBDA {
          prefetch_for_store(to);
          __builtin_prefetch(next, 0, 2);
          to += out_step;
          next += in_step;
        });
      }
      VecF acc[slid_pixels];
      const VecF bias = load(bias_ + c);
      unrolled<slid_pixels>([&](int i) POLYPHASE_INLINE_LAMBDA { acc[i] = bias; });
      for (int64_t l = 0; l < line_count_; ++l) {
        const float* in = lines_[l].in + start + c;
        const float* weight = lines_[l].weights + first_weight + c;
        VecF w[Taps];
        unrolled<Taps>([&](int t) POLYPHASE_INLINE_LAMBDA {
          w[t] = load(weight);
          weight += weight_step;
        });
        unrolled<slid_pixels - 1 + Taps>([&](int j) POLYPHASE_INLINE_LAMBDA {
          if (Inside || (j >= p.from && j < p.to)) {
            VecF x = load(in);
            hold(x);
            unrolled<Taps>([&](int t) POLYPHASE_INLINE_LAMBDA {
              if (j >= t && j - t < slid_pixels) acc[j - t] = fma(x, w[t], acc[j - t]);
            });
          }
          in += in_step;
        });
      }
      activate(endings_, acc);
      float* to = out + c;
      unrolled<slid_pixels>([&](int i) POLYPHASE_INLINE_LAMBDA {
        if (Inside || i < p.count) store(to, acc[i]);
        to += out_step;
      });
      if (c + vw == plan_.channels) break;
      c = std::min(c + vw, plan_.channels - vw);  // the last ones once more, rather than a part of a vector
    }
  }

  // Taps [first, last) of the pixels [q0, q1), P at a time.
  template <int P>
  void run_blocks(int64_t r, int64_t q0, int64_t q1, int64_t first, int64_t last) {
    int64_t c = 0;
    for (; c + 2 * vw <= plan_.channels; c += 2 * vw) {
      for (int64_t q = q0; q < q1; q += P) run_pixels<P, 2>(r, q, c, first, last, vw);
    }
    for (; c < plan_.channels; c += vw) {
      for (int64_t q = q0; q < q1; q += P) run_pixels<P, 1>(r, q, c, first, last, lanes_of(plan_.channels - c));
    }
  }

  // A pixel some of whose taps fall outside.
  void run_edge(int64_t r, int64_t q) {
    int64_t first = 0;
    int64_t last = taps_.count;
    const int64_t base = w_.in_step() * q + taps_.first_shift;
    while (first < last && base + first * taps_.shift_step < 0) ++first;
    while (last > first && base + (last - 1) * taps_.shift_step >= s_.in[2]) --last;
    run_blocks<1>(r, q, q + 1, first, last);
  }

  template <int P, int V>
  __attribute__((noinline)) void run_pixels(int64_t r, int64_t q, int64_t c, int64_t first, int64_t last, int lanes) {
    float* const out = out_ + w_.output_of(r, q) * out_pitch_ + c;
    const int64_t out_step = (w_.transposed ? w_.stride : 1) * out_pitch_;
    // Stores that wait for memory would stop the loads of what comes next.
    if (P > 1) unrolled<P>([&](int i) POLYPHASE_INLINE_LAMBDA { prefetch_for_store(out + i * out_step); });
    if (P > 1 && ahead_ != nullptr) {
      const float* const next = ahead_ + q * in_strides_.axis[2] + c;
      unrolled<P>([&](int i) POLYPHASE_INLINE_LAMBDA { __builtin_prefetch(next + i * in_strides_.axis[2], 0, 2); });
    }
    VecF acc[P * V];  // [pixel][vector]
    unrolled<P * V>([&](int i) POLYPHASE_INLINE_LAMBDA { acc[i] = load(bias_ + c + i % V * vw); });
    const int64_t pitch = w_.in_step() * in_strides_.axis[2];
    const int64_t shift = taps_.shift_step * in_strides_.axis[2];
    const int64_t start = (w_.in_step() * q + taps_.first_shift) * in_strides_.axis[2] + c;
    for (int64_t l = 0; l < line_count_; ++l) {
      const float* in = lines_[l].in + start + first * shift;
      const float* weight = lines_[l].weights + (taps_.first_index + first * taps_.index_step) * plan_.pitch + c;
      for (int64_t t = first; t < last; ++t) {
        const int64_t step = in_address(pitch);
        const float* const half = in + P / 2 * step;
        unrolled<V>([&](int j) POLYPHASE_INLINE_LAMBDA {
          const VecF w = load(weight + j * vw);
          unrolled<P>([&](int i) POLYPHASE_INLINE_LAMBDA {
            const float* x = (i < P / 2 ? in + i * step : half + (i - P / 2) * step) + j * vw;
            acc[i * V + j] = fma(V == 2 || lanes == vw ? load(x) : load_first(x, lanes), w, acc[i * V + j]);
          });
        });
        in += shift;
        weight += taps_.index_step * plan_.pitch;
      }
    }
    activate(endings_, acc);
    unrolled<P>([&](int i) POLYPHASE_INLINE_LAMBDA {
      float* to = out + i * out_step;
      unrolled<V>([&](int j) POLYPHASE_INLINE_LAMBDA {
        if (V == 2 || lanes == vw) {
          store(to + j * vw, acc[i * V + j]);
        } else {
          store_first(to, acc[i * V + j], lanes);
        }
      });
    });
  }

  void end_line() {
    const int64_t channels = plan_.channels;
    if (!plan_.out_planar) {
      if (plan_.brief.are_all) return;
      if (plan_.run_endings) {
        apply_endings(plan_.endings, p_.operands, out_ + x0_ * out_pitch_, (x1_ - x0_) * channels, place_, true);
        return;
      }
      place_.axis[2] = x0_;
      apply_endings(plan_.endings, p_.operands, out_ + x0_ * out_pitch_, channels, place_, true,
                    {x1_ - x0_, out_pitch_, 1});
      return;
    }
    const int64_t at = place_.batch * plan_.out.batch + place_.axis[0] * plan_.out.axis[0] +
                       place_.axis[1] * plan_.out.axis[1] + x0_ * plan_.out.axis[2];
    if (is_narrow(s_.types.out)) return end_narrow_line(StoredResult(p_.out, s_.types.out) + at);
    float* const to = p_.out + at;
    transpose_to_rows(staging_, channels, to, plan_.out.channel, x1_ - x0_, channels,
                      plan_.past_caches && plan_.brief.are_all);
    if (plan_.brief.are_all) return;
    for (place_.channel = 0; place_.channel < channels; ++place_.channel) {
      apply_endings(plan_.endings, p_.operands, to + place_.channel * plan_.out.channel, x1_ - x0_, place_, false);
    }
  }

  void end_narrow_line(StoredResult to) const {
    const auto end = [&](int64_t channel, int64_t x, float* values, int64_t count) {
      ResultPlace place = place_;
      place.channel = channel;
      place.axis[2] = x0_ + x;
      apply_endings(plan_.endings, p_.operands, values, count, place, false);
    };
    turn_to_narrow_rows(staging_, plan_.channels,
                        {to, plan_.out.channel, plan_.out.axis[2], plan_.past_caches, !plan_.brief.are_all}, x1_ - x0_,
                        plan_.channels, end);
  }

  const ConvDepthwisePlan& plan_;
  const ConvShape& s_;
  const ConvPointers& p_;
  ConvAxis d_;
  ConvAxis h_;
  ConvAxis w_;
  TapLine* lines_;
  float* bias_;
  float* staging_;
  const float* in_;
  ImageStrides in_strides_;
  int64_t line_count_ = 0;
  int64_t x0_ = 0;
  int64_t x1_ = 0;
  ResultPlace place_ = {};
  AxisTaps taps_ = {};
  float* out_ = nullptr;
  const float* ahead_ = nullptr;  // the input line behind those that are read, to be fetched meanwhile; or null
  int64_t out_pitch_ = 0;
  const TileEndings endings_ = {plan_.brief, p_.out, p_.operands};
};

// Phase 0: channels-last, each channel repeated by the multiplier. `pixel` holds a channel of each group.
void copy_input(const ConvDepthwisePlan& plan, const ConvPointers& p, int64_t tile, float* pixel) {
  const ConvShape& s = plan.shape;
  if (s.out_channels == 1) {
    copy_channels_last(s, plan.in, p.in, p.shared, plan.channels, plan.convert_points, tile);
    return;
  }
  const int64_t blocks = ceil_div(s.in_points(), plan.convert_points);
  const int64_t image = tile / blocks;
  const int64_t first = tile % blocks * plan.convert_points;
  const int64_t last = std::min(first + plan.convert_points, s.in_points());
  for (int64_t i = first; i < last; ++i) {
    const int64_t line = i / s.in[2];
    const int64_t at = image * plan.in.batch + line / s.in[1] * plan.in.axis[0] + line % s.in[1] * plan.in.axis[1] +
                       i % s.in[2] * plan.in.axis[2];
    load_run(StoredImage(p.in, s.types.in) + at, plan.in.channel, pixel, s.groups);
    float* to = p.shared + (image * s.in_points() + i) * plan.channels;
    for (int64_t g = 0; g < s.groups; ++g) {
      for (int64_t m = 0; m < s.out_channels; ++m) *to++ = pixel[g];
    }
  }
}

}  // namespace

void run_conv_depthwise(const ConvDepthwisePlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                        std::byte* scratch) {
  if (plan.in_copied && phase == 0) {
    copy_input(plan, pointers, tile, reinterpret_cast<float*>(scratch));
    return;
  }
  DepthwiseWork(plan, pointers, scratch).run(tile);
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

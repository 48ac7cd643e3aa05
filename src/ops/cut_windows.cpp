// Cutting what slides windows: convolutions, their transposes, pools.
//
// Of a piece of n places, `low` and `high` of which are spoiled, an output is right if its window reads none of these
// and nothing beyond the piece's ends. What is padded or cropped at the ends of the whole is so at the ends of each
// piece; so outputs keep their places, and the padding's reach is spoiled.
#include <algorithm>

#include "ops/cut.h"

namespace polyphase {
namespace {

using Integers = std::vector<std::int64_t>;
using Dims = std::vector<Dim>;

struct CutWindow {
  std::int64_t taps;
  std::int64_t taps_span;  // (k - 1) * dilation + 1
  std::int64_t stride;
  std::int64_t dilation;
  std::int64_t pre;
  std::int64_t in;   // places of the operand in the piece
  std::int64_t out;  // of the result
};

struct WindowAnswer {
  CutWindow window = {};
  std::string refusal;
};

WindowAnswer window_of(const CutContext& context, const Dim& taps) {
  const auto refused = [](std::string why) { return WindowAnswer{{}, std::move(why)}; };
  const CutState& x = context.state(0);
  if (x.axis < 2) return refused("mixes the whole of " + axis_words(x) + ", its channels");
  const auto spatial = static_cast<std::size_t>(x.axis - 2);
  const Dim& pre = context.attributes().get<Dims>("pre")[spatial];
  if (!pre.is_constant())
    return refused("pads or crops at the beginning of " + axis_words(x) + " by a computed number, " + pre.text());
  const auto in = context.operand_size(0);
  const auto out = context.in_piece(context.result().shape[x.axis]);
  if (!taps.is_constant() || !in.has_value() || !out.has_value())
    return refused("has sizes along " + axis_words(x) + " that depend on other sizes");
  const std::int64_t dilation = context.attributes().get<Integers>("dilation")[spatial];
  return {{taps.value(), (taps.value() - 1) * dilation + 1, context.attributes().get<Integers>("stride")[spatial],
           dilation, pre.value(), *in, *out},
          {}};
}

// Minimal filtering computes two outputs at once that lie `apart`, or four where `filters_fours` allows it or a line of
// so many taps is filtered twice: pieces that begin with the first of them round as the whole. Of two, and of lines
// that are filtered twice, each is computed from what its own window reads; of `filters_fours` from what the windows of
// all read, so that those beside a spoiled one are spoiled.
void keep_together(const CutContext& context, CutState& y, std::int64_t taps, std::int64_t apart, std::int64_t out) {
  constexpr std::int64_t filtered_twice = 4;
  const bool fours = context.attributes().get<bool>("filters_fours");
  const std::int64_t together = (fours || taps >= filtered_twice ? 4 : 2) * apart;
  context.align(y, together);
  if (!fours) return;
  y.low = ceil_div(y.low, together) * together;
  y.high = out - std::max<std::int64_t>(0, floor_div(out - y.high, together) * together);
}

CutAnswer cut_forward(const CutContext& context, const WindowAnswer& found) {
  if (!found.refusal.empty()) return found.refusal;
  const CutWindow& w = found.window;
  const CutState& x = context.state(0);
  CutState y = scaled(x, 1, w.stride);
  // Output o reads o * stride - pre … + span - 1.
  y.low = std::max<std::int64_t>(0, ceil_div(x.low + w.pre, w.stride));
  const std::int64_t right = floor_div(w.in - x.high - w.taps_span + w.pre, w.stride) + 1;
  y.high = std::max<std::int64_t>(0, w.out - right);
  return y;
}

}  // namespace

CutAnswer cut_conv(const CutContext& context) {
  const CutState& x = context.state(0);
  if (context.any_cut(1)) return "takes weights that lie in pieces";
  if (x.axis == 0) return x;
  const auto found = window_of(context, x.axis < 2 ? Dim(1) : context.operand(1).shape[x.axis]);
  CutAnswer y = cut_forward(context, found);
  const CutWindow& w = found.window;
  if (y.refusal.empty()) keep_together(context, y.state, w.taps, w.dilation, w.out);
  return y;
}

CutAnswer cut_pool(const CutContext& context) {
  const CutState& x = context.state(0);
  if (x.axis < 2) return x;
  const auto spatial = static_cast<std::size_t>(x.axis - 2);
  return cut_forward(context, window_of(context, Dim(context.attributes().get<Integers>("kernel")[spatial])));
}

CutAnswer cut_conv_transpose(const CutContext& context) {
  const CutState& x = context.state(0);
  if (context.any_cut(1)) return "takes weights that lie in pieces";
  if (x.axis == 0) return x;
  const auto found = window_of(context, x.axis < 2 ? Dim(1) : context.operand(1).shape[x.axis]);
  if (!found.refusal.empty()) return found.refusal;
  const CutWindow& w = found.window;
  CutState y = scaled(x, w.stride, 1);
  // Output o holds what inputs (o + pre - t * dilation) / stride scatter.
  y.low = std::max<std::int64_t>(0, (x.low - 1) * w.stride + w.taps_span - w.pre);
  y.high = std::max<std::int64_t>(0, w.out - ((w.in - x.high) * w.stride - w.pre));
  const std::int64_t most_taps = w.dilation == 1 ? ceil_div(w.taps, w.stride) : w.taps;  // of a phase
  keep_together(context, y, most_taps, w.stride * w.dilation, w.out);
  return y;
}

}  // namespace polyphase

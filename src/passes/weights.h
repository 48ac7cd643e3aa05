// Convolution weights rewritten as nodes: the order of their axes, and which way round the taps lie.
#pragma once

#include "passes/rewrite.h"

namespace polyphase {

// From conv's (Cout, Cin/g, k…) to conv_transpose's (Cin, Cout/g, k…), or the other way: inside each group the two
// channel axes change places.
Value* swap_channels(Rewrite& rewrite, Value* weights, std::int64_t groups);
// The taps in reverse order along the axes from `first_axis` on.
Value* flip_taps(Rewrite& rewrite, Value* weights, int first_axis);

// The attributes that conv and conv_transpose share.
struct ConvolutionWindow {
  explicit ConvolutionWindow(const Node& node);
  Attributes attributes() const;
  bool has_stride_one() const;

  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> dilation;
  std::int64_t groups = 1;
  std::vector<Dim> pre;
  std::vector<Dim> post;
  DType products = DType::f32;
  bool rounds_transformed = false;
  bool filters_fours = false;
};

}  // namespace polyphase

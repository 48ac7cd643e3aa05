// Sliding windows over one to three spatial axes: the rules and the tap loops that conv, conv_transpose and the pools
// share.
//
// A window ties the positions of a small grid to those of a big one, along each axis:
//
//   big = small * stride + tap * dilation - pre          0 <= small < small_size, 0 <= big < big_size
//
// conv and pools gather (small: result, big: operand); conv_transpose scatters (small: operand, big: result).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/op.h"

namespace polyphase {

// The attributes that conv, conv_transpose and the pools list alike.
struct WindowAttributes {
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> dilation;
  std::vector<Dim> pre;
  std::vector<Dim> post;
};

// Reads stride, dilation, pre, post; refuses a wrong number of entries and strides or dilations below 1.
Result<WindowAttributes> window_attributes(const InferContext& context, const std::string& op, int spatial);

// What conv and conv_transpose demand alike: ranks 3 to 5 and equal, one numeric dtype, groups >= 1, kernel sizes >= 1.
Result<WindowAttributes> check_convolution(const InferContext& context, const std::string& op);
// `products`: how convolutions and matrix products may multiply.
AttributeSpec products_attribute();
Result<void> check_products(const InferContext& context, const std::string& op);
AttributeSpec transformed_attribute();
AttributeSpec fours_attribute();
// The bias, if there is one, is 1-D with one entry per output channel.
Result<void> check_bias(const InferContext& context, const std::string& op, const Dim& channels);

// (k - 1) * d + 1: what a kernel of k taps spans.
inline Dim dilated_kernel(const Dim& taps, std::int64_t dilation) { return (taps - 1) * Dim(dilation) + 1; }

struct WindowAxis {
  std::int64_t small_size = 1;
  std::int64_t big_size = 1;
  std::int64_t taps = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pre = 0;
};

// Where one tap meets both grids: small positions small, small + 1, … and big positions big, big + stride, …, count of
// each.
struct TapSpan {
  std::int64_t tap = 0;
  std::int64_t small = 0;
  std::int64_t big = 0;
  std::int64_t count = 0;
};
// The spans of an axis that are not empty.
std::vector<TapSpan> tap_spans(const WindowAxis& axis);

// Three axes; operators of lower rank have trivial leading ones.
class Window {
 public:
  explicit Window(const std::vector<WindowAxis>& axes);

  std::int64_t small_count() const { return axes_[0].small_size * axes_[1].small_size * axes_[2].small_size; }
  std::int64_t big_count() const { return axes_[0].big_size * axes_[1].big_size * axes_[2].big_size; }
  std::int64_t tap_count() const { return axes_[0].taps * axes_[1].taps * axes_[2].taps; }
  std::int64_t inner_stride() const { return axes_[2].stride; }
  const WindowAxis& axis(std::size_t i) const { return axes_[i]; }

  // f(tap, small, big, count) for every tap and row: small positions small + i meet big positions big + i *
  // inner_stride().
  template <typename F>
  void for_each_row(F&& f) const {
    for (const TapSpan& z : spans_[0]) {
      for (const TapSpan& y : spans_[1]) {
        for (const TapSpan& x : spans_[2]) {
          const std::int64_t tap = (z.tap * axes_[1].taps + y.tap) * axes_[2].taps + x.tap;
          for (std::int64_t i = 0; i < z.count; ++i) {
            for (std::int64_t j = 0; j < y.count; ++j) {
              const std::int64_t small_row = (z.small + i) * axes_[1].small_size + y.small + j;
              const std::int64_t big_row =
                  (z.big + i * axes_[0].stride) * axes_[1].big_size + y.big + j * axes_[1].stride;
              f(tap, small_row * axes_[2].small_size + x.small, big_row * axes_[2].big_size + x.big, x.count);
            }
          }
        }
      }
    }
  }

 private:
  std::array<WindowAxis, 3> axes_;
  std::array<std::vector<TapSpan>, 3> spans_;
};

// The window of concrete operands whose spatial axes begin at axis 2 and whose attributes are complete.
Window make_window(const Attributes& attributes, const std::vector<std::int64_t>& taps, const TensorView& small,
                   const TensorView& big);

}  // namespace polyphase

// Strides of views, symbolic sizes included.
#include "lower/view.h"

#include <gtest/gtest.h>

namespace polyphase {
namespace {

std::string strides_text(const std::optional<std::vector<Dim>>& strides) {
  return strides.has_value() ? Shape(*strides).text() : "none";
}

TEST(View, ReshapeKeepsStridesWhereRunsAreContiguous) {
  const Dim n = Dim::symbol("N", {1, 100});
  const Dim c = Dim::symbol("C", {1, 100});
  const Dim h = Dim::symbol("H", {1, 100});
  const Dim w = Dim::symbol("W", {1, 100});
  const Shape image{n, c, h, w};
  const auto planar = Layout::row_major(4).dense_strides(image.dims());
  const auto last = Layout::channels_last(4).dense_strides(image.dims());
  EXPECT_EQ(strides_text(reshape_strides(image, planar, {n, c * h * w})), "[C*H*W, 1]");
  EXPECT_EQ(strides_text(reshape_strides(image, planar, {n, c, h, 1, w, 1})), "[C*H*W, H*W, W, 1, 1, 1]");
  EXPECT_EQ(strides_text(reshape_strides(image, last, {n, c, h * w})), "[C*H*W, 1, C]");
  EXPECT_EQ(strides_text(reshape_strides(image, last, {n, c * h * w})), "none");
  EXPECT_EQ(strides_text(reshape_strides({n, c * 4, h}, {c * h * 4, h, 1}, {n, c, 2, 2, h})),
            "[4*C*H, 4*H, 2*H, H, 1]");
  // The rest of both sides is equal because the whole is, though nobody can prove it.
  EXPECT_EQ(strides_text(reshape_strides({n, c}, {c, 1}, {h, w})), "[W, 1]");
  EXPECT_EQ(strides_text(reshape_strides({1, 1}, {1, 1}, {})), "[]");
}

TEST(View, WindowsAndBroadcastsMoveAndStop) {
  const Dim h = Dim::symbol("H", {1, 100});
  const Placement whole{0, {h * 4, 4, 1}};
  View window{View::Kind::window, {}, {0, 1, 3}, {1, 2, -1}};
  const auto cut = apply(window, {2, h, 4}, whole, {2, 1, 2});
  EXPECT_EQ(cut->offset.text(), "7");
  EXPECT_EQ(Shape(cut->strides).text(), "[4*H, 8, -1]");
  View expand{View::Kind::expand, {}, {}, {}};
  const auto wide = apply(expand, {1, h}, {5, {h, 1}}, {3, 2, h});
  EXPECT_EQ(Shape(wide->strides).text(), "[0, 0, 1]");
  EXPECT_FALSE(apply(expand, {h}, {0, {1}}, {Dim::symbol("W")}).has_value());
}

}  // namespace
}  // namespace polyphase

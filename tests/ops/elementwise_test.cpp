// The elementwise tables: broadcasting, integer edges, strides, sizes as contents.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/registry.h"

namespace polyphase {
namespace {

const Registry& registry() {
  static const Registry built_in = Registry::built_in();
  return built_in;
}

Tensor integers(DType dtype, std::vector<std::int64_t> sizes, std::vector<std::int64_t> values) {
  return Tensor::from_integers(dtype, sizes, values);
}

std::vector<std::int64_t> run(std::string_view op, Attributes attributes, const std::vector<Tensor>& inputs) {
  const OpDef& definition = registry().at(op);
  const auto results = evaluate_reference(definition, definition.complete(std::move(attributes)).value(), inputs);
  EXPECT_TRUE(results.ok()) << (results.ok() ? "" : results.error().text());
  std::vector<std::int64_t> out;
  if (!results.ok()) return out;
  const TensorView& view = results->front().view();
  for (std::int64_t i = 0; i < view.element_count(); ++i) {
    out.push_back(load_integer(view.data + i * static_cast<std::int64_t>(size_bytes(view.dtype)), view.dtype));
  }
  return out;
}

using Values = std::vector<std::int64_t>;

TEST(Elementwise, BroadcastsLikeNumpy) {
  EXPECT_EQ(run("add", {}, {integers(DType::i32, {2, 1}, {10, 20}), integers(DType::i32, {3}, {1, 2, 3})}),
            (Values{11, 12, 13, 21, 22, 23}));
  EXPECT_EQ(run("less", {}, {integers(DType::u64, {2}, {-1, 1}), integers(DType::u64, {}, {2})}), (Values{0, 1}));
}

TEST(Elementwise, IntegersAreTotal) {
  EXPECT_EQ(
      run("div", {}, {integers(DType::i64, {4}, {-7, 7, INT64_MIN, 5}), integers(DType::i64, {4}, {2, -2, -1, 0})}),
      (Values{-3, -3, INT64_MIN, 0}));
  EXPECT_EQ(run("mod", {}, {integers(DType::i64, {4}, {-7, 7, 7, 5}), integers(DType::i64, {4}, {3, -3, 3, 0})}),
            (Values{2, -2, 1, 0}));
  EXPECT_EQ(run("mod", {{"fmod", true}}, {integers(DType::i64, {2}, {-7, 7}), integers(DType::i64, {2}, {3, -3})}),
            (Values{-1, 1}));
  EXPECT_EQ(run("pow", {}, {integers(DType::i32, {4}, {2, -1, 3, 2}), integers(DType::i32, {4}, {10, -3, 0, -1})}),
            (Values{1024, -1, 1, 0}));
  EXPECT_EQ(run("mul", {}, {integers(DType::i8, {1}, {100}), integers(DType::i8, {1}, {3})}), (Values{44}));
}

}  // namespace
}  // namespace polyphase

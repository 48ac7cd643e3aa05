// Adds uses of several operators to random graphs.
#include "passes/graph_patterns.h"

#include <array>
#include <numeric>

namespace polyphase {

void GraphPatterns::gate() {
  Value* x = recent();
  if (pick(2) == 0 || !is_image(x)) {
    Value* gate = graph_->must_add("sigmoid", {}, {x}, "v");
    return keep(add("mul", {}, {x, gate}, bound_.at(x)));
  }
  Integers axes;
  for (int i = 2; i < x->type.shape.rank(); ++i) axes.push_back(i);
  const Attributes over({{"axes", axes}});
  Value* mean = graph_->must_add("reduce_mean", over, {x}, "v");
  Value* difference = graph_->must_add("sub", {}, {x, mean}, "v");
  Value* square = graph_->must_add("mul", {}, {difference, difference}, "v");
  Value* variance = graph_->must_add("reduce_mean", over, {square}, "v");
  Value* sum = graph_->must_add("add", {}, {variance, constant({}, 1, 1)}, "v");
  Value* root = graph_->must_add("sqrt", {}, {sum}, "v");
  keep(add("div", {}, {difference, root}, 100));
}

void GraphPatterns::overlap() {
  Value* x = recent();
  if (exact_ || !is_image(x) || x->type.shape.rank() != 3) return;
  const Shape shape = x->type.shape;
  const std::int64_t points = between(2, 9);
  Value* real = graph_->must_add("reshape", Attributes({{"shape", Dims{shape[0], shape[1], shape[2], 1}}}), {x}, "v");
  Value* imaginary = pick(2) == 0 ? real : graph_->must_add("neg", {}, {real}, "v");
  Value* z = graph_->must_add("concat", Attributes({{"axis", std::int64_t{3}}}), {real, imaginary}, "v");
  Value* frames = graph_->must_add(
      "dft", Attributes({{"axis", std::int64_t{1}}, {"length", Dim(points)}, {"inverse", true}, {"onesided", true}}),
      {z}, "v");
  frames = graph_->must_add("reshape", Attributes({{"shape", Dims{shape[0], points, shape[2]}}}), {frames}, "v");
  frames = graph_->must_add("mul", {}, {frames, constant({points, 1}, -2, 2)}, "v");
  Value* weights = pick(2) == 0 ? diagonal({points, points, 1}) : constant({points, 1, points}, -1, 1);
  keep(add("conv_transpose",
           Attributes({{"stride", Integers{between(1, points)}},
                       {"dilation", Integers{1}},
                       {"pre", Dims{0}},
                       {"post", Dims{pick(2)}}}),
           {frames, weights}, bound_.at(x) * 100));
}

void GraphPatterns::part() {
  Value* x = recent();
  if (!is_image(x)) return;
  const std::int64_t channels = x->type.shape[1].value();
  const auto spatial = static_cast<std::size_t>(x->type.shape.rank() - 2);
  const Integers stride(spatial, between(1, 2));
  Value* terms[2];
  const std::int64_t results = between(1, 3);
  for (std::int64_t i = 0; i < 2; ++i) {
    Integers sizes(spatial + 2, i == 0 ? 3 : 1);
    sizes[0] = results;
    sizes[1] = channels;
    const Dims around(spatial, 1 - i);
    terms[i] = graph_->must_add(
        "conv", Attributes({{"stride", stride}, {"dilation", Integers(spatial, 1)}, {"pre", around}, {"post", around}}),
        {x, constant(sizes, -2, 2)}, "v");
  }
  const double products = static_cast<double>(channels) * (1 + std::pow(3.0, static_cast<double>(spatial)));
  keep(add(pick(2) == 0 ? "add" : "sub", {}, {terms[0], terms[1]}, bound_.at(x) * 2 * products));
}

void GraphPatterns::gather() {
  Value* x = recent();
  if (!is_image(x)) return;
  const Attributes along({{"axis", std::int64_t{1}}});
  std::vector<Value*> images{x};
  for (std::int64_t layers = between(2, 3); layers > 0; --layers) {
    Value* joined = images.size() == 1 ? x : graph_->must_add("concat", along, images, "v");
    images.push_back(graph_->must_add(pick(2) == 0 ? "reduce_max" : "reduce_min",
                                      Attributes({{"axes", Integers{1}}, {"keep", true}}), {joined}, "v"));
  }
  keep(add("concat", along, images, bound_.at(x)));
}

void GraphPatterns::modulate() {
  Value* x = recent();
  if (!is_image(x)) return;
  const bool transposed = pick(2) == 0;
  const std::int64_t channels = x->type.shape[1].value();
  const std::int64_t results = between(1, 4);
  const auto spatial = static_cast<std::size_t>(x->type.shape.rank() - 2);
  const auto clip = [&](Value* value) {
    return graph_->must_add("clip", Attributes({{"low", -2.0}, {"high", 2.0}}), {value}, "v");
  };
  Integers all(spatial + 2);
  std::iota(all.begin(), all.end(), 0);
  Integers others = all;
  others.erase(others.begin() + 1);
  Value* factors = clip(graph_->must_add("reduce_sum", Attributes({{"axes", others}}), {clip(x)}, "v"));
  Integers sizes = transposed ? Integers{channels, results} : Integers{results, channels};
  Dims beside = transposed ? Dims{channels, 1} : Dims{1, channels};
  sizes.resize(spatial + 2, between(1, 3));
  beside.resize(spatial + 2, 1);
  factors = graph_->must_add("reshape", Attributes({{"shape", beside}}), {factors}, "v");
  Value* weights = constant(sizes, -2, 2);
  if (weights == nullptr) return;
  weights = graph_->must_add("mul", {}, {weights, factors}, "v");
  if (pick(2) == 0) {
    all.erase(all.begin() + (transposed ? 1 : 0));
    Value* squares = graph_->must_add("square", {}, {weights}, "v");
    Value* sums = clip(graph_->must_add("reduce_sum", Attributes({{"axes", all}}), {squares}, "v"));
    weights = graph_->must_add("mul", {}, {weights, sums}, "v");
  }
  const Integers ones(spatial, 1);
  const double products = static_cast<double>(channels) * std::pow(3.0, static_cast<double>(spatial));
  keep(add(transposed ? "conv_transpose" : "conv",
           Attributes({{"stride", ones}, {"dilation", ones}, {"pre", Dims(spatial, 1)}, {"post", Dims(spatial, 1)}}),
           {x, weights}, bound_.at(x) * 8 * products));
}

void GraphPatterns::quantise() {
  Value* x = recent();
  if (!exact_ || !is_image(x)) return;
  const bool transposed = pick(2) == 0;
  const std::int64_t channels = x->type.shape[1].value();
  const std::int64_t results = between(1, 3);
  const std::int64_t factor = pick(3) == 0 ? 40000 : 1;  // sums that f32 does not hold, but for few of them
  const auto spatial = static_cast<std::size_t>(x->type.shape.rank() - 2);
  const auto integers = [&](const Integers& sizes, std::int64_t low, std::int64_t high, std::int64_t times) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    std::vector<double> elements;
    for (std::int64_t i = 0; i < count; ++i) elements.push_back(static_cast<double>(between(low, high) * times));
    const Attributes value({{"value", Tensor::from_values(DType::i32, sizes, elements)}});
    return graph_->must_add("constant", value, {}, "v");
  };
  const auto cast = [&](Value* value, DType to) {
    return graph_->must_add("cast", Attributes({{"to", to}}), {value}, "v");
  };
  Value* stored = cast(cast(x, pick(2) == 0 ? DType::i8 : DType::u8), DType::i32);
  if (pick(2) == 0) stored = graph_->must_add("sub", {}, {stored, integers({}, -3, 3, 1)}, "v");
  Integers sizes = transposed ? Integers{channels, results} : Integers{results, channels};
  sizes.resize(spatial + 2, between(1, 3));
  std::vector<Value*> inputs{stored, integers(sizes, -2, 2, factor)};
  if (pick(2) == 0) inputs.push_back(integers({results}, -3, 3, factor));
  const Integers ones(spatial, 1);
  Value* sums =
      add(transposed ? "conv_transpose" : "conv",
          Attributes({{"stride", ones}, {"dilation", ones}, {"pre", Dims(spatial, 1)}, {"post", Dims(spatial, 1)}}),
          inputs, 1);
  if (sums == nullptr) return;
  if (factor != 1) sums = graph_->must_add("div", {}, {sums, integers({}, 1, 1, factor)}, "v");
  const double products = static_cast<double>(channels) * std::pow(3.0, static_cast<double>(spatial));
  keep(add("cast", Attributes({{"to", dtype_}}), {sums}, 260 * 2 * products));
}

void GraphPatterns::attend() {
  Value* x = recent();
  if (exact_ || !is_image(x)) return;
  const auto last = static_cast<std::int64_t>(x->type.shape.rank() - 1);
  Integers order(static_cast<std::size_t>(last + 1));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  Value* small = graph_->must_add("sigmoid", {}, {x}, "v");
  Value* scale = graph_->must_add(
      "constant", Attributes({{"value", Tensor::from_values(dtype_, {}, std::array{fraction_})}}), {}, "v");
  Value* query = pick(2) == 0 ? graph_->must_add("mul", {}, {small, scale}, "v") : small;
  Value* key = graph_->must_add("transpose", Attributes({{"order", order}}), {small}, "v");
  Value* scores = graph_->must_add("matmul", {}, {query, key}, "v");
  if (query == small) scores = graph_->must_add("div", {}, {scores, constant({}, 2, 4)}, "v");
  if (pick(2) == 0) scores = graph_->must_add("add", {}, {constant({}, -2, 2), scores}, "v");
  Value* weights = graph_->must_add("softmax", Attributes({{"axis", last}}), {scores}, "v");
  keep(add("matmul", {}, {weights, x}, bound_.at(x)));
}

}  // namespace polyphase

// The generator: grows a graph by one random use of an operator at a time; what the shape rules refuse is not added.
#include "passes/random_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "passes/graph_patterns.h"

namespace polyphase {
namespace {

class Grower : private GraphPatterns {
 public:
  Grower(const Registry& registry, std::uint64_t seed) : GraphPatterns(registry, seed) {}

  RandomGraph run() {
    const int rank = static_cast<int>(pick(4)) == 0 ? 3 + 2 * static_cast<int>(pick(2)) : 4;
    const Dims input = input_shape(rank);
    for (std::int64_t i = 0; i <= pick(2); ++i) {
      Value* x = graph_->add_input("x" + std::to_string(i), {dtype_, Shape(input)});
      remember(x, 4);
    }
    const std::int64_t steps = 4 + pick(14);
    for (std::int64_t i = 0; i < steps; ++i) grow();
    graph_->add_output(values_.back(), "last");
    if (pick(2) == 0) graph_->add_output(any(), "other");
    return {std::move(graph_), exact_};
  }

 private:
  void grow() {
    using Step = void (Grower::*)();
    constexpr Step steps[] = {
        &Grower::convolve,  &Grower::convolve,      &Grower::convolve,      &Grower::normalise,  &Grower::unary,
        &Grower::unary,     &Grower::with_constant, &Grower::with_constant, &Grower::with_other, &Grower::with_other,
        &Grower::pad,       &Grower::slice,         &Grower::slice,         &Grower::concat,     &Grower::reshape,
        &Grower::transpose, &Grower::change_layout, &Grower::pool,          &Grower::shuffle,    &Grower::reduce,
        &Grower::choose,    &Grower::resize,        &Grower::insert_zeros,  &Grower::cast_twice, &Grower::gated,
        &Grower::branch,    &Grower::attend,        &Grower::overlap,       &Grower::modulate,   &Grower::part,
        &Grower::gather,    &Grower::quantise};
    (this->*steps[pick(std::size(steps))])();
  }
  void convolve() {
    Value* x = recent();
    if (!is_image(x)) return;
    const bool transposed = pick(2) == 0;
    const std::int64_t channels = x->type.shape[1].value();
    std::int64_t groups = pick(4) == 0 ? channels : 1;
    const std::int64_t per_group = between(1, groups == 1 ? 4 : 2);
    const auto spatial = static_cast<std::size_t>(x->type.shape.rank() - 2);
    std::vector<std::int64_t> sizes =
        transposed ? Integers{channels, per_group} : Integers{per_group * groups, channels / groups};
    Integers stride;
    Integers dilation;
    Dims pre;
    Dims post;
    const bool plain = pick(3) == 0;
    for (std::size_t i = 0; i < spatial; ++i) {
      sizes.push_back(between(1, 3));
      stride.push_back(plain ? 1 : between(1, 3));
      dilation.push_back(plain ? 1 : between(1, 2));
      pre.push_back(between(-1, 2));
      post.push_back(between(-1, 2));
    }
    Value* weights = sizes[0] == sizes[1] && pick(3) == 0 ? diagonal(sizes) : constant(sizes, -2, 2);
    if (weights != nullptr && pick(4) == 0) weights = add("neg", {}, {weights}, 2);
    if (weights == nullptr) return;
    std::vector<Value*> inputs{x, weights};
    if (pick(2) == 0) inputs.push_back(constant({per_group * groups}, -3, 3));
    double taps = 2;
    for (std::size_t i = 1; i < sizes.size(); ++i) taps *= static_cast<double>(sizes[i]);
    if (transposed) taps = 2 * static_cast<double>(channels) * std::pow(3.0, static_cast<double>(spatial));
    keep(add(transposed ? "conv_transpose" : "conv",
             Attributes({{"stride", stride}, {"dilation", dilation}, {"groups", groups}, {"pre", pre}, {"post", post}}),
             inputs, bound_.at(x) * taps + 3));
  }

  void normalise() {
    Value* x = recent();
    if (!is_image(x)) return;
    const Integers channels{x->type.shape[1].value()};
    Value* one = constant(channels, 1, 1);
    keep(add("batch_norm", Attributes({{"epsilon", pick(2) == 0 ? 0.0 : 3.0}}),
             {x, constant(channels, -2, 2), constant(channels, -3, 3), constant(channels, -2, 2), one},
             bound_.at(x) * 2 + 7));
  }

  void unary() {
    Value* x = recent();
    const double bound = bound_.at(x);
    constexpr const char* exact[] = {"relu", "neg", "abs", "identity", "floor", "relu"};
    constexpr const char* inexact[] = {"sigmoid", "tanh", "silu", "softplus"};
    if (pick(5) == 0) return keep(add("leaky_relu", Attributes({{"alpha", fraction_}}), {x}, bound * 2));
    if (!exact_ && pick(2) == 0) return keep(add(inexact[pick(4)], {}, {x}, bound + 1));
    keep(add(exact[pick(6)], {}, {x}, bound));
  }

  void with_constant() {
    Value* x = recent();
    const Shape& shape = x->type.shape;
    Integers sizes;
    if (shape.rank() >= 2 && shape[1].is_constant() && pick(3) != 0) {
      sizes = {shape[1].value()};
      for (int i = 2; i < shape.rank(); ++i) sizes.push_back(1);
    }
    constexpr const char* ops[] = {"add", "sub", "mul", "div", "max"};
    const char* op = ops[pick(5)];
    if (fraction_ > 1 && op[0] == 'd') return;
    const bool neutral = pick(4) == 0;
    const bool divides = std::string_view(op) == "div";
    const std::int64_t element = divides || op[0] == 'm' ? 1 : 0;
    Value* c = divides   ? constant(sizes, neutral ? 1 : 2, neutral ? 1 : 2)
               : neutral ? constant(sizes, element, element)
                         : constant(sizes, -3, 3);
    if (c == nullptr) return;
    const bool swapped = !divides && pick(2) == 0;
    keep(add(op, {}, swapped ? std::vector<Value*>{c, x} : std::vector<Value*>{x, c}, bound_.at(x) * 3 + 3));
  }

  void with_other() {
    Value* x = recent();
    constexpr const char* ops[] = {"add", "sub", "min", "mul", "add"};
    for (int i = 0; i < 8; ++i) {
      Value* y = any();
      if (!(y->type == x->type)) continue;
      const char* op = ops[pick(5)];
      const double bound = op[1] == 'u' && op[0] == 'm' ? bound_.at(x) * bound_.at(y) : bound_.at(x) + bound_.at(y);
      return keep(add(op, {}, {x, y}, bound));
    }
  }

  void pad() {
    Value* x = recent();
    if (!is_image(x)) return;
    constexpr const char* modes[] = {"constant", "constant", "constant", "reflect", "edge"};
    const auto rank = static_cast<std::size_t>(x->type.shape.rank());
    Dims pre(rank, 0);
    Dims post(rank, 0);
    for (std::size_t i = 2; i < rank; ++i) {
      pre[i] = between(-1, 2);
      post[i] = between(-1, 2);
    }
    const double value = pick(4) == 0 ? 2 : 0;
    keep(add("pad", Attributes({{"pre", pre}, {"post", post}, {"mode", std::string(modes[pick(5)])}, {"value", value}}),
             {x}, bound_.at(x) + 2));
  }

  void slice() {
    Value* x = recent();
    const Shape& shape = x->type.shape;
    Dims start(static_cast<std::size_t>(shape.rank()), 0);
    Dims size = shape.dims();
    Integers step(start.size(), 1);
    for (std::size_t i = shape.rank() > 2 ? 2 : 0; i < start.size(); ++i) {
      if (pick(2) == 0) continue;
      start[i] = between(0, 1);
      size[i] = size[i] - start[i] - Dim(between(0, 1));
      if (pick(6) == 0) {
        start[i] = shape[static_cast<int>(i)] - 1;
        step[i] = -1;
      }
    }
    keep(add("slice", Attributes({{"start", start}, {"size", size}, {"step", step}}), {x}, bound_.at(x)));
  }

  void concat() {
    Value* x = recent();
    if (x->type.shape.rank() < 2) return;
    std::vector<Value*> inputs{x};
    double bound = bound_.at(x);
    for (int i = 0; i < 6 && inputs.size() < 3; ++i) {
      Value* y = any();
      if (y->type.shape.rank() != x->type.shape.rank()) continue;
      inputs.push_back(y);
      bound = std::max(bound, bound_.at(y));
    }
    Value* joined = add("concat", Attributes({{"axis", std::int64_t{1}}}), inputs, bound);
    if (joined != nullptr && pick(2) == 0) joined = add("relu", {}, {joined}, bound);
    keep(joined);
  }

  // An `if` by a constant condition.
  void branch() {
    Value* x = recent();
    std::vector<std::unique_ptr<Graph>> regions;
    for (const char* op : {"neg", "relu"}) {
      regions.push_back(std::make_unique<Graph>(graph_->registry()));
      Graph& region = *regions.back();
      region.name = op;
      Value* a = region.add_input("a", x->type);
      region.add_output(region.must_add(op, {}, {a}, "r"), "r");
    }
    const Tensor which = Tensor::from_integers(DType::boolean, {}, std::array{pick(2)});
    Value* condition = graph_->must_add("constant", Attributes({{"value", which}}), {}, "v");
    auto node = graph_->add("if", {}, {condition, x}, "v", nullptr, std::move(regions));
    if (node.ok()) remember((*node)->output(), bound_.at(x));
  }

  // Two axes become one, and sometimes two again.
  void reshape() {
    Value* x = recent();
    const Shape shape = x->type.shape;
    if (shape.rank() < 3) return;
    const auto at = static_cast<std::size_t>(pick(shape.rank() - 1));
    Dims joined = shape.dims();
    joined[at] = joined[at] * joined[at + 1];
    joined.erase(joined.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    Value* y = add("reshape", Attributes({{"shape", joined}}), {x}, bound_.at(x));
    if (y != nullptr && pick(3) != 0) y = add("reshape", Attributes({{"shape", shape.dims()}}), {y}, bound_.at(x));
    keep(y);
  }

  void transpose() {
    Value* x = recent();
    Integers order;
    for (int i = 0; i < x->type.shape.rank(); ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), random_);
    Value* y = add("transpose", Attributes({{"order", order}}), {x}, bound_.at(x));
    if (y != nullptr && pick(2) == 0) {
      Integers back(order.size());
      for (std::size_t i = 0; i < order.size(); ++i)
        back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
      y = add("transpose", Attributes({{"order", back}}), {y}, bound_.at(x));
    }
    keep(y);
  }

  // Into other axes or blocks, perhaps through an activation, and perhaps back.
  void change_layout() {
    Value* x = recent();
    const int rank = x->type.shape.rank();
    if (!is_image(x)) return;
    const std::string plain = "NC" + std::string("DHW").substr(static_cast<std::size_t>(5 - rank));
    std::string other = plain;
    if (pick(2) == 0) std::shuffle(other.begin(), other.end(), random_);
    const bool blocked = rank < 5 && pick(2) == 0;
    if (blocked) other += std::to_string(between(2, 4)) + "c";
    Value* y = add("layout_transform", Attributes({{"from_layout", plain}, {"to_layout", other}}), {x}, bound_.at(x));
    if (y != nullptr && pick(2) == 0) y = add("relu", {}, {y}, bound_.at(x));
    if (y != nullptr && pick(4) != 0) {
      const Dim channels = blocked && pick(4) != 0 ? x->type.shape[1] : Dim(0);
      y = add("layout_transform", Attributes({{"from_layout", other}, {"to_layout", plain}, {"channels", channels}}),
              {y}, bound_.at(x));
    }
    keep(y);
  }

  void pool() {
    Value* x = recent();
    if (!is_image(x)) return;
    const auto spatial = static_cast<std::size_t>(x->type.shape.rank() - 2);
    const bool averages = fraction_ < 1 && pick(2) == 0;
    Attributes attributes({{"kernel", Integers(spatial, 2)},
                           {"stride", Integers(spatial, between(1, 2))},
                           {"dilation", Integers(spatial, 1)},
                           {"pre", Dims(spatial, pick(2))},
                           {"post", Dims(spatial, 0)}});
    if (averages) attributes.set("include_pad", true);
    keep(add(averages ? "avg_pool" : "max_pool", attributes, {x}, bound_.at(x)));
  }

  // A convolution to 4 times the channels, spread over 2 × 2 places; by its word, or as exporters write it.
  void shuffle() {
    Value* x = recent();
    if (!is_image(x) || x->type.shape.rank() != 4) return;
    const std::int64_t channels = between(1, 2);
    const std::int64_t side = between(1, 2);
    Value* weights = constant({channels * 4, x->type.shape[1].value(), side, side}, -2, 2);
    if (weights == nullptr) return;
    const double bound = bound_.at(x) * 2 * static_cast<double>(x->type.shape[1].value() * side * side);
    const Integers ones(2, 1);
    Value* y =
        add("conv", Attributes({{"stride", ones}, {"dilation", ones}, {"pre", Dims(2, pick(2))}, {"post", Dims(2, 0)}}),
            {x, weights}, bound);
    if (y == nullptr) return;
    const Shape shape = y->type.shape;
    if (pick(2) == 0)
      return keep(add("depth_to_space",
                      Attributes({{"block", std::int64_t{2}}, {"mode", std::string(pick(2) == 0 ? "dcr" : "crd")}}),
                      {y}, bound));
    y = graph_->must_add("reshape", Attributes({{"shape", Dims{shape[0], channels, 2, 2, shape[2], shape[3]}}}), {y},
                         "v");
    y = graph_->must_add("transpose", Attributes({{"order", Integers{0, 1, 4, 2, 5, 3}}}), {y}, "v");
    keep(add("reshape", Attributes({{"shape", Dims{shape[0], channels, shape[2] * 2, shape[3] * 2}}}), {y}, bound));
  }

  void reduce() {
    Value* x = recent();
    if (!is_image(x) || pick(2) == 0) return;
    constexpr const char* ops[] = {"reduce_max", "reduce_min"};
    Integers axes;
    for (int i = 2; i < x->type.shape.rank(); ++i) axes.push_back(i);
    keep(add(ops[pick(2)], Attributes({{"axes", axes}, {"keep", pick(4) != 0}}), {x}, bound_.at(x)));
  }

  // x where it is positive, else half of it.
  void choose() {
    Value* x = recent();
    Value* zero = constant({}, 0, 0);
    Value* half = graph_->must_add(
        "constant", Attributes({{"value", Tensor::from_values(dtype_, {}, std::array{fraction_})}}), {}, "v");
    Value* condition = graph_->must_add("greater", {}, {x, zero}, "v");
    Value* scaled = graph_->must_add("mul", {}, {x, half}, "v");
    keep(add("where", {}, {condition, x, scaled}, bound_.at(x) * 2));
  }

  void resize() {
    Value* x = recent();
    if (!is_image(x)) return;
    Dims sizes = x->type.shape.dims();
    for (std::size_t i = 2; i < sizes.size(); ++i) sizes[i] = sizes[i] * 2;
    Value* y = add(
        "resize",
        Attributes({{"sizes", sizes}, {"coordinate", std::string("asymmetric")}, {"nearest", std::string("floor")}}),
        {x}, bound_.at(x));
    keep(y);
    if (y == nullptr || pick(3) != 0) return;
    Integers kernel(sizes.size(), 1);  // of one tap
    kernel[1] = sizes[1].value();
    const std::size_t spatial = sizes.size() - 2;
    const Integers ones(spatial, 1);
    keep(add("conv",
             Attributes({{"stride", ones}, {"dilation", ones}, {"pre", Dims(spatial, 0)}, {"post", Dims(spatial, 0)}}),
             {y, constant(kernel, -2, 2)}, bound_.at(x) * 2 * static_cast<double>(kernel[1])));
  }

  void insert_zeros() {
    Value* x = recent();
    if (!is_image(x) || x->type.shape.rank() != 3) return;
    const Shape shape = x->type.shape;
    Value* y = graph_->must_add("reshape", Attributes({{"shape", Dims{shape[0], shape[1], shape[2], 1}}}), {x}, "v");
    y = graph_->must_add(
        "pad", Attributes({{"pre", Dims(4, 0)}, {"post", Dims{0, 0, 0, 1}}, {"mode", std::string("constant")}}), {y},
        "v");
    keep(add("reshape", Attributes({{"shape", Dims{shape[0], shape[1], shape[2] * 2}}}), {y}, bound_.at(x)));
  }

  void cast_twice() {
    Value* x = recent();
    const DType through = dtype_ == DType::f32 ? DType::f64 : DType::f32;
    if (dtype_ == DType::f64 && !exact_) return;
    if (bound_.at(x) > 1 << 12) return;
    Value* y = graph_->must_add("cast", Attributes({{"to", through}}), {x}, "v");
    keep(add("cast", Attributes({{"to", dtype_}}), {y}, bound_.at(x)));
  }

  void gated() { exact_ ? unary() : gate(); }
};

}  // namespace

RandomGraph random_graph(const Registry& registry, std::uint64_t seed) { return Grower(registry, seed).run(); }

}  // namespace polyphase

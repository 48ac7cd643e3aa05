// The generator: grows a graph by one random use of an operator at a time; what the shape rules refuse is not added.
#include "passes/random_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace polyphase {
namespace {

using Dims = std::vector<Dim>;
using Integers = std::vector<std::int64_t>;

class Grower {
 public:
  Grower(const Registry& registry, std::uint64_t seed) : random_(seed), graph_(std::make_unique<Graph>(registry)) {
    exact_ = pick(3) != 0;
    dtype_ = pick(2) == 0 ? DType::f32 : DType::f64;
    limit_ = dtype_ == DType::f32 ? 1 << 16 : 1e10;
    if (exact_ && pick(6) == 0) {
      dtype_ = DType::f16;
      limit_ = 1 << 10;
      fraction_ = 2;
    }
  }

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
  std::int64_t pick(std::int64_t count) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(count));
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + pick(high - low + 1); }
  Value* any() { return values_[static_cast<std::size_t>(pick(static_cast<std::int64_t>(values_.size())))]; }
  // The newest values are the likeliest, so that chains grow.
  Value* recent() { return pick(3) == 0 ? any() : values_.back(); }

  Dims input_shape(int rank) {
    const bool symbolic = pick(2) == 0;
    Dims shape{symbolic ? Dim::symbol("N", {1, 2}) : Dim(between(1, 2)), between(1, 4)};
    const char* names[] = {"D", "H", "W"};
    for (int i = 2; i < rank; ++i)
      shape.push_back(symbolic && pick(4) != 0 ? Dim::symbol(names[i - 2], {3, 7}) : Dim(between(3, 6)));
    return shape;
  }

  void remember(Value* value, double bound) {
    bound_[value] = bound;
    values_.push_back(value);
  }

  // Adds a node; null where the rules refuse it. Values near the limit are clipped before they grow further.
  Value* add(const char* op, Attributes attributes, std::vector<Value*> inputs, double bound) {
    if (bound > limit_ || std::isnan(bound)) return nullptr;
    auto node = graph_->add(op, std::move(attributes), std::move(inputs), "v");
    if (!node.ok()) return nullptr;
    Value* result = (*node)->output();
    const auto largest = result->type.shape.element_count().range().high;
    if (result->type.shape.rank() > 5 || largest > 60000 || result->type.shape.element_count().range().low < 1) {
      graph_->erase(*node);
      return nullptr;
    }
    bound_[result] = bound;
    return result;
  }

  void keep(Value* value) {
    if (value == nullptr) return;
    if (bound_.at(value) > limit_ / 64) {
      values_.push_back(value);
      value = add("clip", Attributes({{"low", -4.0}, {"high", 4.0}}), {value}, 4);
    }
    if (value != nullptr) values_.push_back(value);
  }

  Value* constant(const std::vector<std::int64_t>& sizes, std::int64_t low, std::int64_t high) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    std::vector<double> elements;
    for (std::int64_t i = 0; i < count; ++i) elements.push_back(static_cast<double>(between(low, high)));
    return add("constant", Attributes({{"value", Tensor::from_values(dtype_, sizes, elements)}}), {},
               static_cast<double>(std::max(-low, high)));
  }

  // Weights that connect each channel with itself alone.
  Value* diagonal(const std::vector<std::int64_t>& sizes) {
    const Tensor tensor = Tensor::allocate(dtype_, sizes).value();
    const std::int64_t taps = tensor.view().element_count() / (sizes[0] * sizes[1]);
    for (std::int64_t c = 0; c < sizes[0]; ++c) {
      for (std::int64_t t = 0; t < taps; ++t) {
        const auto at = static_cast<std::size_t>((c * sizes[1] + c) * taps + t);
        store_double(tensor.view().data + at * size_bytes(dtype_), dtype_, static_cast<double>(between(-2, 2)));
      }
    }
    return add("constant", Attributes({{"value", tensor}}), {}, 2);
  }

  void grow() {
    using Step = void (Grower::*)();
    constexpr Step steps[] = {
        &Grower::convolve,  &Grower::convolve,      &Grower::convolve,      &Grower::normalise,  &Grower::unary,
        &Grower::unary,     &Grower::with_constant, &Grower::with_constant, &Grower::with_other, &Grower::with_other,
        &Grower::pad,       &Grower::slice,         &Grower::slice,         &Grower::concat,     &Grower::reshape,
        &Grower::transpose, &Grower::change_layout, &Grower::pool,          &Grower::shuffle,    &Grower::reduce,
        &Grower::choose,    &Grower::resize,        &Grower::insert_zeros,  &Grower::cast_twice, &Grower::gate,
        &Grower::branch,    &Grower::attend,        &Grower::overlap,       &Grower::modulate,   &Grower::part};
    (this->*steps[pick(std::size(steps))])();
  }

  static bool is_image(const Value* value) {
    const Shape& shape = value->type.shape;
    return shape.rank() >= 3 && shape.rank() <= 5 && shape[1].is_constant() && shape[1].value() > 0 &&
           shape[1].value() <= 16;
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

  // x * sigmoid(x); a norm written out.
  void gate() {
    if (exact_) return unary();
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

  // Channels as the real parts of spectra, whose frames are windowed and added where they overlap.
  void overlap() {
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

  // Convolutions of three taps and of one beside each other.
  void part() {
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
          "conv",
          Attributes({{"stride", stride}, {"dilation", Integers(spatial, 1)}, {"pre", around}, {"post", around}}),
          {x, constant(sizes, -2, 2)}, "v");
    }
    const double products = static_cast<double>(channels) * (1 + std::pow(3.0, static_cast<double>(spatial)));
    keep(add(pick(2) == 0 ? "add" : "sub", {}, {terms[0], terms[1]}, bound_.at(x) * 2 * products));
  }

  // A convolution whose weights are scaled by what the image says of each channel, and by their own squares.
  void modulate() {
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

  // Rows of x look at each other; scaled before or behind the product, masked or not.
  void attend() {
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

  Random random_;
  std::unique_ptr<Graph> graph_;
  bool exact_ = true;
  DType dtype_ = DType::f32;
  double limit_ = 0;       // beyond this, sums of products may round
  double fraction_ = 0.5;  // of what is scaled down; f16 has no digits to spare for it
  std::vector<Value*> values_;
  std::unordered_map<const Value*, double> bound_;
};

}  // namespace

RandomGraph random_graph(const Registry& registry, std::uint64_t seed) { return Grower(registry, seed).run(); }

}  // namespace polyphase

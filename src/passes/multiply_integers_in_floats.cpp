// multiply_integers_in_floats: convolutions and matrix products of whole numbers whose sums f32 holds exactly are
// computed in f32.
//
//   %a = cast(%q) to=i32     %b = sub(%a, %zero)       %a = cast(%q) to=f32     %b = sub(%a, %zero)
//   %y = conv(%b, %w) -> i32                     →     %c = conv(%b, %w) products=i8 -> f32
//   %z = cast(%y) to=f32                               %z = %c
//
// So are quantised models written (QLinearConv, ConvInteger, MatMulInteger), whose operands have 8 bits. Every sum of
// some of the products is at most Σ|w| · max|x|; where that is no more than 2^24, f32 holds all of them, in any order,
// and the result is the integer one. Sums of more are cut into parts along what they run over. Weights are read; of
// weights that may be exchanged, and of computed operands, their types tell the bounds. `products` keeps kernels from
// computing other numbers of the operands, which f32 might not hold; i8 says that bf16 holds the operands as well. Runs
// behind all that folds factors into weights.
//
// A quantised result that is read as f32 again is not stored narrow between: cast(cast(%q) to=u8) to=f32 is %q where
// %q is known to hold whole numbers of that range: what was rounded and clipped, and is never NaN, since it comes from
// such a product times a finite scale.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "passes/passes.h"
#include "passes/weights.h"

namespace polyphase {
namespace {

constexpr double most_exact_integer = 1 << 24;  // up to which f32 holds every whole number
constexpr double most_exact_in_bf16 = 256;
constexpr std::int64_t most_sum_parts = 16;
constexpr int most_steps = 16;  // from an operand back to what tells its range

struct IntegerRange {
  double low;
  double high;
  double most() const { return std::max(std::fabs(low), std::fabs(high)); }
};

// Of the types whose numbers f32 holds all.
std::optional<IntegerRange> range_of_integers(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return IntegerRange{0, 1};
    case DType::i4:
      return IntegerRange{-8, 7};
    case DType::u4:
      return IntegerRange{0, 15};
    case DType::i8:
      return IntegerRange{-128, 127};
    case DType::u8:
      return IntegerRange{0, 255};
    case DType::i16:
      return IntegerRange{-32768, 32767};
    case DType::u16:
      return IntegerRange{0, 65535};
    default:
      return std::nullopt;
  }
}

bool moves_integers(const Node& node) {
  return node.is("reshape") || node.is("transpose") || node.is("slice") || node.is("expand");
}

// What the elements of a value of integers lie between.
std::optional<IntegerRange> range_of(const Value* value, int steps = most_steps) {
  if (const auto range = range_of_integers(value->type.dtype); range.has_value()) return range;
  if (steps == 0 || is_float(value->type.dtype)) return std::nullopt;
  if (const Tensor* tensor = constant_of(value)) {
    if (tensor->view().empty()) return IntegerRange{0, 0};
    const std::vector<double> elements = elements_of(*tensor);
    const auto [low, high] = std::minmax_element(elements.begin(), elements.end());
    return IntegerRange{*low, *high};
  }
  const Node* node = value->producer;
  if (node == nullptr || node->parts().size() != 1) return std::nullopt;
  const auto of_input = [&](std::size_t i) { return range_of(node->input(i), steps - 1); };
  if (node->is("cast") || moves_integers(*node)) return of_input(0);
  if (!node->is("sub") && !node->is("add")) return std::nullopt;
  const auto a = of_input(0);
  const auto b = of_input(1);
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  if (node->is("add")) return IntegerRange{a->low + b->low, a->high + b->high};
  return IntegerRange{a->low - b->high, a->high - b->low};
}

// What the sums of a node run over: axis `data` of operand 0 and axis `weights` of operand 1, whose axis `outputs`
// tells the sums apart. They can be cut at some places along it.
struct IntegerSums {
  std::size_t data;
  std::size_t weights;
  std::size_t outputs;
  std::int64_t size;    // of what they run over
  std::int64_t chunks;  // between places to cut
  bool can_be_cut;

  std::int64_t begin(std::int64_t chunk) const { return (chunk * size + chunks - 1) / chunks; }
};

// The most that Σ|w| over chunks of what the sums run over comes to for any output.
class WeightSums {
 public:
  WeightSums(const TensorView& weights, const IntegerSums& sums)
      : outputs_(weights.sizes[sums.outputs]), sums_(static_cast<std::size_t>(sums.chunks * outputs_)) {
    std::int64_t taps = 1;  // of a channel and an output
    for (std::size_t axis = 2; axis < static_cast<std::size_t>(weights.rank); ++axis) taps *= weights.sizes[axis];
    TensorView slice = weights;
    slice.sizes[0] = 1;
    for (std::int64_t i = 0; i < weights.sizes[0]; ++i) {
      slice.data = weights.data + i * weights.strides[0] * static_cast<std::int64_t>(size_bytes(weights.dtype));
      if (slice.dtype == DType::i32 && slice.is_row_major()) {
        add_slice(slice.as<const std::int32_t>(), i, taps, sums);
      } else {
        add_slice(elements_of(slice).data(), i, taps, sums);
      }
    }
  }

  double largest() const { return largest_; }

  double most(std::int64_t first, std::int64_t end) const {
    double most = 0;
    for (std::int64_t o = 0; o < outputs_; ++o) {
      double sum = 0;
      for (std::int64_t chunk = first; chunk < end; ++chunk)
        sum += sums_[static_cast<std::size_t>(chunk * outputs_ + o)];
      most = std::max(most, sum);
    }
    return most;
  }

 private:
  // What stands at index i of the weights' first axis.
  template <class T>
  void add_slice(const T* element, std::int64_t i, std::int64_t taps, const IntegerSums& sums) {
    const auto add = [&](double& sum) {
      for (const T* const end = element + taps; element != end; ++element) {
        const double size = std::fabs(static_cast<double>(*element));
        largest_ = std::max(largest_, size);
        sum += size;
      }
    };
    const auto place = [&](std::int64_t summed, std::int64_t output) {
      return sums_.data() + (summed * sums.chunks / sums.size * outputs_ + output);
    };
    if (sums.weights == 0) {
      double* const row = place(i, 0);
      for (std::int64_t output = 0; output < outputs_; ++output) add(row[output]);
    } else {
      for (std::int64_t summed = 0; summed < sums.size; ++summed) add(*place(summed, i));
    }
  }

  std::int64_t outputs_;
  std::vector<double> sums_;  // [chunk][output]
  double largest_ = 0;
};

class Multiplier {
 public:
  explicit Multiplier(Graph& graph) : graph_(graph) {}

  bool run() {
    std::vector<Node*> products;  // each turns no other one of them into nothing
    for (Node* node : graph_.node_list()) {
      const bool is_product = node->is("conv") || node->is("conv_transpose") || node->is("matmul");
      if (is_product && node->parts().size() == 1 && node->output()->type.dtype == DType::i32) products.push_back(node);
    }
    bool changed = false;
    for (Node* node : products) changed = turn(node) || changed;
    return changed;
  }

 private:
  static std::optional<IntegerSums> sums_of(const Node& node) {
    const Shape& x = node.input(0)->type.shape;
    const Shape& w = node.input(1)->type.shape;
    IntegerSums sums{};
    if (node.is("matmul")) {
      if (x.rank() < 2 || w.rank() < 2) return std::nullopt;
      const auto last = static_cast<std::size_t>(w.rank() - 1);
      sums = {static_cast<std::size_t>(x.rank() - 1), last - 1, last, 0, 1, w.rank() == 2};
    } else {
      // The sums of a group of a transposed convolution run over a part of the axis; all of it is a bound.
      const std::size_t of_weights = node.is("conv_transpose") ? 0 : 1;
      sums = {1, of_weights, 1 - of_weights, 0, 1, node.attributes().get<std::int64_t>("groups") == 1};
    }
    if (!w.is_static() || w.element_count() == 0) return std::nullopt;
    sums.size = w[static_cast<int>(sums.weights)].value();
    if (sums.can_be_cut) {
      while (sums.chunks < most_sum_parts && 2 * sums.chunks <= sums.size) sums.chunks *= 2;
    }
    return sums;
  }

  // The most that any sum of the products of some chunks can come to.
  class Bounds {
   public:
    Bounds(const Node& node, const IntegerSums& sums, double largest_operand) : sums_(sums), operand_(largest_operand) {
      const Value* const w = node.input(1);
      const bool is_plain = w->type.shape.rank() == 2 || !node.is("matmul");
      if (const Tensor* weights = constant_of(w); weights != nullptr && is_plain) {
        of_weights_.emplace(weights->view(), sums);
        largest_ = of_weights_->largest();
      } else if (const auto range = range_of(w); range.has_value()) {
        double taps = 1;
        for (int axis = 2; !node.is("matmul") && axis < w->type.shape.rank(); ++axis)
          taps *= static_cast<double>(w->type.shape[axis].value());
        largest_ = range->most();
        of_one_ = taps * largest_;
      }
    }

    double most(std::int64_t first, std::int64_t end) const {
      if (of_weights_.has_value()) return of_weights_->most(first, end) * operand_;
      return of_one_ * static_cast<double>(sums_.begin(end) - sums_.begin(first)) * operand_;
    }

    bool fit_bf16() const { return std::max(operand_, largest_) <= most_exact_in_bf16; }

    // How many parts hold their sums, by powers of two; 0: none do.
    std::int64_t parts() const {
      for (std::int64_t parts = 1; parts <= sums_.chunks; parts *= 2) {
        const std::int64_t of_part = sums_.chunks / parts;
        bool holds = true;
        for (std::int64_t i = 0; holds && i < parts; ++i)
          holds = most(i * of_part, (i + 1) * of_part) <= most_exact_integer;
        if (holds) return parts;
      }
      return 0;
    }

   private:
    IntegerSums sums_;
    double operand_;
    std::optional<WeightSums> of_weights_;
    double of_one_ = std::numeric_limits<double>::infinity();
    double largest_ = std::numeric_limits<double>::infinity();  // of the weights
  };

  bool turn(Node* node) {
    Value* const x = node->input(0);
    Value* const w = node->input(1);
    Value* const bias = node->input(2);
    if (is_float(x->type.dtype) || is_float(w->type.dtype)) return false;
    const auto range = range_of(x);
    const auto sums = sums_of(*node);
    if (!range.has_value() || !sums.has_value()) return false;
    const Bounds bounds(*node, *sums, range->most());
    const std::int64_t parts = bounds.parts();
    if (parts == 0) return false;
    const DType products = bounds.fit_bf16() ? DType::i8 : DType::i32;
    Attributes attributes({{"products", products}});
    if (!node->is("matmul")) {
      ConvolutionWindow window(*node);
      window.products = products;
      attributes = window.attributes();
    }
    const auto of_bias = bias == nullptr ? std::nullopt : range_of(bias);
    const bool adds_in_floats =
        parts == 1 && of_bias.has_value() && bounds.most(0, sums->chunks) + of_bias->most() <= most_exact_integer;
    Rewrite rewrite(graph_, node);
    Value* const floats_x = floats_of(rewrite, x);
    Value* const floats_w = floats_of(rewrite, w);
    Value* total = nullptr;
    Value* product = nullptr;
    for (std::int64_t i = 0; i < parts; ++i) {
      const std::int64_t first = sums->begin(i * (sums->chunks / parts));
      const std::int64_t size = sums->begin((i + 1) * (sums->chunks / parts)) - first;
      std::vector<Value*> inputs = {part_of(rewrite, floats_x, sums->data, first, size),
                                    part_of(rewrite, floats_w, sums->weights, first, size)};
      if (adds_in_floats) inputs.push_back(rewrite.cast(bias, DType::f32));
      product = rewrite.add(node->op().name, attributes, std::move(inputs));
      Value* const whole = rewrite.ok() ? rewrite.cast(product, DType::i32) : nullptr;
      total = total == nullptr ? whole : rewrite.add("add", {}, {total, whole});
    }
    if (bias != nullptr && !adds_in_floats && rewrite.ok()) {
      std::vector<Dim> per_channel(static_cast<std::size_t>(node->output()->type.shape.rank() - 1), Dim(1));
      per_channel[0] = bias->type.shape[0];
      total = rewrite.add("add", {}, {total, rewrite.reshape(bias, Shape(per_channel))});
    }
    if (!rewrite.commit(node->output(), total)) return false;
    if (total->producer->is("cast")) {
      exact_.insert(product);
      read_floats(total, product);
    }
    return true;
  }

  // The integers of a value in f32, which holds them: the steps back to what tells so are taken there too.
  Value* floats_of(Rewrite& rewrite, Value* value) const {
    if (!rewrite.ok() || constant_of(value) != nullptr) return rewrite.cast(value, DType::f32);
    if (Value* const whole = whole_floats_behind(value)) return whole;
    Node* const node = value->producer;
    if (range_of_integers(value->type.dtype).has_value() || node == nullptr || node->parts().size() != 1)
      return rewrite.cast(value, DType::f32);
    if (node->is("cast")) return floats_of(rewrite, node->input(0));
    if (!node->is("sub") && !node->is("add")) return rewrite.cast(value, DType::f32);
    return rewrite.add(node->op().name, {}, {floats_of(rewrite, node->input(0)), floats_of(rewrite, node->input(1))});
  }

  // Of a value that was rounded, clipped to the range of its type and stored: what it was before; null if that may be
  // anything else.
  Value* whole_floats_behind(const Value* value) const {
    const auto range = range_of_integers(value->type.dtype);
    const Node* const stores = produced_by(value, "cast");
    if (!range.has_value() || stores == nullptr || stores->input(0)->type.dtype != DType::f32) return nullptr;
    const Node* const clip = produced_by(stores->input(0), "clip");
    if (clip == nullptr || clip->attributes().get<double>("low") < range->low ||
        clip->attributes().get<double>("high") > range->high)
      return nullptr;
    const Value* rounded = clip->input(0);
    if (const Node* const add = produced_by(rounded, "add"); add != nullptr && is_whole(add->input(1)))
      rounded = add->input(0);
    const Node* const round = produced_by(rounded, "round");
    return round != nullptr && is_never_nan(round->input(0)) ? stores->input(0) : nullptr;
  }

  static bool is_whole(const Value* value) {
    const Tensor* const tensor = constant_of(value);
    if (tensor == nullptr) return false;
    const std::vector<double> elements = elements_of(*tensor);
    return std::all_of(elements.begin(), elements.end(),
                       [](double x) { return std::fabs(x) <= most_exact_integer && x == std::floor(x); });
  }

  // Exact sums times finite factors.
  bool is_never_nan(const Value* value) const {
    const Node* const mul = produced_by(value, "mul");
    if (mul == nullptr) return exact_.count(value) != 0;
    const Tensor* const factors = constant_of(mul->input(1));
    if (factors == nullptr || exact_.count(mul->input(0)) == 0) return false;
    const std::vector<double> elements = elements_of(*factors);
    return std::all_of(elements.begin(), elements.end(), [](double x) { return std::isfinite(x); });
  }

  // Casts of `whole` to f32 are `floats`, of which it is a cast.
  void read_floats(const Value* whole, Value* floats) {
    const std::vector<Node*> users = whole->users;
    for (Node* user : users) {
      if (!user->is("cast") || user->parts().size() != 1 || user->output()->type.dtype != DType::f32) continue;
      graph_.replace_uses(user->output(), floats);
      erase_unused(graph_, user);
    }
  }

  static Value* part_of(Rewrite& rewrite, Value* value, std::size_t axis, std::int64_t first, std::int64_t size) {
    const Shape& shape = value->type.shape;
    if (shape[static_cast<int>(axis)] == Dim(size)) return value;
    std::vector<Dim> start(static_cast<std::size_t>(shape.rank()), Dim(0));
    std::vector<Dim> sizes = shape.dims();
    start[axis] = Dim(first);
    sizes[axis] = Dim(size);
    return rewrite.slice(value, std::move(start), std::move(sizes));
  }

  Graph& graph_;
  std::unordered_set<const Value*> exact_;  // whole numbers in f32, none of which is NaN
};

}  // namespace

bool multiply_integers_in_floats(Graph& graph, const Target&) {
  return in_every_graph(graph, [](Graph& each) { return Multiplier(each).run(); });
}

}  // namespace polyphase

// turn_sums_of_scaled_constants_into_matmul: a sum over a constant that a few computed numbers scale is a product of
// those with the constant's own sums.
//
//   %m = mul(%w: f32[M, C, k, k], %s: f32[1, C, 1, 1])          %q = square(%s)
//   %q = square(%m)                                      →      %y = matmul(%q, W) where W[c, m] = sum of w[m, c, .]^2
//   %y = reduce_sum(%q) axes=[1, 2, 3]
//
// The demodulation of StyleGAN2 (Karras et al. 2020) is that, at every run over all weights. Condition: FP32, sizes
// that are known, products and squares of constants and others; the others vary along one summed axis at most, and
// along no axis that stays beside a constant. Terms are the same, summed in another order, the constant's in FP64.
#include <algorithm>
#include <numeric>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

constexpr std::size_t most_factors = 16;

struct Factor {
  Value* value;
  int power;
};

void take_factors(Value* value, int power, std::vector<Factor>& factors) {
  if (!is_constant(value) && factors.size() < most_factors) {
    if (Value* base = base_of_square(value)) return take_factors(base, 2 * power, factors);
    if (const Node* product = produced_by(value, "mul")) {
      take_factors(product->input(0), power, factors);
      return take_factors(product->input(1), power, factors);
    }
  }
  factors.push_back({value, power});
}

// Along which axes of a shape of `rank` axes a value varies that broadcasts to it.
std::vector<bool> varied_axes(const Value& value, int rank) {
  const Shape& shape = value.type.shape;
  std::vector<bool> varied(static_cast<std::size_t>(rank), false);
  for (int i = 0; i < shape.rank(); ++i) varied[static_cast<std::size_t>(rank - shape.rank() + i)] = !(shape[i] == 1);
  return varied;
}

class Contraction {
 public:
  Contraction(Graph& graph, Node* node) : graph_(graph), node_(node) {}

  bool run() {
    const Shape& shape = node_->input(0)->type.shape;
    if (node_->output()->type.dtype != DType::f32 || !shape.is_static()) return false;
    std::vector<Factor> all;
    take_factors(node_->input(0), node_->is("reduce_sum_square") ? 2 : 1, all);
    rank_ = shape.rank();
    for (const Factor& factor : all) (is_constant(factor.value) ? constants_ : computed_).push_back(factor);
    if (constants_.empty() || computed_.empty() || !sort_axes(shape)) return false;
    Rewrite rewrite(graph_, node_);
    Value* const small = small_factor(rewrite);
    Value* const sums = constant_sums(rewrite);
    if (!rewrite.ok()) return false;
    Value* const product = rewrite.add(contracted_.empty() ? "mul" : "matmul", {}, {small, sums});
    if (!rewrite.ok()) return false;
    return rewrite.commit(node_->output(), rewrite.reshape(product, node_->output()->type.shape));
  }

 private:
  using Axes = std::vector<int>;

  std::vector<bool> varied(const std::vector<Factor>& factors) const {
    std::vector<bool> of_any(static_cast<std::size_t>(rank_), false);
    for (const Factor& factor : factors) {
      const std::vector<bool> of_one = varied_axes(*factor.value, rank_);
      for (std::size_t i = 0; i < of_any.size(); ++i) of_any[i] = of_any[i] || of_one[i];
    }
    return of_any;
  }

  // Whether each axis plays one part only, and the operands of a matrix product have theirs in order.
  bool sort_axes(const Shape& shape) {
    const std::vector<bool> of_constants = varied(constants_);
    const std::vector<bool> of_computed = varied(computed_);
    const auto& summed = node_->attributes().get<std::vector<std::int64_t>>("axes");
    bool pays = false;
    for (int axis = 0; axis < rank_; ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      if (!of_constants[at] && !of_computed[at]) continue;
      const bool goes = std::find(summed.begin(), summed.end(), axis) != summed.end();
      pays = pays || !of_computed[at];
      if (goes && of_computed[at]) {
        if (!of_constants[at]) return false;
        contracted_.push_back(axis);
      } else if (goes) {
        summed_before_.push_back(axis);
      } else if (of_constants[at] && of_computed[at]) {
        return false;
      } else {
        (of_computed[at] ? rows_ : columns_).push_back(axis);
      }
    }
    rows_size_ = size_of(shape, rows_);
    columns_size_ = size_of(shape, columns_);
    depth_ = size_of(shape, contracted_);
    return pays && contracted_.size() <= 1 && in_order(rows_, columns_) && in_order(rows_, contracted_);
  }

  static bool in_order(const Axes& first, const Axes& second) {
    return first.empty() || second.empty() || first.back() < second.front();
  }
  static std::int64_t size_of(const Shape& shape, const Axes& axes) {
    return std::accumulate(axes.begin(), axes.end(), std::int64_t{1},
                           [&](std::int64_t size, int axis) { return size * *shape[axis].constant(); });
  }

  static Value* to_power(Rewrite& rewrite, Value* value, int power) {
    for (; power > 1 && rewrite.ok(); power /= 2) value = rewrite.add("square", {}, {value});
    return value;
  }
  static Value* multiply(Rewrite& rewrite, Value* product, Value* factor) {
    return product == nullptr || !rewrite.ok() ? factor : rewrite.add("mul", {}, {product, factor});
  }

  // (rows, depth)
  Value* small_factor(Rewrite& rewrite) const {
    Value* product = nullptr;
    for (const Factor& factor : computed_)
      product = multiply(rewrite, product, to_power(rewrite, factor.value, factor.power));
    return rewrite.ok() ? rewrite.reshape(product, Shape{rows_size_, depth_}) : nullptr;
  }

  // (depth, columns)
  Value* constant_sums(Rewrite& rewrite) const {
    Value* product = nullptr;
    for (const Factor& factor : constants_) {
      std::vector<Dim> sizes(static_cast<std::size_t>(rank_ - factor.value->type.shape.rank()), 1);
      for (const Dim& size : factor.value->type.shape) sizes.push_back(size);
      Value* const wide = rewrite.cast(rewrite.reshape(factor.value, Shape(sizes)), DType::f64);
      if (!rewrite.ok()) return nullptr;
      product = multiply(rewrite, product, to_power(rewrite, wide, factor.power));
    }
    if (!rewrite.ok()) return nullptr;
    const std::vector<std::int64_t> axes(summed_before_.begin(), summed_before_.end());
    if (!axes.empty()) product = rewrite.add("reduce_sum", Attributes({{"axes", axes}, {"keep", true}}), {product});
    if (!rewrite.ok()) return nullptr;
    if (in_order(contracted_, columns_))
      product = rewrite.reshape(product, Shape{depth_, columns_size_});
    else if (in_order(columns_, contracted_))
      product = turned(rewrite, product);
    else
      return nullptr;
    return rewrite.ok() ? rewrite.cast(product, DType::f32) : nullptr;
  }

  Value* turned(Rewrite& rewrite, Value* sums) const {
    Value* const by_column = rewrite.reshape(sums, Shape{columns_size_, depth_});
    if (!rewrite.ok()) return nullptr;
    return rewrite.add("transpose", Attributes({{"order", std::vector<std::int64_t>{1, 0}}}), {by_column});
  }

  Graph& graph_;
  Node* node_;
  int rank_ = 0;
  std::vector<Factor> constants_;
  std::vector<Factor> computed_;
  Axes rows_;           // that stay and computed factors vary along
  Axes columns_;        // that stay and constants vary along
  Axes contracted_;     // that are summed and both vary along
  Axes summed_before_;  // that only constants vary along
  std::int64_t rows_size_ = 1;
  std::int64_t columns_size_ = 1;
  std::int64_t depth_ = 1;
};

}  // namespace

bool turn_sums_of_scaled_constants_into_matmul(Graph& graph, const Target&) {
  return at_every_node(graph, [](Graph& each, Node* node) {
    const bool sums = node->is("reduce_sum") || node->is("reduce_sum_square");
    return sums && !node->fused() && Contraction(each, node).run();
  });
}

}  // namespace polyphase

// recognise_attention: two products around a softmax, as exporters write attention, become one operator.
//
//   %s = matmul(mul(%q, %c), mul(transpose(%k), %c))
//   %w = softmax(add(%s, %mask))                        →   %y = attention(%q, %k, %v, %mask) scale=c·c
//   %y = matmul(%w, %v)
//
//   %y = matmul(%v, transpose(%w))                      →   %y = transpose(attention(%q, %k, transpose(%v)))
//
// The scale may stand on q, on k, on both, or behind the product, where it may also be one of each head or query, which
// goes to q; masks may be added or select (where(%m, %s, -inf)), and two whose sum would be larger than both stay two;
// reshapes may lead from (batch · heads) to (batch, heads), or (image, window, heads), and back anywhere between;
// where(is_nan(%w), 0, %w) makes the attention guarded. k may be transposed through such a reshape. Nobody else may
// read scores or weights. Float dtypes of at most 32 bits, which have a kernel. Reads values.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

using Order = std::vector<std::int64_t>;

// The size of an axis, counted from behind.
const Dim& size_of(const Value& value, int back) { return value.type.shape[value.type.shape.rank() - back]; }

// Both sides hold the same matrices, in other batches.
bool keeps_matrices(const Node& reshape) {
  const Value& from = *reshape.input(0);
  const Value& to = *reshape.output();
  return from.type.shape.rank() >= 2 && to.type.shape.rank() >= 2 && size_of(from, 1) == size_of(to, 1) &&
         size_of(from, 2) == size_of(to, 2);
}

// The order of axes with the last two exchanged; nothing for fewer.
Order exchange(std::size_t rank) {
  Order order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[rank - 1], order[rank - 2]);
  return order;
}

// What `value` is a constant multiple of; null: nothing.
Value* behind_factor(const Value* value, double& factor) {
  const Node* node = value->producer;
  const bool divides = node != nullptr && node->is("div");
  if (node == nullptr || (!divides && !node->is("mul"))) return nullptr;
  for (std::size_t side = 0; side < (divides ? 1U : 2U); ++side) {
    const auto found = repeated_element(node->input(1 - side));
    if (!found.has_value() || !std::isfinite(*found) || *found == 0) continue;
    if (!(node->input(side)->type == value->type)) continue;
    factor *= divides ? 1 / *found : *found;
    return node->input(side);
  }
  return nullptr;
}

Value* without_factors(Value* value, double& factor) {
  while (Value* inside = behind_factor(value, factor)) value = inside;
  return value;
}

// ---------------------------------------------------------------- from the weights back to the operands

// Added to the scores; or, with a mask, what stands where the mask is `hides`.
struct Bias {
  Value* value = nullptr;
  Value* mask = nullptr;
  bool hides = false;
  Shape scores;  // of the scores there
};

struct Attention {
  Value* q = nullptr;
  Value* transposed_k = nullptr;
  double scale = 1;
  Value* row_scale = nullptr;  // one for all keys, of a head or a query
  bool guarded = false;
  std::vector<Bias> biases;
  Shape scores;   // of the product
  int steps = 0;  // so many nodes lie between softmax and product
};

// From what the second product multiplies to the softmax: through casts, reshapes, the guard against NaN.
const Node* find_softmax(const Graph& graph, Value* weights, Attention& found) {
  for (;;) {
    const Node* node = weights->producer;
    const std::size_t readers = found.guarded ? 2 : 1;  // the guard reads the weights twice
    if (node == nullptr || graph.is_output(weights) || weights->users.size() != readers) return nullptr;
    if (node->is("softmax")) {
      const bool last = node->attributes().get<std::int64_t>("axis") == weights->type.shape.rank() - 1;
      return last ? node : nullptr;
    }
    if (found.guarded) return nullptr;
    if (node->is("where")) {
      Value* inside = node->input(2);
      const Node* test = produced_for_one(graph, node->input(0), "is_nan");
      if (test == nullptr || test->input(0) != inside || !is_filled_with(node->input(1), 0)) return nullptr;
      if (!(inside->type == weights->type)) return nullptr;
      found.guarded = true;
      weights = inside;
      continue;
    }
    const bool narrows = node->is("cast") && is_narrow(weights->type.dtype) && is_float(node->input(0)->type.dtype);
    if (!narrows && !(node->is("reshape") && keeps_matrices(*node))) return nullptr;
    weights = node->input(0);
  }
}

bool find_score_product(const Graph& graph, Value* scores, Attention& found);

// The scores are operand `side`, and the other one is a bias.
bool try_bias(const Graph& graph, const Node& node, std::size_t side, Bias bias, Attention& found) {
  if (!(node.input(side)->type == node.output()->type)) return false;
  Attention next = found;
  bias.scores = node.output()->type.shape;
  next.biases.push_back(std::move(bias));
  if (!find_score_product(graph, node.input(side), next)) return false;
  found = std::move(next);
  return true;
}

bool find_behind_bias(const Graph& graph, const Node& node, Attention& found) {
  if (found.scale != 1 || found.row_scale != nullptr) return false;  // it would scale the bias too
  if (node.is("add")) {
    return try_bias(graph, node, 0, {.value = node.input(1), .scores = {}}, found) ||
           try_bias(graph, node, 1, {.value = node.input(0), .scores = {}}, found);
  }
  for (const std::size_t side : {std::size_t{1}, std::size_t{2}}) {
    const auto hidden = repeated_element(node.input(3 - side));
    if (!hidden.has_value()) continue;
    // Of a score to which the lowest finite number is added nothing is left either.
    const bool lowest = *hidden < -1e38 && node.output()->type.dtype == DType::f32 && found.biases.empty();
    if (*hidden != -INFINITY && !lowest) continue;
    const Bias bias = {.value = node.input(3 - side), .mask = node.input(0), .hides = side == 2, .scores = {}};
    if (try_bias(graph, node, side, bias, found)) return true;
  }
  return false;
}

// What `scores`, straight from the product, are when taken times one number for each of their rows.
Value* behind_row_scale(Value* scores, Attention& found) {
  const Node& node = *scores->producer;
  if (!node.is("mul") || found.row_scale != nullptr) return nullptr;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    Value* before = node.input(side);
    Value* scale = node.input(1 - side);
    const bool is_of_rows = scale->type.shape.rank() == 0 || size_of(*scale, 1) == 1;
    if (!is_of_rows || !(before->type == scores->type) || produced_by(before, "matmul") == nullptr) continue;
    found.row_scale = scale;
    return before;
  }
  return nullptr;
}

// From the softmax back to the first product.
bool find_score_product(const Graph& graph, Value* scores, Attention& found) {
  constexpr int most_steps = 16;
  if (scores->producer == nullptr || !graph.has_one_user(scores) || ++found.steps > most_steps) return false;
  const Node& node = *scores->producer;
  if (node.is("matmul")) {
    found.scores = scores->type.shape;
    found.q = node.input(0);
    found.transposed_k = node.input(1);
    return true;
  }
  if (node.is("add") || node.is("where")) return find_behind_bias(graph, node, found);
  Value* before = behind_factor(scores, found.scale);
  if (before == nullptr) before = behind_row_scale(scores, found);
  if (before == nullptr && node.is("reshape") && keeps_matrices(node)) before = node.input(0);
  if (before == nullptr && node.is("cast") && is_narrow(node.input(0)->type.dtype)) before = node.input(0);
  return before != nullptr && find_score_product(graph, before, found);
}

// ---------------------------------------------------------------- the operands of the one operator

// (batch, heads) of scores of any rank.
struct Planes {
  Dim batch = 1;
  Dim heads = 1;
};

// How many of the leading axes of these scores are batches, the others up to the matrices heads; nothing if the planes
// do not end between axes.
std::optional<int> batch_axes(const Shape& scores, const Planes& planes) {
  const int axes = scores.rank() - 2;
  for (int split = axes; split >= 0; --split) {
    if (product_of(scores, 0, split) == planes.batch && product_of(scores, split, axes) == planes.heads) return split;
  }
  return std::nullopt;
}

// Those of four axes tell which are heads, the product's or where something is added, if all biases can be said so.
Planes planes_of(const Attention& found) {
  const auto fits = [&](const Planes& planes) {
    return std::all_of(found.biases.begin(), found.biases.end(),
                       [&](const Bias& bias) { return batch_axes(bias.scores, planes).has_value(); });
  };
  std::vector<const Shape*> places = {&found.scores};
  for (const Bias& bias : found.biases) places.push_back(&bias.scores);
  for (const Shape* place : places) {
    if (place->rank() != 4) continue;
    const Planes planes = {(*place)[0], (*place)[1]};
    if (fits(planes)) return planes;
  }
  return {product_of(found.scores, 0, found.scores.rank() - 2), 1};
}

Value* in_planes(Rewrite& rewrite, Value* value, const Planes& planes) {
  if (!rewrite.ok()) return value;
  return rewrite.reshape(value, Shape({planes.batch, planes.heads, size_of(*value, 2), size_of(*value, 1)}));
}

Value* turned(Rewrite& rewrite, Value* value) {
  Order order = exchange(static_cast<std::size_t>(value->type.shape.rank()));
  if (const Node* turn = produced_by(value, "transpose")) {
    Order joined = turn->attributes().get<Order>("order");
    std::swap(joined[joined.size() - 1], joined[joined.size() - 2]);
    order = std::move(joined);
    value = turn->input(0);
  }
  if (std::is_sorted(order.begin(), order.end())) return value;
  return rewrite.add("transpose", Attributes({{"order", order}}), {value});
}

// k from its transpose, also where only the batches were put together for it.
Value* key_of(Rewrite& rewrite, Value* transposed, double& scale) {
  Value* value = without_factors(transposed, scale);
  const Node* apart = produced_by(value, "reshape");
  if (apart != nullptr && keeps_matrices(*apart) && produced_by(apart->input(0), "transpose") != nullptr)
    value = apart->input(0);
  Value* key = turned(rewrite, value);
  const Node* together = rewrite.ok() ? produced_by(key, "reshape") : nullptr;
  return together != nullptr && keeps_matrices(*together) ? together->input(0) : key;
}

// The axes [first, last) of `own` become one: its size, with those of `own` that must be repeated for it set to theirs
// in `scores`.
Dim join_axes(const Shape& scores, int first, int last, Shape& own) {
  bool is_repeated = true;
  for (int axis = first; axis < last; ++axis) is_repeated = is_repeated && own[axis] == 1;
  if (is_repeated) return 1;
  for (int axis = first; axis < last; ++axis) own[axis] = scores[axis];
  return product_of(own, first, last);
}

// A bias that broadcasts to `scores` as one that broadcasts to (batch, heads, queries, keys); null: the batches and
// heads are no neighbouring axes of these scores.
Value* in_planes_of(Rewrite& rewrite, Value* bias, const Shape& scores, const Planes& planes) {
  const Shape& own = bias->type.shape;
  if (own.rank() <= 2) return bias;
  const std::optional<int> split = batch_axes(scores, planes);
  if (!split.has_value()) return nullptr;
  if (scores.rank() == 4 && *split == 1) return bias;
  const int axes = scores.rank() - 2;
  Shape whole;
  for (int axis = own.rank(); axis < scores.rank(); ++axis) whole.push_back(1);
  for (const Dim& size : own) whole.push_back(size);
  Shape repeated = whole;
  const Dim batch = join_axes(scores, 0, *split, repeated);
  const Dim heads = join_axes(scores, *split, axes, repeated);
  bias = rewrite.reshape(bias, whole);
  bias = rewrite.expand(bias, repeated);
  return rewrite.ok() ? rewrite.reshape(bias, Shape({batch, heads, whole[axes], whole[axes + 1]})) : bias;
}

// b broadcasts to the shape of a.
bool covers(const Shape& a, const Shape& b) {
  if (b.rank() > a.rank()) return false;
  for (int back = 1; back <= b.rank(); ++back) {
    const Dim& size = b[b.rank() - back];
    if (!(size == 1) && !(size == a[a.rank() - back])) return false;
  }
  return true;
}

// All that is added to the scores, as one value, or as two where a sum would be larger than both. False: it cannot be
// said.
bool join_biases(Rewrite& rewrite, const Attention& found, const Planes& planes, DType dtype,
                 std::vector<Value*>& sums) {
  constexpr std::size_t most = 2;
  for (const Bias& each : found.biases) {
    Value* bias = each.value;
    if (each.mask != nullptr) {
      Value* seen = rewrite.scalar(dtype, 0);
      Value* hidden = rewrite.scalar(dtype, *repeated_element(each.value));
      bias = rewrite.add("where", {}, {each.mask, each.hides ? hidden : seen, each.hides ? seen : hidden});
    } else {
      bias = rewrite.cast(bias, dtype);
    }
    if (rewrite.ok()) bias = in_planes_of(rewrite, bias, each.scores, planes);
    if (!rewrite.ok() || bias == nullptr) return false;
    const Shape& shape = bias->type.shape;
    auto sum = std::find_if(sums.begin(), sums.end(), [&](const Value* other) {
      return covers(other->type.shape, shape) || covers(shape, other->type.shape);
    });
    if (sum == sums.end() && sums.size() < most) {
      sums.push_back(bias);
    } else {
      Value*& to = sum == sums.end() ? sums.back() : *sum;
      to = rewrite.add("add", {}, {to, bias});
    }
    if (!rewrite.ok()) return false;
  }
  return true;
}

bool equal_batches(const Value& a, const Value& b) {
  const Shape& x = a.type.shape;
  const Shape& y = b.type.shape;
  return x.rank() == y.rank() && x.rank() >= 2 && std::equal(x.begin(), x.end() - 2, y.begin());
}

// `mirrored`: the product is v · transpose(weights), and with it v and the result are transposed.
bool recognise_product(Graph& graph, Node* product, bool mirrored) {
  Attention found;
  Value* weights = product->input(mirrored ? 1 : 0);
  Value* v = product->input(mirrored ? 0 : 1);
  if (!equal_batches(*weights, *v)) return false;
  if (mirrored) {
    const Node* turn = produced_for_one(graph, weights, "transpose");
    if (turn == nullptr ||
        turn->attributes().get<Order>("order") != exchange(static_cast<std::size_t>(weights->type.shape.rank())))
      return false;
    weights = turn->input(0);
  }
  const Node* softmax = find_softmax(graph, weights, found);
  if (softmax == nullptr || !find_score_product(graph, softmax->input(0), found)) return false;
  if (!equal_batches(*found.q, *found.transposed_k) || found.q->type.dtype != v->type.dtype) return false;
  // What is added in f32 is not rounded.
  DType dtype = v->type.dtype;
  for (const Bias& bias : found.biases) dtype = bias.value->type.dtype == DType::f32 ? DType::f32 : dtype;

  const Planes planes = planes_of(found);
  Rewrite rewrite(graph, product);
  Value* q = without_factors(found.q, found.scale);
  if (found.row_scale != nullptr) q = rewrite.add("mul", {}, {q, rewrite.cast(found.row_scale, q->type.dtype)});
  q = in_planes(rewrite, q, planes);
  Value* k = in_planes(rewrite, key_of(rewrite, found.transposed_k, found.scale), planes);
  v = in_planes(rewrite, mirrored ? turned(rewrite, v) : v, planes);
  std::vector<Value*> biases;
  if (!join_biases(rewrite, found, planes, dtype, biases)) return false;
  std::vector<Value*> inputs{q, k, v};
  for (Value*& input : inputs) input = rewrite.cast(input, dtype);
  inputs.insert(inputs.end(), biases.begin(), biases.end());
  Value* y = rewrite.add("attention", Attributes({{"scale", found.scale}, {"guarded", found.guarded}}), inputs);
  if (rewrite.ok() && mirrored) y = turned(rewrite, y);
  if (!rewrite.ok()) return false;
  y = rewrite.cast(y, product->output()->type.dtype);
  return rewrite.commit(product->output(), rewrite.reshape(y, product->output()->type.shape));
}

bool may_be_attention(const Node& node) {
  if (!node.is("matmul")) return false;
  const DType dtype = node.output()->type.dtype;
  return dtype == DType::f32 || is_narrow(dtype);
}

}  // namespace

bool recognise_attention(Graph& graph, const Target&) {
  return at_every_node(graph, [](Graph& each, Node* node) {
    return may_be_attention(*node) && (recognise_product(each, node, false) || recognise_product(each, node, true));
  });
}

}  // namespace polyphase

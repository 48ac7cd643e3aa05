// recognise_attention: two products around a softmax, as exporters write attention, become one operator.
//
//   %s = matmul(mul(%q, %c), mul(transpose(%k), %c))
//   %w = softmax(add(%s, %mask))                        →   %y = attention(%q, %k, %v, %mask) scale=c·c
//   %y = matmul(%w, %v)
//
//   %y = matmul(%v, transpose(%w))                      →   %y = transpose(attention(%q, %k, transpose(%v)))
//
// The scale may stand on q, on k, on both, or behind the product; the mask may be added or select (where(%m, %s,
// -inf)); reshapes may lead from (batch · heads) to (batch, heads) and back anywhere between; where(is_nan(%w), 0, %w)
// makes the attention guarded. k may be transposed through such a reshape. Nobody else may read scores or weights.
// Float dtypes of at most 32 bits, which have a kernel. Reads values.
#include <algorithm>
#include <cmath>
#include <numeric>

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
};

struct Attention {
  Value* q = nullptr;
  Value* transposed_k = nullptr;
  double scale = 1;
  bool guarded = false;
  std::vector<Bias> biases;
  Shape scores;   // where the biases are added; of the product if there are none
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
bool try_bias(const Graph& graph, const Node& node, std::size_t side, const Bias& bias, Attention& found) {
  if (!(node.input(side)->type == node.output()->type)) return false;
  Attention next = found;
  next.biases.push_back(bias);
  next.scores = node.output()->type.shape;
  if (!find_score_product(graph, node.input(side), next)) return false;
  found = std::move(next);
  return true;
}

bool find_behind_bias(const Graph& graph, const Node& node, Attention& found) {
  if (found.scale != 1) return false;  // it would scale the bias too
  if (!found.biases.empty() && !(found.scores == node.output()->type.shape)) return false;
  if (node.is("add")) {
    return try_bias(graph, node, 0, {node.input(1)}, found) || try_bias(graph, node, 1, {node.input(0)}, found);
  }
  for (const std::size_t side : {std::size_t{1}, std::size_t{2}}) {
    const auto hidden = repeated_element(node.input(3 - side));
    if (!hidden.has_value()) continue;
    // Of a score to which the lowest finite number is added nothing is left either.
    const bool lowest = *hidden < -1e38 && node.output()->type.dtype == DType::f32 && found.biases.empty();
    if (*hidden != -INFINITY && !lowest) continue;
    if (try_bias(graph, node, side, {node.input(3 - side), node.input(0), side == 2}, found)) return true;
  }
  return false;
}

// From the softmax back to the first product.
bool find_score_product(const Graph& graph, Value* scores, Attention& found) {
  constexpr int most_steps = 16;
  if (scores->producer == nullptr || !graph.has_one_user(scores) || ++found.steps > most_steps) return false;
  const Node& node = *scores->producer;
  if (node.is("matmul")) {
    if (found.biases.empty()) found.scores = scores->type.shape;
    found.q = node.input(0);
    found.transposed_k = node.input(1);
    return true;
  }
  if (node.is("add") || node.is("where")) return find_behind_bias(graph, node, found);
  Value* before = behind_factor(scores, found.scale);
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

Planes planes_of(const Shape& scores) {
  Planes out;
  if (scores.rank() == 4) return {scores[0], scores[1]};
  for (int axis = 0; axis + 2 < scores.rank(); ++axis) out.batch = out.batch * scores[axis];
  return out;
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

// A bias of these scores as one that broadcasts to (batch, heads, queries, keys).
Value* in_planes_of(Rewrite& rewrite, Value* bias, const Shape& scores) {
  const Shape& own = bias->type.shape;
  if (scores.rank() == 4 || own.rank() <= 2) return bias;
  if (scores.rank() != 3) return nullptr;
  return rewrite.reshape(bias, Shape({own[0], Dim(1), own[1], own[2]}));
}

// All that is added to the scores in one; null: nothing. False: it cannot be said.
bool join_biases(Rewrite& rewrite, const Attention& found, DType dtype, Value*& sum) {
  for (const Bias& each : found.biases) {
    Value* bias = each.value;
    if (each.mask != nullptr) {
      Value* seen = rewrite.scalar(dtype, 0);
      Value* hidden = rewrite.scalar(dtype, *repeated_element(each.value));
      bias = rewrite.add("where", {}, {each.mask, each.hides ? hidden : seen, each.hides ? seen : hidden});
    } else {
      bias = rewrite.cast(bias, dtype);
    }
    if (rewrite.ok()) bias = in_planes_of(rewrite, bias, found.scores);
    if (!rewrite.ok() || bias == nullptr) return false;
    sum = sum == nullptr ? bias : rewrite.add("add", {}, {sum, bias});
  }
  return rewrite.ok();
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

  const Planes planes = planes_of(found.scores);
  Rewrite rewrite(graph, product);
  Value* q = in_planes(rewrite, without_factors(found.q, found.scale), planes);
  Value* k = in_planes(rewrite, key_of(rewrite, found.transposed_k, found.scale), planes);
  v = in_planes(rewrite, mirrored ? turned(rewrite, v) : v, planes);
  Value* bias = nullptr;
  if (!join_biases(rewrite, found, dtype, bias)) return false;
  std::vector<Value*> inputs{q, k, v};
  for (Value*& input : inputs) input = rewrite.cast(input, dtype);
  if (bias != nullptr) inputs.push_back(bias);
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
  return in_every_graph(graph, [](Graph& each) {
    bool changed = false;
    for (Node* node : each.node_list())
      changed =
          (may_be_attention(*node) && (recognise_product(each, node, false) || recognise_product(each, node, true))) ||
          changed;
    return changed;
  });
}

}  // namespace polyphase

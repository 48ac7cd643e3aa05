// recognise_normalisations: mean, difference, variance and quotient, written out, get their own word.
//
//   %m = reduce_mean(%x)  %d = sub(%x, %m)  %v = reduce_mean(%d * %d)
//   %n = div(%d, sqrt(%v + epsilon))        →   %n = layer_norm(%x), or instance_norm(%x)
//
//   %n = div(%x, sqrt(reduce_mean(%x * %x) + epsilon))  →  %n = layer_norm(%x) centre=false   (RMSNorm)
//
//   %y = add(mul(%n, %scale), %bias)        →   the norm's own scale and bias
//
//   reshape(instance_norm(reshape(%x) [N, G, …]))  →  group_norm(%x) groups=G
//   reshape(instance_norm(reshape(%x) [1, N*C, …]))  →  instance_norm(%x)
//
// Trailing axes make a layer_norm, all spatial axes of an image an instance_norm; the channel axis alone a layer_norm
// between two transposes, which channels-last memory does not notice. Constants only for scale and bias. Reads values.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

using Axes = std::vector<std::int64_t>;

bool put_rewritten(Graph& graph, Node* node, Value* instead, Rewrite& rewrite) {
  static_cast<void>(graph);
  return rewrite.ok() && rewrite.commit(node->output(), instead);
}

// ---------------------------------------------------------------- the chain

const Node* mean_of(const Value* value) {
  const Node* node = produced_by(value, "reduce_mean");
  return node != nullptr && node->attributes().get<bool>("keep") ? node : nullptr;
}

// x - mean(x): the mean; else null.
const Node* mean_taken_from(const Value* difference) {
  const Node* sub = produced_by(difference, "sub");
  const Node* mean = sub == nullptr ? nullptr : mean_of(sub->input(1));
  return mean != nullptr && mean->input(0) == sub->input(0) ? mean : nullptr;
}

struct Deviation {
  const Node* variance = nullptr;  // the mean of squares
  double epsilon = 0;
};

// variance + epsilon, of which the root is taken.
Deviation variance_of(const Value* value) {
  const Node* sum = produced_by(value, "add");
  for (std::size_t side = 0; sum != nullptr && side < 2; ++side) {
    const auto epsilon = repeated_element(sum->input(side));
    const Node* mean = mean_of(sum->input(1 - side));
    if (epsilon.has_value() && mean != nullptr) return {mean, *epsilon};
  }
  return {};
}

// The deviation by which `node` divides operand 0.
Deviation divisor_of(const Node& node, std::size_t side) {
  const Value* other = node.input(1 - side);
  if (node.is("div")) {
    const Node* root = side == 0 ? produced_by(other, "sqrt") : nullptr;
    return root == nullptr ? Deviation{} : variance_of(root->input(0));
  }
  if (const Node* reciprocal = produced_by(other, "reciprocal")) {
    const Node* root = produced_by(reciprocal->input(0), "sqrt");
    return root == nullptr ? Deviation{} : variance_of(root->input(0));
  }
  const Node* power = produced_by(other, "pow");
  return power != nullptr && is_filled_with(power->input(1), -0.5) ? variance_of(power->input(0)) : Deviation{};
}

// Axes of more than one element, or of unknown size.
Axes counting_axes(const Axes& axes, const Shape& shape) {
  Axes out;
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(out),
               [&](std::int64_t axis) { return !(shape[static_cast<int>(axis)] == 1); });
  std::sort(out.begin(), out.end());
  return out;
}

Value* normalised(Rewrite& rewrite, Value* x, const Axes& axes, double epsilon, bool centre) {
  const auto rank = static_cast<std::int64_t>(x->type.shape.rank());
  const auto count = static_cast<std::int64_t>(axes.size());
  if (count == 0) return nullptr;
  if (axes == Axes{1} && rank > 2) {
    Axes there{0};
    for (std::int64_t axis = 2; axis < rank; ++axis) there.push_back(axis);
    there.push_back(1);
    Axes back{0, rank - 1};
    for (std::int64_t axis = 1; axis + 1 < rank; ++axis) back.push_back(axis);
    Value* last = rewrite.add("transpose", Attributes({{"order", there}}), {x});
    Value* norm =
        rewrite.add("layer_norm", Attributes({{"axis", rank - 1}, {"epsilon", epsilon}, {"centre", centre}}), {last});
    return rewrite.add("transpose", Attributes({{"order", back}}), {norm});
  }
  if (axes.back() != rank - 1 || axes.front() != rank - count) return nullptr;
  if (axes.front() == 2 && count >= 2 && centre)
    return rewrite.add("instance_norm", Attributes({{"epsilon", epsilon}}), {x});
  return rewrite.add("layer_norm", Attributes({{"axis", axes.front()}, {"epsilon", epsilon}, {"centre", centre}}), {x});
}

// The deviation by which x is divided comes from x itself, not from its distance to the mean.
bool recognise_uncentred(Graph& graph, Node* node) {
  for (std::size_t side = 0; side < 2; ++side) {
    const Deviation deviation = divisor_of(*node, side);
    Value* x = node->input(side);
    if (deviation.variance == nullptr || base_of_square(deviation.variance->input(0)) != x) continue;
    const Axes axes = counting_axes(deviation.variance->attributes().get<Axes>("axes"), x->type.shape);
    Rewrite rewrite(graph, node);
    Value* norm = normalised(rewrite, x, axes, deviation.epsilon, false);
    if (norm != nullptr && put_rewritten(graph, node, norm, rewrite)) return true;
  }
  return false;
}

bool recognise_chain(Graph& graph, Node* node) {
  for (std::size_t side = 0; side < 2; ++side) {
    const Node* mean = mean_taken_from(node->input(side));
    if (mean == nullptr) continue;
    const Deviation deviation = divisor_of(*node, side);
    if (deviation.variance == nullptr) continue;
    const Value* base = base_of_square(deviation.variance->input(0));
    const Node* again = base == nullptr ? nullptr : mean_taken_from(base);
    if (again == nullptr || again->input(0) != mean->input(0)) continue;
    const Axes& axes = mean->attributes().get<Axes>("axes");
    if (again->attributes().get<Axes>("axes") != axes || deviation.variance->attributes().get<Axes>("axes") != axes)
      continue;
    Value* x = mean->input(0);
    Rewrite rewrite(graph, node);
    Value* norm = normalised(rewrite, x, counting_axes(axes, x->type.shape), deviation.epsilon, true);
    if (norm != nullptr && put_rewritten(graph, node, norm, rewrite)) return true;
  }
  return recognise_uncentred(graph, node);
}

// ---------------------------------------------------------------- scale and bias

// A constant that varies along `first` and later axes only (count axes; -1: to the end), without the leading ones.
Value* table_along(Rewrite& rewrite, Value* operand, const Shape& image, int first, int end) {
  const Shape& shape = operand->type.shape;
  if (!is_constant(operand) || shape.rank() > image.rank()) return nullptr;
  const int lead = image.rank() - shape.rank();
  std::vector<Dim> sizes;
  for (int axis = 0; axis < image.rank(); ++axis) {
    const Dim size = axis < lead ? Dim(1) : shape[axis - lead];
    const bool inside = axis >= first && axis < end;
    if (!inside && !(size == 1)) return nullptr;
    if (inside) sizes.push_back(size);
  }
  return rewrite.reshape(operand, Shape(sizes));
}

Value* per_channel_table(Rewrite& rewrite, Value* operand, const Shape& image) {
  Value* table = table_along(rewrite, operand, image, 1, 2);
  return table == nullptr ? nullptr : rewrite.expand(table, Shape{image[1]});
}

// Kernels want the tables of a layer_norm in full.
Value* whole_table(Rewrite& rewrite, Value* table, const Shape& image, int axis) {
  if (table == nullptr || !rewrite.ok()) return nullptr;
  const Shape whole(std::vector<Dim>(image.begin() + axis, image.end()));
  return whole.is_static() ? rewrite.expand(table, whole) : table;
}

bool join_affine(Graph& graph, Node* node) {
  const std::size_t slot = node->is("mul") ? 1 : 2;
  for (std::size_t side = 0; side < 2; ++side) {
    Value* value = node->input(side);
    const Node* back = produced_for_one(graph, value, "transpose");
    const Value* normed = back == nullptr ? value : back->input(0);
    Node* norm = normed->producer;
    if (norm == nullptr || !graph.has_one_user(normed) || norm->fused()) continue;
    const bool layers = norm->is("layer_norm");
    if (!layers && !norm->is("instance_norm") && !norm->is("group_norm")) continue;
    if (norm->input(slot) != nullptr || norm->input(2) != nullptr) continue;

    Rewrite rewrite(graph, node, norm->name());
    Value* other = node->input(1 - side);
    const Shape& image = value->type.shape;
    std::string op = norm->op().name;
    Attributes attributes = norm->attributes();
    Value* table = nullptr;
    if (back != nullptr) {
      const bool channels_came_last = layers && attributes.get<std::int64_t>("axis") == image.rank() - 1 &&
                                      back->attributes().get<Axes>("order")[1] == image.rank() - 1;
      if (!channels_came_last) continue;
      table = per_channel_table(rewrite, other, image);
    } else if (layers) {
      const auto axis = static_cast<int>(attributes.get<std::int64_t>("axis"));
      table = whole_table(rewrite, table_along(rewrite, other, image, axis, image.rank()), image, axis);
      const bool centred = attributes.get<bool>("centre");
      if (table == nullptr && axis == 2 && norm->input(1) == nullptr &&
          centred) {  // per channel: it was an instance norm
        table = per_channel_table(rewrite, other, image);
        op = "instance_norm";
        attributes.erase("axis");
        attributes.erase("centre");
      }
    } else {
      table = per_channel_table(rewrite, other, image);
    }
    if (table == nullptr) continue;
    std::vector<Value*> inputs{norm->input(0), norm->input(1), norm->input(2)};
    inputs[slot] = table;
    Value* joined = rewrite.add(op, attributes, std::move(inputs));
    if (back != nullptr) joined = rewrite.add("transpose", back->attributes(), {joined});
    if (put_rewritten(graph, node, joined, rewrite)) return true;
  }
  return false;
}

// ---------------------------------------------------------------- between two reshapes

bool is_absent_or(const Value* value, double element) { return value == nullptr || is_filled_with(value, element); }

bool join_norm_reshapes(Graph& graph, Node* last) {
  const Value* normed = last->input(0);
  const Node* norm = normed->producer;
  if (norm == nullptr || norm->fused() || !graph.has_one_user(normed)) return false;
  const bool runs = norm->is("layer_norm") && norm->attributes().get<std::int64_t>("axis") == 2 &&
                    norm->attributes().get<bool>("centre");
  if (!runs && !norm->is("instance_norm")) return false;
  if (!is_absent_or(norm->input(1), 1) || !is_absent_or(norm->input(2), 0)) return false;
  const Node* first = produced_by(norm->input(0), "reshape");
  if (first == nullptr) return false;
  Value* x = first->input(0);
  const Shape& image = x->type.shape;
  const Shape& inside = first->output()->type.shape;
  if (!(image == last->output()->type.shape) || image.rank() < 3) return false;
  Attributes attributes({{"epsilon", norm->attributes().get<double>("epsilon")}});
  Rewrite rewrite(graph, last, norm->name());
  if (inside[0] == 1 && inside.rank() == image.rank() && inside[1] == image[0] * image[1] &&
      std::equal(inside.begin() + 2, inside.end(), image.begin() + 2)) {
    return put_rewritten(graph, last, rewrite.add("instance_norm", attributes, {x}), rewrite);
  }
  if (!(inside[0] == image[0]) || !inside[1].is_constant() || !image[1].is_constant()) return false;
  const std::int64_t groups = inside[1].value();
  if (groups < 1 || image[1].value() % groups != 0) return false;
  attributes.set("groups", groups);
  return put_rewritten(graph, last, rewrite.add("group_norm", attributes, {x}), rewrite);
}

bool recognise_normalisation(Graph& graph, Node* node) {
  if (node->is("reshape")) return join_norm_reshapes(graph, node);
  if (node->is("div")) return recognise_chain(graph, node);
  if (node->is("add")) return join_affine(graph, node);
  return node->is("mul") && (recognise_chain(graph, node) || join_affine(graph, node));
}

}  // namespace

bool recognise_normalisations(Graph& graph, const Target&) {
  return at_every_node(graph, [](Graph& each, Node* node) {
    return is_float(node->outputs().empty() ? DType::i64 : node->output()->type.dtype) &&
           recognise_normalisation(each, node);
  });
}

}  // namespace polyphase

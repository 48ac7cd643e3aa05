// attention: softmax(scale · Q · Kᵀ + bias + mask) · V for every head, as one operator, so that the scores need never
// exist at once.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "ops/cut.h"
#include "ops/dense.h"
#include "ops/families.h"

namespace polyphase {
namespace {

// Operands that are added to the scores, and their names.
constexpr std::size_t first_bias = 3;
constexpr std::string_view biases[] = {"bias", "mask"};

// An addend of the scores, of `q` and `k`.
Result<void> check_bias(const InferContext& context, std::size_t operand, const Type& q, const Type& k) {
  if (!context.has_input(operand)) return {};
  const Type& bias = context.input(operand);
  const Dim scores[] = {q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
  const std::string message = "attention: the " + std::string(biases[operand - first_bias]) +
                              " must have the dtype of q and broadcast to (B, heads, queries, keys), found " +
                              bias.text() + " beside " + q.text() + " and " + k.text() + ".";
  if (bias.dtype != q.dtype || bias.shape.rank() > 4) return Error{ErrorCode::invalid_model, message};
  for (int axis = 0; axis < bias.shape.rank(); ++axis) {
    const Dim& size = bias.shape[axis];
    if (size == 1) continue;
    TRY_VOID(context.require(size, DimCheck::Relation::equal, scores[4 - bias.shape.rank() + axis], message));
  }
  return {};
}

Result<std::vector<Type>> infer_attention(const InferContext& context) {
  const Type& q = context.input(0);
  const Type& k = context.input(1);
  const Type& v = context.input(2);
  const std::string found = "found " + q.text() + ", " + k.text() + " and " + v.text() + ".";
  if (!is_float(q.dtype) || k.dtype != q.dtype || v.dtype != q.dtype || q.shape.rank() != 4 || k.shape.rank() != 4 ||
      v.shape.rank() != 4) {
    return Error{ErrorCode::invalid_model,
                 "attention: q, k and v must be (B, heads, length, width) of one float dtype, " + found};
  }
  const auto equal = [&](const Dim& a, const Dim& b, const std::string& rule) {
    return context.require(a, DimCheck::Relation::equal, b, "attention: " + rule + ", " + found);
  };
  TRY_VOID(equal(q.shape[0], k.shape[0], "q and k must have the same batch"));
  TRY_VOID(equal(q.shape[0], v.shape[0], "q and v must have the same batch"));
  TRY_VOID(equal(k.shape[1], v.shape[1], "k and v must have the same heads"));
  TRY_VOID(equal(q.shape[3], k.shape[3], "a head of q and one of k must have the same width"));
  TRY_VOID(equal(k.shape[2], v.shape[2], "k and v must have the same length"));
  if (!(q.shape[1] == k.shape[1])) {
    TRY_VOID(context.require(1, DimCheck::Relation::less_equal, k.shape[1],
                             "attention: k and v must have at least one head, " + found));
    TRY_VOID(equal(floor_mod(q.shape[1], k.shape[1]), 0, "the heads of k must divide those of q"));
  }
  for (std::size_t i = 0; i < std::size(biases); ++i) TRY_VOID(check_bias(context, first_bias + i, q, k));
  return std::vector<Type>{{q.dtype, Shape({q.shape[0], q.shape[1], q.shape[2], v.shape[3]})}};
}

struct Sizes {
  std::int64_t batches, heads, shared_heads, queries, keys, width, value_width;
  explicit Sizes(const ReferenceContext& context)
      : batches(context.inputs[0].sizes[0]),
        heads(context.inputs[0].sizes[1]),
        shared_heads(context.inputs[1].sizes[1]),
        queries(context.inputs[0].sizes[2]),
        keys(context.inputs[1].sizes[2]),
        width(context.inputs[0].sizes[3]),
        value_width(context.inputs[2].sizes[3]) {}
};

// One operand that is added to the scores, element by element.
class Bias {
 public:
  Bias(const ReferenceContext& context, std::size_t operand, const Sizes& sizes) {
    if (!context.has_input(operand)) return;
    const TensorView& bias = context.inputs[operand];
    values_ = dense_values<double>(bias);
    const std::int64_t whole[] = {sizes.batches, sizes.heads, sizes.queries, sizes.keys};
    std::int64_t step = 1;
    for (int axis = bias.rank - 1; axis >= 0; --axis) {
      const auto at = static_cast<std::size_t>(4 - bias.rank + axis);
      const std::int64_t size = bias.sizes[static_cast<std::size_t>(axis)];
      if (size == whole[at] && size != 1) strides_[at] = step;
      step *= size;
    }
  }
  double at(std::int64_t batch, std::int64_t head, std::int64_t query, std::int64_t key) const {
    if (values_.empty()) return 0;
    return values_[static_cast<std::size_t>(batch * strides_[0] + head * strides_[1] + query * strides_[2] +
                                            key * strides_[3])];
  }

 private:
  std::vector<double> values_;
  std::int64_t strides_[4] = {};
};

// Scores to weights, in place. A query that sees no key has none: the weights are NaN, or zeros where that is guarded.
void weigh(std::vector<double>& scores, bool guarded) {
  const double largest = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score = guarded && !(sum > 0) ? 0 : score / sum;
}

Result<void> reference_attention(const ReferenceContext& context) {
  const Sizes n(context);
  const double scale = context.attributes.get<double>("scale");
  const bool causal = context.attributes.get<bool>("causal");
  const bool guarded = context.attributes.get<bool>("guarded");
  const std::vector<double> q = dense_values<double>(context.inputs[0]);
  const std::vector<double> k = dense_values<double>(context.inputs[1]);
  const std::vector<double> v = dense_values<double>(context.inputs[2]);
  const Bias bias(context, first_bias, n);
  const Bias mask(context, first_bias + 1, n);
  std::vector<double> result(static_cast<std::size_t>(n.batches * n.heads * n.queries * n.value_width));
  std::vector<double> scores(static_cast<std::size_t>(n.keys));
  const double* query = q.data();
  double* to = result.data();
  for (std::int64_t plane = 0; plane < n.batches * n.heads; ++plane) {
    const std::int64_t batch = plane / n.heads;
    const std::int64_t head = plane % n.heads;
    const std::int64_t shared = batch * n.shared_heads + head / (n.heads / n.shared_heads);
    for (std::int64_t i = 0; i < n.queries; ++i, query += n.width, to += n.value_width) {
      for (std::int64_t j = 0; j < n.keys; ++j) {
        const double* key = k.data() + (shared * n.keys + j) * n.width;
        double sum = 0;
        for (std::int64_t c = 0; c < n.width; ++c) sum += query[c] * key[c];
        const bool hidden = causal && j > i;
        scores[static_cast<std::size_t>(j)] =
            hidden ? -INFINITY : sum * scale + bias.at(batch, head, i, j) + mask.at(batch, head, i, j);
      }
      weigh(scores, guarded);
      for (std::int64_t j = 0; j < n.keys; ++j) {
        const double* value = v.data() + (shared * n.keys + j) * n.value_width;
        for (std::int64_t c = 0; c < n.value_width; ++c) to[c] += scores[static_cast<std::size_t>(j)] * value[c];
      }
    }
  }
  store_values(result, context.outputs[0]);
  return {};
}

// Queries may lie in pieces where keys and values do not depend on them.
CutAnswer cut_attention(const CutContext& context) {
  const CutState& q = context.state(0);
  if (context.any_cut(1))
    return "lets every place look at all places of " + axis_words(q.is_cut() ? q : context.state(1));
  if (q.axis != 2 || context.attributes().get<bool>("causal")) return "mixes the whole of " + axis_words(q);
  for (std::size_t i = 0; i < std::size(biases); ++i) {
    if (!context.has_operand(first_bias + i)) continue;
    const Shape& bias = context.operand(first_bias + i).shape;
    if (bias.rank() >= 2 && !(bias[bias.rank() - 2] == 1))
      return "has a " + std::string(biases[i]) + " of its own for every query";
  }
  return q;
}

}  // namespace

std::vector<OpDef> attention_operators() {
  return {OpDef{
      .name = "attention",
      .doc =
          "Scaled dot-product attention, y = softmax(scale * q * transpose(k) + bias + mask) * v for every head; the "
          "softmax runs over the keys.\n"
          "Neighbouring heads of q share a head of k and v where those have fewer. A bias or mask of -inf hides a "
          "key; they are two where their sum would be larger than both, as in shifted windows, whose bias is of the "
          "heads and whose mask of the windows (Liu et al. 2021).\n"
          "Source: torch.nn.functional.scaled_dot_product_attention; ONNX operator Attention-23; Vaswani et al. "
          "2017.",
      .inputs = {{"q", "(B, H, S, D), float"},
                 {"k", "(B, G, T, D), G divides H"},
                 {"v", "(B, G, T, E)"},
                 {"bias", "broadcasts to (B, H, S, T); absent means 0", true},
                 {"mask", "the same", true}},
      .outputs = {{"y", "(B, H, S, E)"}},
      .attributes = {{"scale", AttributeKind::real, "multiplies the products", Attribute(1.0)},
                     {"causal", AttributeKind::boolean, "query i sees the keys 0 to i only", Attribute(false)},
                     {"guarded", AttributeKind::boolean,
                      "weights that are NaN count as 0: a query that sees no key gives zeros", Attribute(false)}},
      .infer = infer_attention,
      .reference = reference_attention,
      .cut = cut_attention,
      .one_dtype = 0b11111,
      .layout = LayoutRule::row_major}};
}

}  // namespace polyphase

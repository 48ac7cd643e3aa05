// Matrix products and attention.
#include <cmath>

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"
#include "import/torch/names.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;

template <const char* other>
Result<Values> convert_matmul(AtenNode& node) {
  Composer c(node);
  return c.results({c.matmul(node.tensor("self"), node.tensor(other))});
}

// x·transpose(weight) + bias
Result<Values> convert_linear(AtenNode& node) {
  Composer c(node);
  Value* const weight = node.tensor("weight");
  Value* const bias = node.tensor("bias");
  Value* const product = c.matmul(node.tensor("input"), c.rank(weight) == 2 ? c.swap_last(weight) : weight);
  return c.results({bias == nullptr ? product : c.add(product, bias)});
}

// beta·self + alpha·(a·b)
template <const char* first, const char* second>
Result<Values> convert_addmm(AtenNode& node) {
  Composer c(node);
  Value* product = c.matmul(node.tensor(first), node.tensor(second));
  const double alpha = node.real("alpha");
  const double beta = node.real("beta");
  if (alpha != 1) product = c.mul(product, alpha);
  if (beta == 0) return c.results({product});
  Value* self = node.tensor("self");
  if (beta != 1) self = c.mul(self, beta);
  return c.results({c.add(product, self)});
}

// Leading axes become one, missing ones are added: (…, S, D) → (B, H, S, D), H the last of the leading axes.
Value* four_axes(Composer& c, Value* x) {
  while (c.ok() && c.rank(x) < 4) x = c.unsqueeze(x, 0);
  if (!c.ok() || c.rank(x) == 4) return x;
  Dim images = 1;
  for (int i = 0; i < c.rank(x) - 3; ++i) images *= c.size(x, i);
  return c.reshape(x, {images, c.size(x, -3), c.size(x, -2), c.size(x, -1)});
}

// The sizes before the last two axes that all of these have in common: an axis of one element serves any number.
Sizes common_leading(Composer& c, const Values& operands) {
  Sizes common;
  for (const Value* operand : operands) {
    const int leading = c.rank(operand) - 2;
    while (static_cast<int>(common.size()) < leading) common.insert(common.begin(), Dim(1));
    for (int i = 0; i < leading; ++i) {
      Dim& size = common[common.size() - static_cast<std::size_t>(leading - i)];
      if (size == 1) size = c.size(operand, i);
    }
  }
  return common;
}

// With axes that it lacks, or that have one element, repeated to `leading`; the last of these, the heads, only if
// `heads`.
Value* spread(Composer& c, Value* x, const Sizes& leading, bool heads) {
  while (c.ok() && static_cast<std::size_t>(c.rank(x)) < leading.size() + 2) x = c.unsqueeze(x, 0);
  Sizes sizes = c.sizes(x);
  for (std::size_t i = 0; i + (heads ? 0 : 1) < leading.size() && c.ok(); ++i) {
    if (sizes[i] == 1) sizes[i] = leading[i];
  }
  return c.expand(x, std::move(sizes));
}

// True hides nothing, false hides the key; numbers are added.
Value* bias_of(AtenNode& node, Composer& c, DType dtype) {
  if (!node.has("attn_mask")) return nullptr;
  Value* mask = node.tensor("attn_mask");
  if (c.dtype(mask) == DType::boolean) mask = c.where(mask, c.number(0, dtype), c.number(-INFINITY, dtype));
  return four_axes(c, c.cast(mask, dtype));
}

Result<Values> convert_attention(AtenNode& node) {
  Composer c(node);
  Value* const query = node.tensor("query");
  if (node.real("dropout_p") != 0)
    return lacking("attention drops weights at random.", "Call eval() on the module before the export.");
  if (c.rank(query) < 2) return broken_program("scaled_dot_product_attention takes operands of two axes at least.");
  double scale = 1;
  if (node.has("scale")) {
    scale = node.real("scale");
  } else {
    const auto width = c.size(query, -1).constant();
    if (!width.has_value() || *width == 0)
      return lacking("the last axis of the query has no fixed size, and no scale is given.", "Pass scale=.");
    scale = 1 / std::sqrt(static_cast<double>(*width));
  }
  Value* const bias = bias_of(node, c, c.dtype(query));
  const Sizes leading = common_leading(c, {query, node.tensor("key"), node.tensor("value")});
  // The operator itself repeats the heads of the keys and values.
  const bool repeats = c.rank(node.tensor("key")) > 2 && c.rank(node.tensor("value")) > 2 &&
                       c.size(node.tensor("key"), -3) == c.size(node.tensor("value"), -3);
  const auto operand = [&](const char* parameter) {
    const bool heads = !repeats || std::string_view(parameter) == "query";
    return four_axes(c, spread(c, node.tensor(parameter), leading, heads));
  };
  // Rows of which every key is hidden give 0, as in torch's _safe_softmax.
  Value* const y =
      c.with_optional("attention", {operand("query"), operand("key"), operand("value"), bias},
                      Attributes({{"scale", scale}, {"causal", node.flag("is_causal")}, {"guarded", bias != nullptr}}));
  Sizes sizes = leading;
  sizes.push_back(c.size(query, -2));
  sizes.push_back(c.size(node.tensor("value"), -1));
  return c.results({c.reshape(y, std::move(sizes))});
}

}  // namespace

std::vector<AtenEntry> aten_matmul_entries() {
  return {
      {"addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
       convert_addmm<name_mat1, name_mat2>},
      {"baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
       convert_addmm<name_batch1, name_batch2>},
      {"bmm(Tensor self, Tensor mat2) -> Tensor", convert_matmul<name_mat2>},
      {"linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", convert_linear},
      {"matmul(Tensor self, Tensor other) -> Tensor", convert_matmul<name_other>},
      {"mm(Tensor self, Tensor mat2) -> Tensor", convert_matmul<name_mat2>},
      {"scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
       "dropout_p=0., "
       "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
       convert_attention},
  };
}

}  // namespace polyphase

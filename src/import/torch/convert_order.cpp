// Orders along an axis: sorting, the greatest and least, the greatest and least so far.
#include "import/compose/composer.h"
#include "import/torch/aten_node.h"
#include "import/torch/names.h"

namespace polyphase {
namespace {

Result<Values> ordered(AtenNode& node, std::int64_t axis, Dim count, bool largest) {
  Composer c(node);
  Value* const x = node.tensor("self");
  const bool is_bool = c.dtype(x) == DType::boolean;
  Value* const line = c.as_line(is_bool ? c.cast(x, DType::u8) : x);
  if (!c.ok()) return c.results({});
  const bool single = c.rank(x) == 0 && count == 1;
  TRY(Values found,
      node.emit_all("top_k", Attributes({{"axis", axis}, {"k", std::move(count)}, {"largest", largest}}), {line}));
  if (single) {
    for (Value*& value : found) value = c.reshape(value, {});
  }
  if (is_bool) found[0] = c.cast(found[0], DType::boolean);
  return c.results(std::move(found));
}

Result<Values> convert_topk(AtenNode& node) {
  Composer c(node);
  TRY(const std::int64_t axis, node.axis("dim", c.rank(node.tensor("self"))));
  return ordered(node, axis, node.size("k"), node.flag("largest"));
}

Result<Values> convert_sort(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  return ordered(node, axis, c.rank(x) == 0 ? Dim(1) : c.size(x, static_cast<int>(axis)), node.flag("descending"));
}

Result<Values> convert_argsort(AtenNode& node) {
  TRY(Values both, convert_sort(node));
  return Values{both[1]};
}

// Bools have no order of their own here. A single number is its own extreme, at place 0.
template <const char* extreme>
Result<Values> convert_extreme_so_far(AtenNode& node) {
  Composer c(node);
  Value* const given = node.tensor("self");
  TRY(const std::int64_t axis, node.axis("dim", c.rank(given)));
  Value* const x = c.dtype(given) == DType::boolean ? c.cast(given, DType::u8) : given;
  TRY(Values found, node.emit_all(extreme, Attributes({{"axis", axis}}), {c.as_line(x)}));
  return c.results({c.reshape(c.cast(found[0], c.dtype(given)), c.sizes(x)), c.reshape(found[1], c.sizes(x))});
}

}  // namespace

std::vector<AtenEntry> aten_order_entries() {
  return {
      {"argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", convert_argsort},
      {"argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor", convert_argsort},
      {"cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", convert_extreme_so_far<name_cum_max>},
      {"cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", convert_extreme_so_far<name_cum_min>},
      {"sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", convert_sort},
      {"sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
       "indices)",
       convert_sort},
      {"topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor "
       "indices)",
       convert_topk},
  };
}

}  // namespace polyphase

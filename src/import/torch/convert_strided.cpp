// as_strided: elements named by their places in PyTorch's memory.
//
// A tensor whose elements lie side by side, each once, is a line of them in the order of its memory:
//
//   y[i, j, …] = line[offset + i·stride[0] + j·stride[1] + …]
//
// which is a gather, or, where y is the whole line too, a transpose. A tensor that is a part of another one's memory
// (a slice, say) hands over to that one where the places may lie outside of it.
#include <algorithm>
#include <optional>

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"

namespace polyphase {
namespace {

using Integers = Composer::Integers;
using Sizes = Composer::Sizes;

// The axes from the one with the greatest stride to the one with the least, if the elements lie side by side.
std::optional<Integers> order_in_memory(const Sizes& sizes, const Sizes& strides) {
  Integers order;
  std::vector<bool> placed(sizes.size(), false);
  Dim behind = 1;
  while (order.size() < sizes.size()) {
    std::size_t found = sizes.size();
    for (std::size_t axis = sizes.size(); axis-- > 0 && found == sizes.size();) {
      if (!placed[axis] && (sizes[axis] == 1 || strides[axis] == behind)) found = axis;
    }
    if (found == sizes.size()) return std::nullopt;
    placed[found] = true;
    behind *= max(sizes[found], 1);
    order.push_back(static_cast<std::int64_t>(found));
  }
  std::reverse(order.begin(), order.end());
  return order;
}

Dim product(const Sizes& sizes) {
  Dim out = 1;
  for (const Dim& size : sizes) out *= size;
  return out;
}

Sizes reordered(const Sizes& sizes, const Integers& order) {
  Sizes out;
  for (const std::int64_t axis : order) out.push_back(sizes[static_cast<std::size_t>(axis)]);
  return out;
}

Integers inverse(const Integers& order) {
  Integers out(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) out[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return out;
}

// The tensor that as_strided asks for, and the line that it is taken from.
struct Strided {
  Sizes sizes;
  Sizes strides;
  Dim first;  // the place of its first element in the line
  Value* tensor = nullptr;
  Integers order;  // of the tensor's axes in the line

  // As the line: its elements in the order of memory.
  Value* line(Composer& c) const { return c.reshape(c.transpose(tensor, order), {product(c.sizes(tensor))}); }
  // (sizes): where each element stands in the line.
  Value* places(Composer& c) const {
    Value* out = c.dims({first}, true);
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] == 1 || strides[axis] == 0) continue;
      Sizes along(sizes.size() - axis, Dim(1));
      along[0] = sizes[axis];
      Value* const steps = c.mul(c.counting(sizes[axis], DType::i64), c.dims({strides[axis]}, true));
      out = c.add(out, c.reshape(steps, std::move(along)));
    }
    return c.expand(out, sizes);
  }
};

Error outside(const std::string& what) {
  return lacking("as_strided of " + what + ".", "Take the elements with slices, unfold or an index.");
}

// Of the tensors that share the memory, the first that holds every place.
Result<Strided> strided(AtenNode& node, std::size_t most) {
  Strided out;
  out.sizes = node.sizes("size");
  out.strides = node.sizes("stride");
  if (out.sizes.size() != out.strides.size())
    return broken_program("mismatch in length of strides and shape: " + std::to_string(out.strides.size()) + " and " +
                          std::to_string(out.sizes.size()) + ".");
  for (const auto* list : {&out.sizes, &out.strides}) {
    for (const Dim& entry : *list) {
      if (entry.range().high < 0) return broken_program("as_strided: negative sizes and strides are not supported");
    }
  }
  TRY(std::vector<AtenMemory> memories, node.memories("self"));
  if (memories.empty()) return outside("a tensor whose strides the program does not tell");
  const Dim offset = node.has("storage_offset") ? node.size("storage_offset") : memories.front().offset;
  memories.resize(std::min(memories.size(), most));
  Dim reach = 0;  // from the first place to the last
  for (std::size_t i = 0; i < out.sizes.size(); ++i) reach += max(out.sizes[i] - 1, 0) * out.strides[i];
  for (const AtenMemory& memory : memories) {
    const Sizes& sizes = memory.tensor->type.shape.dims();
    const auto order = order_in_memory(sizes, memory.strides);
    const bool last = &memory == &memories.back() || memory.may_be_own;
    if (!order.has_value()) {
      if (last) break;
      continue;
    }
    const Dim first = offset - memory.offset;
    const Dim end = first + reach + 1;
    const bool empty = product(out.sizes) == 0;
    const bool inside = empty || (surely_less_equal(0, first) && surely_less_equal(end, product(sizes)));
    if (!inside && !last) continue;
    if (!empty && (surely_less_equal(first, -1) || surely_less_equal(product(sizes) + 1, end)))
      return outside("more than its operand holds: memory that the program does not show");
    if (!empty) {
      const DimDemands demands(node.graph().checks());
      const std::string words = "as_strided reaches beyond the memory of " + memory.tensor->type.text() + ".";
      TRY_VOID(demands.require(0, DimCheck::Relation::less_equal, first, words));
      TRY_VOID(demands.require(end, DimCheck::Relation::less_equal, product(sizes), words));
    }
    out.first = first;
    out.tensor = memory.tensor;
    out.order = *order;
    return out;
  }
  return outside("a tensor whose elements do not lie side by side in memory");
}

Result<Values> convert_as_strided(AtenNode& node) {
  TRY(const Strided asked, strided(node, SIZE_MAX));
  Composer c(node);
  Value* const line = asked.line(c);
  const auto order = order_in_memory(asked.sizes, asked.strides);
  if (order.has_value() && asked.first == 0 && product(asked.sizes) == c.size(line, 0))
    return c.results({c.transpose(c.reshape(line, reordered(asked.sizes, *order)), inverse(*order))});
  return c.results({c.gather(line, asked.places(c), 0)});
}

// A copy of self with the places that as_strided names replaced.
Result<Values> convert_as_strided_scatter(AtenNode& node) {
  TRY(const Strided asked, strided(node, 1));
  Composer c(node);
  Value* const places = asked.places(c);
  Value* const source = c.expand(c.cast(node.tensor("src"), c.dtype(asked.tensor)), asked.sizes);
  Value* const line = c.op("scatter_nd", {asked.line(c), c.unsqueeze(places, c.rank(places)), source},
                           Attributes({{"reduction", std::string("none")}}));
  const Sizes sizes = reordered(c.sizes(asked.tensor), asked.order);
  return c.results({c.transpose(c.reshape(line, sizes), inverse(asked.order))});
}

}  // namespace

std::vector<AtenEntry> aten_strided_entries() {
  return {
      {"as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
       convert_as_strided},
      {"as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
       convert_as_strided},
      {"as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
       "Tensor",
       convert_as_strided_scatter},
  };
}

}  // namespace polyphase

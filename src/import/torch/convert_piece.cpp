// Pieces of tensors and tensors of pieces.
#include <algorithm>

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"
#include "import/torch/places.h"

namespace polyphase {
namespace {

using Integers = Composer::Integers;
using Sizes = Composer::Sizes;

// Of one dtype by promotion; the legacy empty tensors of shape (0) do not count.
Result<Values> parts_of(AtenNode& node, Composer& c) {
  const Values given = node.tensors("tensors");
  if (given.empty()) return broken_program("cat expects a non-empty list of Tensors.");
  const DType dtype = node.promoted({"tensors"});
  Values parts;
  for (Value* part : given) {
    if (c.rank(part) != 1 || !(c.size(part, 0) == 0)) parts.push_back(c.cast(part, dtype));
  }
  if (parts.empty()) parts.push_back(c.cast(given.front(), dtype));
  return parts;
}

Result<Values> convert_cat(AtenNode& node) {
  Composer c(node);
  TRY(Values parts, parts_of(node, c));
  TRY(const std::int64_t axis, node.axis("dim", c.rank(parts.front())));
  return c.results({c.concat(std::move(parts), axis)});
}

Result<Values> convert_stack(AtenNode& node) {
  Composer c(node);
  const Values given = node.tensors("tensors");
  if (given.empty()) return broken_program("stack expects a non-empty TensorList");
  const DType dtype = node.promoted({"tensors"});
  TRY(const std::int64_t axis, node.axis("dim", c.rank(given.front()) + 1));
  Values parts;
  for (Value* part : given) parts.push_back(c.unsqueeze(c.cast(part, dtype), static_cast<int>(axis)));
  return c.results({c.concat(std::move(parts), axis)});
}

Result<Values> pieces(AtenNode& node, Composer& c, int axis, const Sizes& sizes) {
  Values out;
  Dim start = 0;
  Value* const x = node.tensor("self");
  for (const Dim& size : sizes) {
    out.push_back(c.slice(x, axis, start, size));
    start += size;
  }
  c.require_equal(start, c.size(x, axis), "split: the pieces must have as many elements as the axis.");
  if (!c.ok()) return c.results({});
  return out;
}

// Pieces of one size, the last with what is left; how many there are the program says.
Result<Values> equal_pieces(AtenNode& node, Composer& c, int axis, const Dim& size) {
  const std::size_t count = node.result_count();
  if (count == 0) return broken_program("split gives no tensor.");
  Sizes sizes(count - 1, size);
  sizes.push_back(c.size(node.tensor("self"), axis) - size * Dim(static_cast<std::int64_t>(count) - 1));
  return pieces(node, c, axis, sizes);
}

Result<Values> convert_split(AtenNode& node) {
  Composer c(node);
  TRY(const std::int64_t axis, node.axis("dim", c.rank(node.tensor("self"))));
  return equal_pieces(node, c, static_cast<int>(axis), node.size("split_size"));
}

Result<Values> convert_chunk(AtenNode& node) {
  Composer c(node);
  TRY(const std::int64_t axis, node.axis("dim", c.rank(node.tensor("self"))));
  const std::int64_t chunks = node.integer("chunks");
  if (chunks <= 0) return broken_program("chunk expects `chunks` to be greater than 0, got: " + std::to_string(chunks));
  return equal_pieces(node, c, static_cast<int>(axis),
                      ceil_div(c.size(node.tensor("self"), static_cast<int>(axis)), chunks));
}

Result<Values> convert_split_sizes(AtenNode& node) {
  Composer c(node);
  TRY(const std::int64_t axis, node.axis("dim", c.rank(node.tensor("self"))));
  return pieces(node, c, static_cast<int>(axis), node.sizes("split_sizes"));
}

Value* selected(Composer& c, Value* x, int axis, Dim index) {
  return c.squeeze(c.slice(x, axis, std::move(index), 1), axis);
}

Result<Values> convert_unbind(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  const auto count = static_cast<std::int64_t>(node.result_count());
  c.require_equal(c.size(x, static_cast<int>(axis)), count,
                  "unbind: the axis must have as many elements as the program has results.");
  Values out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(selected(c, x, static_cast<int>(axis), i));
  return c.results(std::move(out));
}

Result<Values> convert_select(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  const Dim size = c.size(x, static_cast<int>(axis));
  return c.results({selected(c, x, static_cast<int>(axis), from_begin(node.size("index"), size))});
}

Result<Values> convert_slice(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const PythonSlice slice, python_slice(node, c, x));
  return c.results({c.slice(x, slice.axis, slice.start, slice.count, slice.step)});
}

Result<Values> convert_narrow(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  const Dim size = c.size(x, static_cast<int>(axis));
  return c.results({c.slice(x, static_cast<int>(axis), from_begin(node.size("start"), size), node.size("length"))});
}

Result<Values> convert_index_select(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  return c.results({c.gather(x, node.tensor("index"), axis)});
}

Result<Values> convert_gather(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  Value* const index = node.tensor("index");
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  // An index without elements may have any dtype.
  Value* const places = c.dtype(index) == DType::i32 ? index : c.cast(index, DType::i64);
  Value* const found = c.op("gather_elements", {c.as_line(x), c.as_line(places)}, Attributes({{"axis", axis}}));
  return c.results({c.reshape(found, c.sizes(index))});
}

// x[:, i, j]: the indices broadcast to one shape, which stands where the indexed axes stood; in front if those are
// apart.
Result<Values> convert_index(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const IndexedAxes axes, indexed_axes(node, c, x));
  if (axes.indices.size() == 1) return c.results({c.gather(x, axes.indices.front(), axes.order.front())});
  Value* const tuples = index_tuples(c, axes);
  Value* const found = c.op("gather_nd", {c.transpose(x, axes.order), tuples});
  if (!c.ok()) return c.results({});
  return c.results({c.transpose(found, result_order(axes, c.rank(tuples) - 1, c.rank(found)))});
}

Result<Values> convert_embedding(AtenNode& node) {
  Composer c(node);
  return c.results({c.gather(node.tensor("weight"), node.tensor("indices"), 0)});
}

}  // namespace

std::vector<AtenEntry> aten_piece_entries() {
  return {
      {"_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", convert_index},
      {"cat(Tensor[] tensors, int dim=0) -> Tensor", convert_cat},
      {"chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", convert_chunk},
      {"concat(Tensor[] tensors, int dim=0) -> Tensor", convert_cat},
      {"embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool "
       "sparse=False) "
       "-> Tensor",
       convert_embedding},
      {"gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", convert_gather},
      {"index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", convert_index},
      {"index_select(Tensor self, int dim, Tensor index) -> Tensor", convert_index_select},
      {"narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", convert_narrow},
      {"select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", convert_select},
      {"slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
       convert_slice},
      {"split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", convert_split},
      {"split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]", convert_split_sizes},
      {"stack(Tensor[] tensors, int dim=0) -> Tensor", convert_stack},
      {"unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", convert_unbind},
  };
}

}  // namespace polyphase

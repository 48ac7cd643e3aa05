// embedding_bag: rows of a table, summed up bag by bag.
//
// Index k belongs to the last bag that begins at or before k: one mark where each bag begins, and their running sum.
#include <cmath>
#include <optional>

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;

enum Mode : std::int64_t { add_up = 0, average = 1, greatest = 2 };

Value* combined(Composer& c, Value* start, Value* bags, Value* rows, const char* reduction) {
  return c.op("scatter_nd", {start, c.unsqueeze(bags, 1), rows}, Attributes({{"reduction", std::string(reduction)}}));
}

// The bag of each index, (n). `offsets` may say at its end where the last bag ends; what lies behind is in no bag of
// the result.
Value* bags_of(Composer& c, Value* offsets, const Dim& count) {
  Value* const marks = combined(c, c.expand(c.number(0, DType::i64), {count + 1}), offsets,
                                c.expand(c.number(1, DType::i64), c.sizes(offsets)), "add");
  Value* const begun = c.op("cum_sum", {c.slice(marks, 0, 0, count)}, Attributes({{"axis", Dim(0)}}));
  return c.add(begun, -1);
}

// The row of the table that counts for nothing. What -1 means depends on the overload: the last row, or none.
std::optional<Dim> padding_row(AtenNode& node, const Dim& height) {
  if (!node.takes("padding_idx") || !node.has("padding_idx")) return std::nullopt;
  const std::int64_t given = node.integer("padding_idx");
  if (node.overload() == "embedding_bag.padding_idx") return given < 0 ? height + given : Dim(given);
  return given == -1 ? std::nullopt : std::optional<Dim>(given);
}

Result<Values> convert_embedding_bag(AtenNode& node) {
  Composer c(node);
  Value* const table = node.tensor("weight");
  Value* const indices = c.cast(node.tensor("indices"), DType::i64);
  Value* const offsets = c.cast(node.tensor("offsets"), DType::i64);
  if (c.rank(table) != 2 || c.rank(indices) != 1 || c.rank(offsets) != 1)
    return broken_program("embedding_bag takes a table of rank 2, indices and offsets of rank 1, found " +
                          table->type.text() + ", " + indices->type.text() + " and " + offsets->type.text() + ".");
  const bool weighted = node.has("per_sample_weights");
  if (weighted && c.rank(node.tensor("per_sample_weights")) != 1)
    return broken_program("embedding_bag: per_sample_weights must have the shape of the indices, found " +
                          node.tensor("per_sample_weights")->type.text() + ".");
  const std::int64_t mode = node.integer("mode");
  const DType own = c.dtype(table);
  const DType dtype = size_bytes(own) < 4 ? DType::f32 : own;
  const Dim count = c.size(indices, 0);
  const Dim bags = c.size(offsets, 0);
  Value* const bag = bags_of(c, offsets, count);
  Value* rows = c.cast(c.gather(table, indices, 0), dtype);
  if (weighted) rows = c.mul(rows, c.unsqueeze(c.cast(node.tensor("per_sample_weights"), dtype), 1));
  const std::optional<Dim> padding = padding_row(node, c.size(table, 0));
  TRY_VOID(node.finish());
  const double nothing = mode == greatest ? -INFINITY : 0;
  Value* used = nullptr;  // (n, 1): the index is no padding
  if (padding.has_value()) {
    used = c.unsqueeze(c.op("not", {c.op("equal", {indices, c.dims({*padding}, true)})}), 1);
    rows = c.where(used, rows, c.number(nothing, dtype));
  }
  Value* y = combined(c, c.expand(c.number(nothing, dtype), {bags, c.size(table, 1)}), bag, rows,
                      mode == greatest ? "max" : "add");
  if (mode != add_up) {
    Value* const ones = used == nullptr ? c.expand(c.number(1, dtype), {count, 1}) : c.cast(used, dtype);
    Value* const counts = combined(c, c.expand(c.number(0, dtype), {bags, 1}), bag, ones, "add");
    Value* const some = c.op("max", {counts, c.number(1, dtype)});
    y = mode == average ? c.div(y, some) : c.where(c.op("equal", {counts, c.number(0, dtype)}), c.number(0, dtype), y);
  }
  if (node.flag("include_last_offset")) y = c.slice(y, 0, 0, bags - 1);
  // Which bag each index is in, how large the bags are and where the greatest stood are for the gradient.
  TRY(Value * found, c.result(c.cast(y, own)));
  return Values{found, nullptr, nullptr, nullptr};
}

}  // namespace

std::vector<AtenEntry> aten_embedding_bag_entries() {
  return {
      {"_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
       "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, "
       "Tensor, Tensor, Tensor)",
       convert_embedding_bag},
      {"_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
       "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int "
       "padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
       convert_embedding_bag},
      {"embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
       "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, "
       "Tensor)",
       convert_embedding_bag},
      {"embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, "
       "bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, "
       "Tensor, Tensor)",
       convert_embedding_bag},
  };
}

}  // namespace polyphase

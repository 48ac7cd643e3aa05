// TopK, NonZero, Compress, OneHot, Hardmax, Trilu, EyeLike, CumSum, CumProd: elements chosen by value or by place.
#include "import/onnx/node_context.h"
#include "wire/dtype_map.h"

namespace polyphase {
namespace {

Result<Values> convert_top_k(NodeContext& node) {
  TRY(const std::int64_t axis, node.axis(node.integer("axis", -1), node.rank(0)));
  Dim k(node.version() < 10 ? node.integer("k", -1) : 0);
  if (node.version() >= 10) {
    if (!node.has(1)) return broken_rule("the operand K is missing.");
    TRY(k, node.size(1, "K"));
  } else if (node.input_count() > 1) {
    return broken_rule("TopK before opset 10 has the attribute k, and one operand.");
  }
  const bool largest = node.version() < 11 || node.flag("largest", true);
  if (node.version() >= 11) node.ignore("sorted");  // the order is free then: ours is the sorted one
  return node.emit_all("top_k", Attributes({{"axis", axis}, {"k", k}, {"largest", largest}}), {node.input(0)});
}

// The indices of what is not 0, [rank, count]; the count is born from data.
Result<Value*> nonzero(NodeContext& node, Value* x) {
  TRY(Value * found, node.emit("count_nonzero", {}, {x}));
  TRY(const std::vector<Dim> count,
      node.sizes_of(found, "the number of elements that are not 0", {0, x->type.shape.element_count().range().high}));
  return node.emit("nonzero", Attributes({{"count", count.front()}}), {x});
}

Result<Values> convert_nonzero(NodeContext& node) { return single(nonzero(node, node.input(0))); }

Result<Values> convert_compress(NodeContext& node) {
  if (node.rank(1) != 1 || node.type(1).dtype != DType::boolean)
    return broken_rule("condition must be a list of bools, found " + node.type(1).text() + ".");
  Value* x = node.input(0);
  std::int64_t axis = 0;
  if (node.has_attribute("axis")) {
    TRY(axis, node.axis(node.integer("axis", 0), node.rank(0)));
  } else {
    TRY(x, reshaped(node, x, {node.shape(0).element_count()}));
  }
  TRY(Value * indices, nonzero(node, node.input(1)));
  TRY(indices, reshaped(node, indices, {indices->type.shape[1]}));
  return single(node.emit("gather", Attributes({{"axis", axis}}), {x, indices}));
}

Result<Value*> as_indices(NodeContext& node, Value* value) {
  if (value->type.dtype == DType::i64 || value->type.dtype == DType::i32) return value;
  return node.emit("cast", Attributes({{"to", DType::i64}}), {value});
}

Result<Values> convert_one_hot(NodeContext& node) {
  TRY(const std::int64_t axis, node.axis(node.integer("axis", -1), node.rank(0) + 1));
  TRY(Value * indices, as_indices(node, node.input(0)));
  if (!(node.shape(1).element_count() == 1) || node.rank(1) > 1)
    return broken_rule("depth must be one number, found " + node.type(1).text() + ".");
  TRY(Value * depth, as_indices(node, node.input(1)));
  TRY(const std::vector<Dim> size, node.sizes_of(depth, "depth"));
  return single(node.emit("one_hot", Attributes({{"depth", size.front()}, {"axis", axis}}), {indices, node.input(2)}));
}

// 1 at the first maximum along the axis. Before opset 13 everything from the axis on counts as one axis.
Result<Values> convert_hardmax(NodeContext& node) {
  const std::int64_t rank = node.rank(0);
  const bool flattens = node.version() < 13;
  TRY(std::int64_t axis, node.axis(node.integer("axis", flattens ? 1 : -1), rank));
  const std::vector<Dim> shape = node.shape(0).dims();
  Value* x = node.input(0);
  if (flattens) {
    Dim rows(1);
    Dim columns(1);
    for (std::int64_t i = 0; i < rank; ++i) (i < axis ? rows : columns) *= shape[static_cast<std::size_t>(i)];
    TRY(x, reshaped(node, x, {rows, columns}));
    axis = 1;
  }
  TRY(Value * place, node.emit("arg_max", Attributes({{"axis", axis}, {"keep", false}}), {x}));
  Value* values =
      node.constant(Tensor::from_values(x->type.dtype, std::vector<std::int64_t>{2}, std::vector<double>{0, 1}));
  TRY(Value * result,
      node.emit("one_hot", Attributes({{"depth", x->type.shape[static_cast<int>(axis)]}, {"axis", axis}}),
                {place, values}));
  if (flattens) {
    TRY(result, reshaped(node, result, shape));
  }
  return Values{result};
}

Result<Values> convert_trilu(NodeContext& node) {
  Dim k(0);
  if (node.has(1)) {
    TRY(k, node.size(1, "k", {-(INT64_C(1) << 40), INT64_C(1) << 40}));
  }
  return single(node.emit("trilu", Attributes({{"k", k}, {"upper", node.flag("upper", true)}}), {node.input(0)}));
}

// Ones; then nothing below the diagonal, and nothing above it.
Result<Values> convert_eye_like(NodeContext& node) {
  if (node.rank(0) != 2) return broken_rule("the operand must be a matrix, found " + node.type(0).text() + ".");
  DType dtype = node.type(0).dtype;
  if (node.has_attribute("dtype")) {
    TRY(dtype, wire::dtype_from_onnx(static_cast<int>(std::min<std::int64_t>(1000, node.integer("dtype", 0)))));
  }
  const Dim k(node.integer("k", 0));
  TRY(Value * ones, node.emit("expand", Attributes({{"shape", node.shape(0).dims()}}), {node.scalar(dtype, 1)}));
  TRY(Value * upper, node.emit("trilu", Attributes({{"k", k}, {"upper", true}}), {ones}));
  return single(node.emit("trilu", Attributes({{"k", k}, {"upper", false}}), {upper}));
}

Result<Values> convert_cumulate(NodeContext& node) {
  const std::int64_t rank = node.rank(0);
  if (rank == 0) return broken_rule("the operand must have an axis, found " + node.type(0).text() + ".");
  TRY(const Dim axis, node.size(1, "axis", {-rank, rank - 1}));
  Attributes attributes(
      {{"axis", axis}, {"exclusive", node.flag("exclusive", false)}, {"reverse", node.flag("reverse", false)}});
  return single(node.emit(node.op_type() == "CumSum" ? "cum_sum" : "cum_prod", std::move(attributes), {node.input(0)}));
}

}  // namespace

std::vector<Converter> selection_converters() {
  return {
      {"Compress", {9, 11, 28}, 2, 2, convert_compress},
      {"CumProd", {26}, 2, 2, convert_cumulate},
      {"CumSum", {11, 14}, 2, 2, convert_cumulate},
      {"EyeLike", {9, 22}, 1, 1, convert_eye_like},
      {"Hardmax", {1, 11, 13}, 1, 1, convert_hardmax},
      {"NonZero", {9, 13}, 1, 1, convert_nonzero},
      {"OneHot", {9, 11, 28}, 3, 3, convert_one_hot},
      {"TopK", {1, 10, 11, 24}, 1, 2, convert_top_k},
      {"Trilu", {14}, 1, 2, convert_trilu},
  };
}

}  // namespace polyphase

// MatMul and Gemm.
#include "import/onnx/gemm.h"

namespace polyphase {
namespace {

Result<Value*> transposed(NodeContext& node, Value* matrix) {
  return node.emit("transpose", Attributes({{"order", std::vector<std::int64_t>{1, 0}}}), {matrix});
}

Result<Values> convert_matmul(NodeContext& node) {
  TRY(Value * value, node.emit("matmul", {}, {node.input(0), node.input(1)}));
  return Values{value};
}

}  // namespace

Result<Value*> import_gemm(NodeContext& node) {
  const bool transpose_a = node.flag("transA", false);
  const bool transpose_b = node.flag("transB", false);
  const double alpha = node.real("alpha", 1.0);
  const double beta = node.real("beta", 1.0);
  if (node.op_type() == "Gemm" && node.version() < 11 && !node.has(2))
    return broken_rule("operand 2 (C) is missing; it is optional from opset 11 on.");
  for (const std::size_t i : {0, 1}) {
    if (node.rank(i) != 2)
      return broken_rule("operand " + std::to_string(i) + " must be a matrix, found " + node.type(i).text() + ".");
  }
  Value* a = node.input(0);
  Value* b = node.input(1);
  if (transpose_a) {
    TRY(a, transposed(node, a));
  }
  if (transpose_b) {
    TRY(b, transposed(node, b));
  }
  TRY(Value * value, node.emit("matmul", {}, {a, b}));
  if (alpha != 1.0) {
    TRY(value, node.emit("mul", {}, {value, node.scalar(value->type.dtype, alpha)}));
  }
  if (!node.has(2) || beta == 0.0) return value;
  Value* c = node.input(2);
  if (beta != 1.0) {
    TRY(c, node.emit("mul", {}, {c, node.scalar(c->type.dtype, beta)}));
  }
  const Shape shape = value->type.shape;
  TRY(Value * sum, node.emit("add", {}, {value, c}));
  if (sum->type.shape.rank() != 2)
    return broken_rule("operand 2 (C) must broadcast to the product " + shape.text() + ", found " +
                       node.type(2).text() + ".");
  return sum;
}

namespace {

Result<Values> convert_gemm(NodeContext& node) {
  TRY(Value * value, import_gemm(node));
  return Values{value};
}

}  // namespace

std::vector<Converter> matmul_converters() {
  return {
      {"Gemm", {7, 9, 11, 13}, 2, 3, convert_gemm},
      {"MatMul", {1, 9, 13}, 2, 2, convert_matmul},
  };
}

}  // namespace polyphase

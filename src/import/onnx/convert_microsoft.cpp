// Operators that ONNX Runtime's optimiser writes into models (domain com.microsoft).
#include <algorithm>
#include <cmath>

#include "import/onnx/convolution.h"
#include "import/onnx/gemm.h"
#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

using Integers = std::vector<std::int64_t>;

// activation_params are those of the ONNX operator of that name.
Result<Value*> activated(NodeContext& node, Value* value, const std::string& activation,
                         const std::vector<double>& parameters) {
  const auto parameter = [&](std::size_t i, double otherwise) {
    return i < parameters.size() ? parameters[i] : otherwise;
  };
  if (activation.empty()) return value;
  if (activation == "Relu") return node.emit("relu", {}, {value});
  if (activation == "Tanh") return node.emit("tanh", {}, {value});
  if (activation == "Sigmoid") return node.emit("sigmoid", {}, {value});
  if (activation == "LeakyRelu") return node.emit("leaky_relu", Attributes({{"alpha", parameter(0, 0.01)}}), {value});
  if (activation == "Clip")
    return node.emit("clip", Attributes({{"low", parameter(0, -INFINITY)}, {"high", parameter(1, INFINITY)}}), {value});
  if (activation == "HardSigmoid")
    return node.emit("hard_sigmoid", Attributes({{"alpha", parameter(0, 0.2)}, {"beta", parameter(1, 0.5)}}), {value});
  return lacking("activation is '" + activation.substr(0, 40) + "'.", "Export without ONNX Runtime's optimiser.");
}

// Operand 3 (Z) is added before the activation.
Result<Values> convert_fused_conv(NodeContext& node) {
  TRY(Value * value, import_convolution(node));
  const std::string activation = node.word("activation", "");
  const auto parameters = node.reals("activation_params").value_or(std::vector<double>{});
  if (node.has(3)) {
    TRY(value, node.emit("add", {}, {value, node.input(3)}));
  }
  return single(activated(node, value, activation, parameters));
}

Result<Value*> biased(NodeContext& node) {
  if (!node.has(1)) return node.input(0);
  return node.emit("add", {}, {node.input(0), node.input(1)});
}

Result<Values> convert_microsoft_gelu(NodeContext& node) {
  TRY(Value * value, biased(node));
  const std::string approximate = node.op_type() == "FastGelu" ? "tanh" : "none";
  return single(node.emit("gelu", Attributes({{"approximate", approximate}}), {value}));
}

// x * sigmoid(alpha * x)
Result<Values> convert_quick_gelu(NodeContext& node) {
  const double alpha = node.real("alpha", static_cast<double>(1.702F));
  TRY(Value * scaled, node.emit("mul", {}, {node.input(0), node.scalar(node.type(0).dtype, alpha)}));
  TRY(Value * gate, node.emit("sigmoid", {}, {scaled}));
  return single(node.emit("mul", {}, {node.input(0), gate}));
}

Result<Value*> with_last_axes_swapped(NodeContext& node, Value* matrix) {
  const int rank = matrix->type.shape.rank();
  if (rank < 2) return matrix;
  Integers order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return node.emit("transpose", Attributes({{"order", std::move(order)}}), {matrix});
}

// (rows, batches…, columns) → (batches…, rows, columns)
Result<Value*> with_rows_behind_batches(NodeContext& node, Value* matrices) {
  const int rank = matrices->type.shape.rank();
  if (rank < 3) return matrices;
  Integers order;
  for (int i = 1; i < rank - 1; ++i) order.push_back(i);
  order.push_back(0);
  order.push_back(rank - 1);
  return node.emit("transpose", Attributes({{"order", std::move(order)}}), {matrices});
}

// A product of matrices, then an activation.
Result<Values> convert_fused_gemm(NodeContext& node) {
  const std::string activation = node.word("activation", "");
  std::vector<double> parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (node.has_attribute(name)) parameters.push_back(node.real(name, 0));
  }
  TRY(Value * value, import_gemm(node));
  return single(activated(node, value, activation, parameters));
}

Result<Values> convert_fused_matmul(NodeContext& node) {
  const double alpha = node.real("alpha", 1.0);
  Value* a = node.input(0);
  Value* b = node.input(1);
  if (node.flag("transBatchA", false)) {
    TRY(a, with_rows_behind_batches(node, a));
  }
  if (node.flag("transBatchB", false)) {
    TRY(b, with_rows_behind_batches(node, b));
  }
  if (node.flag("transA", false)) {
    TRY(a, with_last_axes_swapped(node, a));
  }
  if (node.flag("transB", false)) {
    TRY(b, with_last_axes_swapped(node, b));
  }
  TRY(Value * value, node.emit("matmul", {}, {a, b}));
  if (alpha != 1.0) {
    TRY(value, node.emit("mul", {}, {value, node.scalar(value->type.dtype, alpha)}));
  }
  return Values{value};
}

}  // namespace

std::vector<Converter> microsoft_converters() {
  constexpr std::string_view domain = "com.microsoft";
  return {
      {"BiasGelu", {1}, 2, 2, convert_microsoft_gelu, domain},  {"FastGelu", {1}, 1, 2, convert_microsoft_gelu, domain},
      {"FusedConv", {1}, 2, 4, convert_fused_conv, domain},     {"FusedGemm", {1}, 2, 3, convert_fused_gemm, domain},
      {"FusedMatMul", {1}, 2, 2, convert_fused_matmul, domain}, {"Gelu", {1}, 1, 1, convert_microsoft_gelu, domain},
      {"QuickGelu", {1}, 1, 1, convert_quick_gelu, domain},
  };
}

}  // namespace polyphase

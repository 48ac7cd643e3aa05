// The reductions, ArgMax and ArgMin.
#include <array>
#include <numeric>

#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> reductions = {{
    {"ReduceL1", "reduce_l1"},
    {"ReduceL2", "reduce_l2"},
    {"ReduceLogSum", "reduce_log_sum"},
    {"ReduceLogSumExp", "reduce_log_sum_exp"},
    {"ReduceMax", "reduce_max"},
    {"ReduceMean", "reduce_mean"},
    {"ReduceMin", "reduce_min"},
    {"ReduceProd", "reduce_prod"},
    {"ReduceSum", "reduce_sum"},
    {"ReduceSumSquare", "reduce_sum_square"},
}};

Result<Values> convert_reduce(NodeContext& node) {
  std::string_view op_name;
  for (const auto& [op_type, name] : reductions) {
    if (op_type == node.op_type()) op_name = name;
  }
  const bool axes_are_operand = node.version() >= (node.op_type() == "ReduceSum" ? 13 : 18);
  const bool keep = node.flag("keepdims", true);
  const bool noop = axes_are_operand && node.flag("noop_with_empty_axes", false);
  std::vector<std::int64_t> given;
  if (axes_are_operand) {
    if (node.has(1)) {
      TRY(given, node.fixed_integers(1, "axes"));
    }
  } else {
    if (node.has(1)) return broken_rule("axes is an operand only from a later opset on; here it is an attribute.");
    given = node.integers("axes").value_or(std::vector<std::int64_t>{});
  }
  TRY(std::vector<std::int64_t> axes, node.axes(given, node.rank(0)));
  Value* x = node.input(0);
  if (axes.empty() && noop) return Values{x};
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(node.rank(0)));
    std::iota(axes.begin(), axes.end(), 0);
  }
  const bool is_bool = x->type.dtype == DType::boolean;
  if (is_bool) {
    TRY(x, node.emit("cast", Attributes({{"to", DType::u8}}), {x}));
  }
  TRY(Value * value, node.emit(op_name, Attributes({{"axes", std::move(axes)}, {"keep", keep}}), {x}));
  if (is_bool) {
    TRY(value, node.emit("cast", Attributes({{"to", DType::boolean}}), {value}));
  }
  return Values{value};
}

Result<Values> convert_arg(NodeContext& node) {
  TRY(const std::int64_t axis, node.axis(node.integer("axis", 0), node.rank(0)));
  const bool keep = node.flag("keepdims", true);
  const bool last = node.version() >= 12 && node.flag("select_last_index", false);
  const char* op_name = node.op_type() == "ArgMax" ? "arg_max" : "arg_min";
  TRY(Value * value, node.emit(op_name, Attributes({{"axis", axis}, {"keep", keep}, {"last", last}}), {node.input(0)}));
  return Values{value};
}

}  // namespace

std::vector<Converter> reduce_converters() {
  return {
      {"ArgMax", {1, 11, 12, 13}, 1, 1, convert_arg},
      {"ArgMin", {1, 11, 12, 13}, 1, 1, convert_arg},
      {"ReduceL1", {1, 11, 13, 18}, 1, 2, convert_reduce},
      {"ReduceL2", {1, 11, 13, 18}, 1, 2, convert_reduce},
      {"ReduceLogSum", {1, 11, 13, 18, 28}, 1, 2, convert_reduce},
      {"ReduceLogSumExp", {1, 11, 13, 18, 28}, 1, 2, convert_reduce},
      {"ReduceMax", {1, 11, 12, 13, 18, 20}, 1, 2, convert_reduce},
      {"ReduceMean", {1, 11, 13, 18}, 1, 2, convert_reduce},
      {"ReduceMin", {1, 11, 12, 13, 18, 20}, 1, 2, convert_reduce},
      {"ReduceProd", {1, 11, 13, 18}, 1, 2, convert_reduce},
      {"ReduceSum", {1, 11, 13}, 1, 2, convert_reduce},
      {"ReduceSumSquare", {1, 11, 13, 18}, 1, 2, convert_reduce},
  };
}

}  // namespace polyphase

// Axes: below zero from opset 11 on, operands instead of attributes from 13 and 18 on, Softmax of one axis from 13 on.
#include <algorithm>
#include <array>
#include <numeric>

#include "base/lasting.h"
#include "export/opset_step.h"
#include "export/replacement.h"

namespace polyphase::legal {
namespace {

std::string shape_operand(const std::vector<std::int64_t>& sizes, std::string_view word, Replacement& out) {
  return out.integers(sizes, word);
}

Result<int> rank_of(const onnx::NodeProto& node, const Replacement& out) {
  TRY(const Type type, operand_type(node, 0, out.model()));
  return type.shape.rank();
}

// -1 → rank - 1, in the attribute axis or axes.
Result<void> count_axes_from_front(const onnx::NodeProto& node, Replacement& out) {
  const auto* const one = find_attribute(node, "axis");
  std::vector<std::int64_t> many = integers_of(node, "axes");
  const bool one_below = one != nullptr && one->i() < 0;
  if (!one_below && std::none_of(many.begin(), many.end(), [](std::int64_t axis) { return axis < 0; })) return {};
  TRY(const int rank_of_operand, rank_of(node, out));
  const std::int64_t rank =
      rank_of_operand + (node.op_type() == "Unsqueeze" ? static_cast<std::int64_t>(many.size()) : 0);
  onnx::NodeProto& made = out.again();
  if (one_below) set_integer(made, "axis", one->i() + rank);
  for (std::int64_t& axis : many) axis += axis < 0 ? rank : 0;
  if (!many.empty()) set_integers(made, "axes", many);
  return {};
}

// Indices below zero count from the end from opset 11 on, and mean nothing before.
Result<void> need_indices_from_front(const onnx::NodeProto& node, int operand, const Replacement& out) {
  const auto indices = constant_integers(node, operand, out.model());
  if (!indices.ok())
    return cannot_be_said("its indices may be below zero, which count from the end from opset 11 on: " +
                          indices.error().message);
  for (const std::int64_t index : *indices) {
    if (index < 0) return cannot_be_said("its index " + std::to_string(index) + " counts from the end");
  }
  return {};
}

Result<void> gather_down(const onnx::NodeProto& node, Replacement& out) {
  const auto indices = constant_integers(node, 1, out.model());
  if (!indices.ok()) return need_indices_from_front(node, 1, out);
  if (std::all_of(indices->begin(), indices->end(), [](std::int64_t index) { return index >= 0; }))
    return count_axes_from_front(node, out);
  TRY(const Type type, operand_type(node, 0, out.model()));
  TRY(const Type of_indices, operand_type(node, 1, out.model()));
  const std::int64_t axis = floor_mod(integer_of(node, "axis", 0), type.shape.rank());
  const Dim& size = type.shape[static_cast<int>(axis)];
  const auto sizes = of_indices.shape.evaluate({});
  if (!size.is_constant() || !sizes.has_value())
    return cannot_be_said("its indices count from the end of axis " + std::to_string(axis) + ", whose size is open");
  TRY(const Tensor from_front, Tensor::allocate(DType::i64, *sizes));
  for (std::size_t i = 0; i < indices->size(); ++i)
    store_integer(from_front.view().data + i * sizeof(std::int64_t), DType::i64,
                  (*indices)[i] + ((*indices)[i] < 0 ? size.value() : 0));
  const std::string operand = out.constant(from_front, "indices");
  onnx::NodeProto& made = out.again();
  made.set_input(1, operand);
  if (find_attribute(node, "axis") != nullptr) set_integer(made, "axis", axis);
  return {};
}

Result<void> scatter_up(const onnx::NodeProto& node, Replacement& out) {
  TRY_VOID(need_indices_from_front(node, 1, out));
  out.again().set_op_type("ScatterElements");
  return {};
}

Result<void> scatter_down(const onnx::NodeProto& node, Replacement& out) {
  TRY_VOID(need_indices_from_front(node, 1, out));
  const bool below = integer_of(node, "axis", 0) < 0;
  TRY(const int rank, rank_of(node, out));
  onnx::NodeProto& made = out.again();
  made.set_op_type("Scatter");
  if (below) set_integer(made, "axis", integer_of(node, "axis", 0) + rank);
  return {};
}

Result<void> one_hot(const onnx::NodeProto& node, Replacement& out) { return need_indices_from_front(node, 0, out); }

Result<void> axes_to_operand(const onnx::NodeProto& node, Replacement& out) {
  if (find_attribute(node, "axes") == nullptr) return {};
  const std::string operand = out.integers(integers_of(node, "axes"), "axes");
  onnx::NodeProto& made = out.again();
  drop_attribute(made, "axes");
  set_operand(made, 1, operand);
  return {};
}

Result<void> axes_to_attribute(const onnx::NodeProto& node, Replacement& out) {
  const bool all_where_none = integer_of(node, "noop_with_empty_axes", 0) == 0;
  std::vector<std::int64_t> axes;
  if (has_operand(node, 1)) {
    TRY(axes, constant_integers(node, 1, out.model()));
  }
  if (axes.empty() && !all_where_none) {
    out.add_last("Identity", {node.input(0)});
    return {};
  }
  if (node.input_size() < 2 && find_attribute(node, "noop_with_empty_axes") == nullptr) return {};
  onnx::NodeProto& made = out.again();
  drop_operands_from(made, 1);
  drop_attribute(made, "noop_with_empty_axes");
  if (!axes.empty()) set_integers(made, "axes", axes);
  return {};
}

// Up to opset 12 all axes from `axis` on are one; from 13 on it is `axis` alone.
Result<void> flat_softmax_up(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Type type, operand_type(node, 0, out.model()));
  const std::int64_t rank = type.shape.rank();
  std::int64_t axis = integer_of(node, "axis", 1);
  if (axis < 0) axis += rank;
  if (axis == rank - 1) {
    if (find_attribute(node, "axis") == nullptr) set_integer(out.again(), "axis", axis);
    return {};
  }
  const std::string flat = out.add("Flatten", {node.input(0)}, "flat");
  set_integer(out.latest(), "axis", axis);
  const std::string done = out.add(node.op_type(), {flat}, "of_flat");
  set_integer(out.latest(), "axis", 1);
  const Type shape{DType::i64, Shape{Dim(rank)}};
  const std::string sizes = out.add("Shape", {node.input(0)}, "shape", &shape);
  out.add_last("Reshape", {done, sizes});
  return {};
}

Result<void> flat_softmax_down(const onnx::NodeProto& node, Replacement& out) {
  TRY(const Type type, operand_type(node, 0, out.model()));
  const std::int64_t rank = type.shape.rank();
  const std::int64_t axis = floor_mod(integer_of(node, "axis", -1), std::max<std::int64_t>(rank, 1));
  if (rank < 2) {
    if (rank == 0) return cannot_be_said("its operand has no axis");
    set_integer(out.again(), "axis", 0);
    return {};
  }
  if (axis == rank - 1) {
    set_integer(out.again(), "axis", axis);
    return {};
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<std::size_t>(axis)], order.back());
  Type swapped = type;
  std::swap(swapped.shape[static_cast<int>(axis)], swapped.shape[static_cast<int>(rank) - 1]);
  const std::string last = out.add("Transpose", {node.input(0)}, "axis_last", &swapped);
  set_integers(out.latest(), "perm", order);
  const std::string done = out.add(node.op_type(), {last}, "of_last", &swapped);
  set_integer(out.latest(), "axis", rank - 1);
  out.add_last("Transpose", {done});
  set_integers(out.latest(), "perm", order);
  return {};
}

Result<void> split_up(const onnx::NodeProto& node, Replacement& out) {
  if (find_attribute(node, "split") == nullptr) return {};
  const std::string operand = shape_operand(integers_of(node, "split"), "split", out);
  onnx::NodeProto& made = out.again();
  drop_attribute(made, "split");
  set_operand(made, 1, operand);
  return {};
}

Result<void> split_down(const onnx::NodeProto& node, Replacement& out) {
  if (!has_operand(node, 1)) return {};
  TRY(const auto sizes, constant_integers(node, 1, out.model()));
  onnx::NodeProto& made = out.again();
  drop_operands_from(made, 1);
  set_integers(made, "split", sizes);
  return {};
}

// Without sizes, from opset 18 on, the number of parts must be there.
Result<void> split_count_up(const onnx::NodeProto& node, Replacement& out) {
  if (!has_operand(node, 1)) set_integer(out.again(), "num_outputs", node.output_size());
  return {};
}

// And the last part may be smaller.
Result<void> split_count_down(const onnx::NodeProto& node, Replacement& out) {
  if (find_attribute(node, "num_outputs") == nullptr) return {};
  const std::int64_t parts = integer_of(node, "num_outputs", 1);
  TRY(const Type type, operand_type(node, 0, out.model()));
  const auto axis = static_cast<int>(floor_mod(integer_of(node, "axis", 0), std::max(1, type.shape.rank())));
  const Dim size = type.shape[axis];
  if (!size.is_constant())
    return cannot_be_said("the size of axis " + std::to_string(axis) + " is open, and its last part may be smaller");
  if (size.value() % parts == 0) {
    drop_attribute(out.again(), "num_outputs");
    return {};
  }
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts), ceil_div(size.value(), parts));
  sizes.back() = size.value() - (parts - 1) * sizes.front();
  if (sizes.back() < 0) return cannot_be_said("it has more parts than its axis has places");
  const std::string operand = shape_operand(sizes, "split", out);
  onnx::NodeProto& made = out.again();
  drop_attribute(made, "num_outputs");
  set_operand(made, 1, operand);
  return {};
}

constexpr std::string_view below_zero = "axes below zero count from the end";
constexpr std::string_view axes_operand = "axes is an operand; before, an attribute";
constexpr std::string_view one_axis =
    "it is of one axis, the last where none is named; before, all axes from the named one on are one";
constexpr std::string_view indices_below_zero = "axes and indices below zero count from the end";

}  // namespace

std::span<const OpsetStep> axis_steps() {
  static const std::vector<OpsetStep>& steps = lasting([] {
    std::vector<OpsetStep> out;
    for (const std::string_view name :
         {"ArgMax",     "ArgMin",    "Compress",        "Concat",          "Flatten",   "Hardmax",    "LogSoftmax",
          "ReduceL1",   "ReduceL2",  "ReduceLogSum",    "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
          "ReduceProd", "ReduceSum", "ReduceSumSquare", "Softmax",         "Split",     "Squeeze",    "Unsqueeze"})
      out.push_back({name, 11, below_zero, nullptr, count_axes_from_front});
    out.push_back({"Gather", 11, indices_below_zero, nullptr, gather_down});
    out.push_back(
        {"Scatter", 11, "it is called ScatterElements, and indices below zero count from the end", scatter_up});
    out.push_back(
        {"ScatterElements", 11, "before, it is called Scatter, and no index is below zero", nullptr, scatter_down});
    out.push_back(
        {"OneHot", 11, "indices below zero count from the end; before, they are off everywhere", one_hot, one_hot});
    for (const std::string_view name : {"Squeeze", "Unsqueeze", "ReduceSum"})
      out.push_back({name, 13, axes_operand, axes_to_operand, axes_to_attribute});
    for (const std::string_view name : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
                                        "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSumSquare"})
      out.push_back({name, 18, axes_operand, axes_to_operand, axes_to_attribute});
    for (const std::string_view name : {"Softmax", "LogSoftmax", "Hardmax"})
      out.push_back({name, 13, one_axis, flat_softmax_up, flat_softmax_down});
    out.push_back({"Split", 13, "split is an operand; before, an attribute", split_up, split_down});
    out.push_back({"Split", 18, "num_outputs says how many parts there are, of which the last may be smaller",
                   split_count_up, split_count_down});
    return out;
  }());
  return steps;
}

}  // namespace polyphase::legal

// Constant in all its forms, ConstantOfShape and Range.
#include <cmath>

#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

Result<Values> convert_constant(NodeContext& node) {
  const auto count = [](const auto& list) { return std::vector<std::int64_t>{static_cast<std::int64_t>(list.size())}; };
  const std::size_t before = node.has_attribute("value") + node.has_attribute("sparse_value") +
                             node.has_attribute("value_float") + node.has_attribute("value_floats") +
                             node.has_attribute("value_int") + node.has_attribute("value_ints");
  if (node.has_attribute("value_string") || node.has_attribute("value_strings")) {
    return lacking("the constant is text.", "Take text processing out of the model; feed numbers.");
  }
  if (before != 1)
    return broken_rule("a Constant needs exactly one of value, sparse_value, value_float(s) and value_int(s); found " +
                       std::to_string(before) + ".");
  if (node.has_attribute("value")) {
    TRY(Tensor tensor, node.tensor("value"));
    return Values{node.graph().add_constant(std::move(tensor), node.name())};
  }
  if (node.has_attribute("sparse_value")) {
    TRY(Tensor tensor, node.sparse_tensor("sparse_value"));
    return Values{node.graph().add_constant(std::move(tensor), node.name())};
  }
  Tensor tensor;
  if (node.has_attribute("value_float"))
    tensor = Tensor::from_values(DType::f32, {}, std::vector<double>{node.real("value_float", 0)});
  if (node.has_attribute("value_int"))
    tensor = Tensor::from_integers(DType::i64, {}, std::vector<std::int64_t>{node.integer("value_int", 0)});
  if (node.has_attribute("value_floats")) {
    const auto reals = node.reals("value_floats").value_or(std::vector<double>{});
    tensor = Tensor::from_values(DType::f32, count(reals), reals);
  }
  if (node.has_attribute("value_ints")) {
    const auto integers = node.integers("value_ints").value_or(std::vector<std::int64_t>{});
    tensor = Tensor::from_integers(DType::i64, count(integers), integers);
  }
  return Values{node.graph().add_constant(std::move(tensor), node.name())};
}

Result<Values> convert_constant_of_shape(NodeContext& node) {
  TRY(std::vector<Dim> sizes, node.sizes(0));
  Tensor element = Tensor::from_values(DType::f32, {}, std::vector<double>{0.0});
  if (node.has_attribute("value")) {
    TRY(element, node.tensor("value"));
    if (element.view().element_count() != 1)
      return broken_rule("value must hold one element, found " + element.type().text() + ".");
    element = Tensor(element.buffer(), TensorView(TensorDesc::row_major(element.dtype(), {}), element.view().data));
  }
  TRY(Value * value,
      node.emit("expand", Attributes({{"shape", std::move(sizes)}}), {node.constant(std::move(element))}));
  return Values{value};
}

// All three are fixed: the numbers themselves, start + i * delta as ONNX defines it.
Result<Values> fixed_range(NodeContext& node, const Tensor& start, const Tensor& limit, const Tensor& delta) {
  const DType dtype = start.dtype();
  const double first = load_double(start.view().data, dtype);
  const double last = load_double(limit.view().data, dtype);
  const double step = load_double(delta.view().data, dtype);
  if (step == 0 || std::isnan(first + last + step)) return broken_rule("delta is 0 or an operand is not a number.");
  const double count = std::max(0.0, std::ceil((last - first) / step));
  if (!(count <= 1e6))
    return lacking("the range has " + std::to_string(count) + " elements.",
                   "Fixed ranges of floats have at most 1000000 elements.");
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i)
    numbers.push_back(first + static_cast<double>(i) * step);
  const std::vector<std::int64_t> sizes{static_cast<std::int64_t>(numbers.size())};
  return Values{node.graph().add_constant(Tensor::from_values(dtype, sizes, numbers), node.name())};
}

// The length is born from data: ceil((limit - start) / delta) in FP64. Then start + i * delta in the operands' type.
Result<Values> computed_range(NodeContext& node) {
  const DType dtype = node.type(0).dtype;
  Value* wide[3] = {};
  Value* own[3] = {};
  for (const std::size_t i : {0, 1, 2}) {
    TRY(own[i], node.emit("reshape", Attributes({{"shape", std::vector<Dim>{}}}), {node.input(i)}));
    TRY(wide[i], node.emit("cast", Attributes({{"to", DType::f64}}), {own[i]}));
  }
  TRY(Value * count, node.emit("sub", {}, {wide[1], wide[0]}));
  TRY(count, node.emit("div", {}, {count, wide[2]}));
  TRY(count, node.emit("ceil", {}, {count}));
  TRY(count, node.emit("clip", Attributes({{"low", 0.0}, {"high", 1099511627776.0}}), {count}));
  TRY(count, node.emit("cast", Attributes({{"to", DType::i64}}), {count}));
  TRY(const std::vector<Dim> length, node.sizes_of(count, "the length of the range", {0, INT64_C(1) << 40}));
  TRY(Value * value,
      node.emit("range", Attributes({{"start", Dim(0)}, {"count", length.front()}, {"step", INT64_C(1)}}), {}));
  const DType computed = dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
  TRY(value, node.emit("cast", Attributes({{"to", computed}}), {value}));
  TRY(Value * delta, node.emit("cast", Attributes({{"to", computed}}), {own[2]}));
  TRY(Value * start, node.emit("cast", Attributes({{"to", computed}}), {own[0]}));
  TRY(value, node.emit("mul", {}, {value, delta}));
  TRY(value, node.emit("add", {}, {value, start}));
  TRY(value, node.emit("cast", Attributes({{"to", dtype}}), {value}));
  return Values{value};
}

Result<Values> convert_range(NodeContext& node) {
  const DType dtype = node.type(0).dtype;
  node.ignore("stash_type");
  for (const std::size_t i : {0, 1, 2}) {
    if (node.type(i).dtype != dtype || !(node.shape(i).element_count() == 1))
      return broken_rule("start, limit and delta must be single numbers of one type.");
  }
  const auto start = node.fixed(0);
  const auto limit = node.fixed(1);
  const auto delta = node.fixed(2);
  if (is_float(dtype) && start.has_value() && limit.has_value() && delta.has_value())
    return fixed_range(node, *start, *limit, *delta);
  if (is_float(dtype) || !delta.has_value()) return computed_range(node);
  TRY(const auto step, node.fixed_integers(2, "delta"));
  if (step[0] == 0) return broken_rule("delta is 0; the range would never end.");
  const DimRange any{-(INT64_C(1) << 40), INT64_C(1) << 40};
  TRY(const std::vector<Dim> first, node.sizes(0, any));
  TRY(const std::vector<Dim> last, node.sizes(1, any));
  const Dim span = step[0] > 0 ? last[0] - first[0] : first[0] - last[0];
  const Dim count = max(Dim(0), ceil_div(span, Dim(step[0] > 0 ? step[0] : -step[0])));
  TRY(Value * value, node.emit("range", Attributes({{"start", first[0]}, {"count", count}, {"step", step[0]}}), {}));
  if (dtype != DType::i64) {
    TRY(value, node.emit("cast", Attributes({{"to", dtype}}), {value}));
  }
  return Values{value};
}

}  // namespace

std::vector<Converter> constant_converters() {
  return {
      {"Constant", {1, 9, 11, 12, 13, 19, 21, 23, 24, 25}, 0, 0, convert_constant},
      {"ConstantOfShape", {9, 20, 21, 23, 24, 25}, 1, 1, convert_constant_of_shape},
      {"Range", {11, 27}, 3, 3, convert_range},
  };
}

}  // namespace polyphase

// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear and the integer products: written out in ordinary operators.
//
//   quantize(x)   = saturate(round_to_even(x / scale) + zero_point)
//   dequantize(q) = (q - zero_point) * scale
//   a product     = quantize of (a - zero_a) * (b - zero_b), which int32 holds exactly, times scale_a * scale_b
#include "import/onnx/convolution.h"
#include "import/onnx/node_context.h"
#include "wire/dtype_map.h"

namespace polyphase {
namespace {

Result<Value*> as(NodeContext& node, Value* x, DType dtype) {
  return x->type.dtype == dtype ? Result<Value*>(x) : node.emit("cast", Attributes({{"to", dtype}}), {x});
}

// Where the parameters of a quantisation lie: all of x, slices along an axis, or blocks of such slices.
struct Granularity {
  std::int64_t axis = 1;
  std::int64_t block = 0;
};

bool is_single(const Value* value) { return value->type.shape.rank() <= 1 && value->type.shape.element_count() == 1; }

// Each parameter of a block repeated along the axis; the last block may be shorter.
Result<Value*> repeated(NodeContext& node, Value* parameter, const Shape& x, std::size_t axis, std::int64_t block) {
  std::vector<Dim> split = parameter->type.shape.dims();
  split.insert(split.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Dim(1));
  TRY(Value * value, reshaped(node, parameter, split));
  split[axis + 1] = Dim(block);
  TRY(value, node.emit("expand", Attributes({{"shape", split}}), {value}));
  std::vector<Dim> whole = parameter->type.shape.dims();
  whole[axis] = whole[axis] * Dim(block);
  TRY(value, reshaped(node, value, whole));
  const Dim& size = x[static_cast<int>(axis)];
  if (whole[axis] == size) return value;
  std::vector<Dim> start(whole.size(), Dim(0));
  whole[axis] = size;
  return node.emit(
      "slice", Attributes({{"start", start}, {"size", whole}, {"step", std::vector<std::int64_t>(start.size(), 1)}}),
      {value});
}

// A scale or zero point as it broadcasts against x.
Result<Value*> spread_over(NodeContext& node, Value* parameter, const Shape& x, const Granularity& granularity) {
  if (is_single(parameter)) return reshaped(node, parameter, {});
  TRY(const std::int64_t axis, node.axis(granularity.axis, x.rank()));
  const auto at = static_cast<std::size_t>(axis);
  if (granularity.block == 0) {
    if (parameter->type.shape.rank() != 1)
      return broken_rule("scale and zero point must be single numbers or lists along the axis, found " +
                         parameter->type.text() + ".");
    std::vector<Dim> shape(static_cast<std::size_t>(x.rank()), Dim(1));
    shape[at] = parameter->type.shape[0];
    return reshaped(node, parameter, shape);
  }
  if (parameter->type.shape.rank() != x.rank())
    return broken_rule("with block_size, scale and zero point must have the rank of the operand, " +
                       std::to_string(x.rank()) + ", found " + parameter->type.text() + ".");
  return repeated(node, parameter, x, at, granularity.block);
}

Result<Granularity> granularity_of(NodeContext& node) {
  Granularity out;
  if (node.version() >= 13) out.axis = node.integer("axis", 1);
  if (node.version() >= 21) out.block = node.integer("block_size", 0);
  if (out.block < 0 || out.block > INT32_MAX)
    return broken_rule("block_size is " + std::to_string(out.block) + "; it must be 0 (none) or more.");
  return out;
}

struct Limits {
  double low;
  double high;
};

Result<Limits> limits_of(DType dtype) {
  switch (dtype) {
    case DType::i4:
      return Limits{-8, 7};
    case DType::u4:
      return Limits{0, 15};
    case DType::i8:
      return Limits{-128, 127};
    case DType::u8:
      return Limits{0, 255};
    case DType::i16:
      return Limits{-32768, 32767};
    case DType::u16:
      return Limits{0, 65535};
    case DType::f8e4m3:
      return Limits{-448, 448};
    case DType::f8e5m2:
      return Limits{-57344, 57344};
    default:
      return broken_rule("the quantised type must be a 4-, 8- or 16-bit integer or an 8-bit float, found " +
                         std::string(name_of(dtype)) + ".");
  }
}

// `ratio` is x / scale; everything here is exact in f32 but for its own rounding.
Result<Value*> quantized(NodeContext& node, Value* ratio, Value* zero_point, DType to, bool saturate = true) {
  TRY(const Limits limits, limits_of(to));
  Value* value = ratio;
  if (!is_float(to)) {
    TRY(value, node.emit("round", {}, {value}));
  }
  TRY(value, as(node, value, DType::f32));
  if (zero_point != nullptr && !is_float(to)) {
    TRY(Value * offset, as(node, zero_point, DType::f32));
    TRY(value, node.emit("add", {}, {value, offset}));
  }
  if (saturate || !is_float(to)) {
    TRY(value, node.emit("clip", Attributes({{"low", limits.low}, {"high", limits.high}}), {value}));
  }
  return as(node, value, to);
}

Result<void> expect_same_shape(const Value* scale, const Value* zero_point) {
  if (zero_point == nullptr || (is_single(scale) && is_single(zero_point))) return {};
  if (scale->type.shape.rank() == zero_point->type.shape.rank()) return {};
  return broken_rule("scale and zero point must have the same shape, found " + scale->type.text() + " and " +
                     zero_point->type.text() + ".");
}

Result<Values> convert_quantize(NodeContext& node) {
  TRY(const Granularity granularity, granularity_of(node));
  const bool saturate = node.version() < 19 || node.flag("saturate", true);
  DType to = node.has(2) ? node.type(2).dtype : DType::u8;
  if (node.version() >= 21 && node.integer("output_dtype", 0) != 0) {
    TRY(const DType named,
        wire::dtype_from_onnx(static_cast<int>(std::min<std::int64_t>(1000, node.integer("output_dtype", 0)))));
    if (node.has(2) && named != to)
      return broken_rule("output_dtype is " + std::string(name_of(named)) + ", but the zero point is " +
                         std::string(name_of(to)) + ".");
    to = named;
  }
  if (!is_float(node.type(1).dtype))
    return broken_rule("the scale must be a float, found " + node.type(1).text() + ".");
  TRY_VOID(expect_same_shape(node.input(1), node.input(2)));
  DType computed = node.type(0).dtype == node.type(1).dtype ? node.type(0).dtype : DType::f32;
  if (node.version() >= 23 && node.integer("precision", 0) != 0) {
    TRY(computed, wire::dtype_from_onnx(static_cast<int>(std::min<std::int64_t>(1000, node.integer("precision", 0)))));
  }
  TRY(Value * x, as(node, node.input(0), computed));
  TRY(Value * scale, as(node, node.input(1), computed));
  TRY(scale, spread_over(node, scale, node.shape(0), granularity));
  Value* zero_point = nullptr;
  if (node.has(2)) {
    TRY(zero_point, spread_over(node, node.input(2), node.shape(0), granularity));
  }
  TRY(Value * ratio, node.emit("div", {}, {x, scale}));
  return single(quantized(node, ratio, zero_point, to, saturate));
}

Result<Values> convert_dequantize(NodeContext& node) {
  TRY(const Granularity granularity, granularity_of(node));
  const DType from = node.type(0).dtype;
  DType to = node.type(1).dtype;
  if (!is_float(to)) return broken_rule("the scale must be a float, found " + node.type(1).text() + ".");
  if (node.version() >= 23 && node.integer("output_dtype", 0) != 0) {
    TRY(to, wire::dtype_from_onnx(static_cast<int>(std::min<std::int64_t>(1000, node.integer("output_dtype", 0)))));
  }
  TRY_VOID(expect_same_shape(node.input(1), node.input(2)));
  // int32 loses bits in f32, so its zero point goes first, in integers.
  const DType difference = from == DType::i32 ? DType::i32 : DType::f32;
  TRY(Value * x, as(node, node.input(0), difference));
  if (node.has(2)) {
    if (node.type(2).dtype != from)
      return broken_rule("the zero point must have the operand's type " + std::string(name_of(from)) + ", found " +
                         node.type(2).text() + ".");
    TRY(Value * zero_point, as(node, node.input(2), difference));
    TRY(zero_point, spread_over(node, zero_point, node.shape(0), granularity));
    TRY(x, node.emit("sub", {}, {x, zero_point}));
  }
  TRY(x, as(node, x, DType::f32));
  TRY(Value * scale, as(node, node.input(1), DType::f32));
  TRY(scale, spread_over(node, scale, node.shape(0), granularity));
  TRY(x, node.emit("mul", {}, {x, scale}));
  return single(as(node, x, to));
}

// The scale spreads the operand's range, with 0 in it, over 0 to 255.
Result<Values> convert_dynamic_quantize(NodeContext& node) {
  if (node.type(0).dtype != DType::f32)
    return broken_rule("the operand must be f32, found " + node.type(0).text() + ".");
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < node.rank(0); ++axis) axes.push_back(axis);
  const Attributes over_all({{"axes", axes}, {"keep", false}});
  Value* zero = node.scalar(DType::f32, 0);
  TRY(Value * high, node.emit("reduce_max", over_all, {node.input(0)}));
  TRY(high, node.emit("max", {}, {high, zero}));
  TRY(Value * low, node.emit("reduce_min", over_all, {node.input(0)}));
  TRY(low, node.emit("min", {}, {low, zero}));
  TRY(Value * span, node.emit("sub", {}, {high, low}));
  TRY(Value * scale, node.emit("div", {}, {span, node.scalar(DType::f32, 255)}));
  TRY(Value * below, node.emit("div", {}, {low, scale}));
  TRY(below, node.emit("sub", {}, {zero, below}));
  TRY(Value * zero_point, quantized(node, below, nullptr, DType::u8));
  TRY(Value * ratio, node.emit("div", {}, {node.input(0), scale}));
  TRY(Value * y, quantized(node, ratio, zero_point, DType::u8));
  return Values{y, scale, zero_point};
}

// Operand i minus its zero point, in int32.
Result<Value*> centred(NodeContext& node, std::size_t i, Value* zero_point) {
  const DType dtype = node.type(i).dtype;
  if (dtype != DType::i8 && dtype != DType::u8)
    return broken_rule("operand " + std::to_string(i) + " must be i8 or u8, found " + node.type(i).text() + ".");
  TRY(Value * x, as(node, node.input(i), DType::i32));
  if (zero_point == nullptr) return x;
  TRY(zero_point, as(node, zero_point, DType::i32));
  return node.emit("sub", {}, {x, zero_point});
}

// A parameter of the rows of a left factor (a column), of the columns of a right one (a row), or of the first axis of
// a convolution's weight.
Result<Value*> column(NodeContext& node, Value* parameter) {
  if (parameter == nullptr || parameter->type.shape.rank() > 1) return parameter;
  if (is_single(parameter)) return reshaped(node, parameter, {});
  return reshaped(node, parameter, {parameter->type.shape[0], Dim(1)});
}

Result<Value*> row(NodeContext& node, Value* parameter) {
  return parameter != nullptr && is_single(parameter) ? reshaped(node, parameter, {}) : Result<Value*>(parameter);
}

Result<Value*> first_axis(NodeContext& node, Value* parameter, int trailing) {
  if (parameter == nullptr || is_single(parameter)) return row(node, parameter);
  if (parameter->type.shape.rank() != 1)
    return broken_rule("the weight's scale and zero point must be single numbers or lists, found " +
                       parameter->type.text() + ".");
  std::vector<Dim> shape(static_cast<std::size_t>(trailing) + 1, Dim(1));
  shape[0] = parameter->type.shape[0];
  return reshaped(node, parameter, shape);
}

Result<Values> convert_matmul_integer(NodeContext& node) {
  TRY(Value * zero_a, column(node, node.input(2)));
  TRY(Value * zero_b, row(node, node.input(3)));
  TRY(Value * a, centred(node, 0, zero_a));
  TRY(Value * b, centred(node, 1, zero_b));
  return single(node.emit("matmul", {}, {a, b}));
}

// sums * (scale_a * scale_b / scale_y), quantised with the zero point of y.
Result<Value*> requantized(NodeContext& node, Value* sums, Value* scale_a, Value* scale_b, Value* scale_y,
                           Value* zero_y) {
  TRY(scale_y, row(node, scale_y));
  for (Value** scale : {&scale_a, &scale_b, &scale_y}) {
    TRY(*scale, as(node, *scale, DType::f32));
  }
  TRY(Value * scale, node.emit("mul", {}, {scale_a, scale_b}));
  TRY(scale, node.emit("div", {}, {scale, scale_y}));
  TRY(sums, as(node, sums, DType::f32));
  TRY(sums, node.emit("mul", {}, {sums, scale}));
  TRY(Value * zero_point, row(node, zero_y));
  return quantized(node, sums, zero_point, zero_y->type.dtype);
}

Result<Values> convert_qlinear_matmul(NodeContext& node) {
  TRY(Value * zero_a, column(node, node.input(2)));
  TRY(Value * zero_b, row(node, node.input(5)));
  TRY(Value * a, centred(node, 0, zero_a));
  TRY(Value * b, centred(node, 3, zero_b));
  TRY(Value * sums, node.emit("matmul", {}, {a, b}));
  TRY(Value * scale_a, column(node, node.input(1)));
  TRY(Value * scale_b, row(node, node.input(4)));
  return single(requantized(node, sums, scale_a, scale_b, node.input(6), node.input(7)));
}

Result<Values> convert_conv_integer(NodeContext& node) {
  TRY(Value * zero_x, row(node, node.input(2)));
  TRY(Value * zero_w, first_axis(node, node.input(3), node.rank(1) - 1));
  TRY(Value * x, centred(node, 0, zero_x));
  TRY(Value * w, centred(node, 1, zero_w));
  return single(import_convolution(node, {x, w, nullptr}));
}

Result<Values> convert_qlinear_conv(NodeContext& node) {
  TRY(Value * zero_x, row(node, node.input(2)));
  TRY(Value * zero_w, first_axis(node, node.input(5), node.rank(3) - 1));
  TRY(Value * x, centred(node, 0, zero_x));
  TRY(Value * w, centred(node, 3, zero_w));
  TRY(Value * sums, import_convolution(node, {x, w, node.input(8)}));
  TRY(Value * scale_x, row(node, node.input(1)));
  TRY(Value * scale_w, first_axis(node, node.input(4), node.rank(3) - 2));
  return single(requantized(node, sums, scale_x, scale_w, node.input(6), node.input(7)));
}

}  // namespace

std::vector<Converter> quantize_converters() {
  return {
      {"ConvInteger", {10}, 2, 4, convert_conv_integer},
      {"DequantizeLinear", {10, 13, 19, 21, 23, 24, 25, 28}, 2, 3, convert_dequantize},
      {"DynamicQuantizeLinear", {11}, 1, 1, convert_dynamic_quantize},
      {"MatMulInteger", {10}, 2, 4, convert_matmul_integer},
      {"QLinearConv", {10}, 8, 9, convert_qlinear_conv},
      {"QLinearMatMul", {10, 21}, 8, 8, convert_qlinear_matmul},
      {"QuantizeLinear", {10, 13, 19, 21, 23, 24, 25, 28}, 2, 3, convert_quantize},
  };
}

}  // namespace polyphase

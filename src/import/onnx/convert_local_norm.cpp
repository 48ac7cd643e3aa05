// LRN, LpNormalization, LpPool, GlobalLpPool: sums of powers over neighbours, an axis, a window, an image.
#include <cmath>

#include "import/compose/composer.h"
#include "import/onnx/node_context.h"
#include "import/onnx/window_attributes.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;
using Integers = Composer::Integers;

// f16 and bf16 are computed in f32.
Value* widened(Composer& make, Value* value) {
  return make.cast(value, size_bytes(value->type.dtype) < 4 ? DType::f32 : value->type.dtype);
}

// x / (bias + alpha / size · Σ x²)^beta, the sum over `size` neighbouring channels, of which (size - 1) / 2 come
// before.
Result<Values> convert_lrn(NodeContext& node) {
  const std::int64_t size = node.integer("size", 0);
  const double alpha = node.real("alpha", static_cast<double>(0.0001F));
  const double beta = node.real("beta", 0.75);
  const double bias = node.real("bias", 1.0);
  const Shape& shape = node.shape(0);
  if (size < 1 || size > 1 << 20) return broken_rule("size is " + std::to_string(size) + "; it must be at least 1.");
  if (shape.rank() < 2) return broken_rule("the operand must be (N, C, …), found " + node.type(0).text() + ".");
  Composer make(node);
  Value* x = widened(make, node.input(0));
  Dim pixels(1);
  for (int i = 2; i < shape.rank(); ++i) pixels = pixels * shape[i];
  Value* squares = make.reshape(make.mul(x, x), {shape[0], Dim(1), shape[1], pixels});
  // The mean over a window that counts its padding is the sum divided by `size`.
  Value* mean = make.op("avg_pool", {squares},
                        Attributes({{"kernel", Integers{size, 1}},
                                    {"stride", Integers{1, 1}},
                                    {"dilation", Integers{1, 1}},
                                    {"pre", Sizes{Dim((size - 1) / 2), Dim(0)}},
                                    {"post", Sizes{Dim(size - 1 - (size - 1) / 2), Dim(0)}},
                                    {"include_pad", true}}));
  Value* base = make.reshape(make.add(make.mul(mean, alpha), bias), shape.dims());
  Value* power = make.op("pow", {base, make.number(beta, make.dtype(base))});
  return make.results({make.cast(make.div(x, power), node.type(0).dtype)});
}

// x divided by its norm along the axis; a norm of 0 gives 0.
Result<Values> convert_lp_normalization(NodeContext& node) {
  const std::int64_t p = node.integer("p", 2);
  TRY(const std::int64_t axis, node.axis(node.integer("axis", -1), node.rank(0)));
  if (p != 1 && p != 2) return broken_rule("p is " + std::to_string(p) + "; it must be 1 or 2.");
  Composer make(node);
  Value* x = widened(make, node.input(0));
  Value* norm = make.reduce(p == 1 ? "reduce_l1" : "reduce_l2", x, {axis}, true);
  Value* least = make.number(make.dtype(x) == DType::f64 ? 0x1p-1000 : 0x1p-120, make.dtype(x));
  return make.results({make.cast(make.div(x, make.op("max", {norm, least})), node.type(0).dtype)});
}

Value* power_of(Composer& make, Value* x, std::int64_t p) {
  if (p == 2) return make.mul(x, x);
  Value* size = make.op("abs", {x});
  return p == 1 ? size : make.op("pow", {size, make.number(static_cast<double>(p), make.dtype(x))});
}

Value* root_of(Composer& make, Value* x, std::int64_t p) {
  if (p == 1) return x;
  if (p == 2) return make.op("sqrt", {x});
  return make.op("pow", {x, make.number(1.0 / static_cast<double>(p), make.dtype(x))});
}

Result<std::int64_t> read_p(NodeContext& node) {
  const std::int64_t p = node.integer("p", 2);
  if (p < 1) return broken_rule("p is " + std::to_string(p) + "; it must be at least 1.");
  return p;
}

// (Σ |x|^p)^(1/p) over windows; padding is 0. Written out, so that the mean times the taps is the sum.
Result<Values> convert_lp_pool(NodeContext& node) {
  TRY(const std::int64_t p, read_p(node));
  const Shape& shape = node.shape(0);
  if (shape.rank() < 3) return broken_rule("the operand must be (N, C, spatial…), found " + node.type(0).text() + ".");
  if (!node.has_attribute("kernel_shape")) return broken_rule("attribute 'kernel_shape' is missing.");
  OnnxWindowSettings settings = window_settings(node, {});
  if (node.version() < 18 && settings.dilations.has_value())
    return broken_rule("attribute 'dilations' exists from a later version on.");
  settings.kernel_shape.reset();
  settings.ceil_mode = node.version() >= 18 && node.flag("ceil_mode", false);
  TRY(WindowForm window, onnx_window(settings, node.graph().checks()));
  const Integers kernel = integers_of(settings.kernel);
  Composer make(node);
  Value* powers = power_of(make, widened(make, node.input(0)), p);
  double taps = 1;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    taps *= static_cast<double>(kernel[i]);
    Dim behind = window.post[i];
    if (window.ceil) behind = behind + (window.stride[i] - 1);
    powers = make.pad(powers, static_cast<int>(i) + 2, window.pre[i], behind);
  }
  Value* sums = make.mul(make.op("avg_pool", {powers},
                                 Attributes({{"kernel", kernel},
                                             {"stride", window.stride},
                                             {"dilation", window.dilation},
                                             {"pre", Sizes(kernel.size(), Dim(0))},
                                             {"post", Sizes(kernel.size(), Dim(0))}})),
                         taps);
  for (std::size_t i = 0; window.ceil && i < kernel.size();
       ++i) {  // windows that begin behind the operand do not count
    const int axis = static_cast<int>(i) + 2;
    const Dim stride(window.stride[i]);
    const Dim most = floor_div(shape[axis] + window.pre[i] + stride - 1, stride);
    sums = make.slice(sums, axis, 0, min(make.size(sums, axis), most));
  }
  return make.results({make.cast(root_of(make, sums, p), node.type(0).dtype)});
}

Result<Values> convert_global_lp_pool(NodeContext& node) {
  TRY(const std::int64_t p, read_p(node));
  if (node.rank(0) < 3) return broken_rule("the operand must be (N, C, spatial…), found " + node.type(0).text() + ".");
  Composer make(node);
  Integers axes;
  for (int axis = 2; axis < node.rank(0); ++axis) axes.push_back(axis);
  Value* x = widened(make, node.input(0));
  Value* norm = nullptr;
  if (p == 1 || p == 2) {
    norm = make.reduce(p == 1 ? "reduce_l1" : "reduce_l2", x, std::move(axes), true);
  } else {
    norm = root_of(make, make.reduce("reduce_sum", power_of(make, x, p), std::move(axes), true), p);
  }
  return make.results({make.cast(norm, node.type(0).dtype)});
}

}  // namespace

std::vector<Converter> local_norm_converters() {
  return {
      {"GlobalLpPool", {2, 22}, 1, 1, convert_global_lp_pool},
      {"LRN", {1, 13}, 1, 1, convert_lrn},
      {"LpNormalization", {1, 22}, 1, 1, convert_lp_normalization},
      {"LpPool", {2, 11, 18, 22}, 1, 1, convert_lp_pool},
  };
}

}  // namespace polyphase

// MaxPool, AveragePool and the global pools.
#include <limits>

#include "import/onnx/node_context.h"
#include "import/onnx/window_attributes.h"

namespace polyphase {
namespace {

using Integers = std::vector<std::int64_t>;

// The pools' padding is fixed; a computed one (SAME over an open size) is a pad of its own before the pool.
Result<Value*> pad_beforehand(NodeContext& node, OnnxWindow& window) {
  std::vector<Dim> pre(2, Dim(0));
  std::vector<Dim> post(2, Dim(0));
  pre.insert(pre.end(), window.pre.begin(), window.pre.end());
  post.insert(post.end(), window.post.begin(), window.post.end());
  window.pre.assign(window.pre.size(), Dim(0));
  window.post = window.pre;
  const double lowest = is_float(node.type(0).dtype) ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::lowest();
  return node.emit("pad", Attributes({{"pre", std::move(pre)}, {"post", std::move(post)}, {"value", lowest}}), {node.input(0)});
}

bool is_fixed(const OnnxWindow& window) {
  for (std::size_t i = 0; i < window.pre.size(); ++i) {
    if (!window.pre[i].is_constant() || !window.post[i].is_constant()) return false;
  }
  return true;
}

Result<Values> convert_pool(NodeContext& node) {
  const bool is_max = node.op_type() == "MaxPool";
  TRY(const std::size_t axes, spatial_axes(node));
  if (!node.has_attribute("kernel_shape")) return broken_rule("attribute 'kernel_shape' is missing.");
  TRY(Integers kernel, spatial_attribute(node, "kernel_shape", axes, 1, 1));
  if (is_max) node.ignore("storage_order");  // it orders the result Indices, which is not computed
  const bool has_dilations = node.version() >= (is_max ? 10 : 19);
  TRY(OnnxWindow window, read_window(node, {kernel.begin(), kernel.end()}, has_dilations));
  const bool ceil = node.version() >= 10 && node.flag("ceil_mode", false);
  const bool include_pad = !is_max && node.flag("count_include_pad", false);
  Value* x = node.input(0);
  if (!is_fixed(window)) {
    if (!is_max) {
      return lacking("auto_pad over a size that is not fixed, with a stride above 1, makes the mean's padding depend on the input.",
                     "Fix the spatial sizes (--dim NAME=NUMBER), or pad explicitly.");
    }
    TRY(x, pad_beforehand(node, window));
  }
  Attributes attributes({{"kernel", std::move(kernel)},
                         {"stride", window.stride},
                         {"dilation", window.dilation},
                         {"pre", integers_of(window.pre)},
                         {"post", integers_of(window.post)},
                         {"ceil", ceil}});
  if (!is_max) attributes.set("include_pad", include_pad);
  TRY(Value * value, node.emit(is_max ? "max_pool" : "avg_pool", std::move(attributes), {x}));
  return Values{value};
}

Result<Values> convert_global_pool(NodeContext& node) {
  if (node.rank(0) < 3) return broken_rule("the operand must be (N, C, spatial…), found " + node.type(0).text() + ".");
  Integers axes;
  for (int axis = 2; axis < node.rank(0); ++axis) axes.push_back(axis);
  TRY(Value * value, node.emit(node.op_type() == "GlobalMaxPool" ? "reduce_max" : "reduce_mean", Attributes({{"axes", std::move(axes)}, {"keep", true}}), {node.input(0)}));
  return Values{value};
}

}  // namespace

std::vector<Converter> pool_converters() {
  return {
      {"AveragePool", {7, 10, 11, 19, 22}, 1, 1, convert_pool},
      {"GlobalAveragePool", {1, 22}, 1, 1, convert_global_pool},
      {"GlobalMaxPool", {1, 22}, 1, 1, convert_global_pool},
      {"MaxPool", {1, 8, 10, 11, 12, 22}, 1, 1, convert_pool},
  };
}

}  // namespace polyphase

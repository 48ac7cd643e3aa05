// MaxPool, AveragePool and the global pools.
#include "import/onnx/node_context.h"
#include "import/onnx/window_attributes.h"

namespace polyphase {
namespace {

using Integers = std::vector<std::int64_t>;

Result<Values> convert_pool(NodeContext& node) {
  const bool is_max = node.op_type() == "MaxPool";
  if (node.rank(0) < 3) return broken_rule("the operand must be (N, C, spatial…), found " + node.type(0).text() + ".");
  if (!node.has_attribute("kernel_shape")) return broken_rule("attribute 'kernel_shape' is missing.");
  const bool by_columns = is_max && node.flag("storage_order", false);
  OnnxWindowSettings settings = window_settings(node, {});
  if (node.version() < (is_max ? 10 : 19) && settings.dilations.has_value()) {
    return broken_rule("attribute 'dilations' exists from a later version on.");
  }
  settings.kernel_shape.reset();
  settings.ceil_mode = node.version() >= 10 && node.flag("ceil_mode", false);
  const bool include_pad = !is_max && node.flag("count_include_pad", false);
  TRY(WindowForm window, onnx_window(settings, node.graph().checks()));
  Attributes attributes({{"kernel", integers_of(settings.kernel)},
                         {"stride", std::move(window.stride)},
                         {"dilation", std::move(window.dilation)},
                         {"pre", std::move(window.pre)},
                         {"post", std::move(window.post)},
                         {"ceil", window.ceil}});
  if (!is_max) attributes.set("include_pad", include_pad);
  TRY(Value * value, node.emit(is_max ? "max_pool" : "avg_pool", attributes, {node.input(0)}));
  if (!is_max || node.output_count() < 2) return Values{value};
  attributes.set("column_major", by_columns);
  TRY(Value * indices, node.emit("max_pool_indices", std::move(attributes), {node.input(0)}));
  return Values{value, indices};
}

Result<Values> convert_global_pool(NodeContext& node) {
  if (node.rank(0) < 3) return broken_rule("the operand must be (N, C, spatial…), found " + node.type(0).text() + ".");
  Integers axes;
  for (int axis = 2; axis < node.rank(0); ++axis) axes.push_back(axis);
  TRY(Value * value, node.emit(node.op_type() == "GlobalMaxPool" ? "reduce_max" : "reduce_mean",
                               Attributes({{"axes", std::move(axes)}, {"keep", true}}), {node.input(0)}));
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

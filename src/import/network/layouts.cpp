// Layouts of a convolution's data, weight and result: what is not as the operator has it goes through layout_transform.
#include "base/layout_name.h"
#include "import/network/builder.h"
#include "import/network/refuse.h"

namespace polyphase {
namespace {

// The operator's own order of a weight's axes: of a convolution the result's channels come first.
std::string plain_kernel(std::string_view op, int spatial) {
  return (op == "conv" ? "OI" : "IO") + LayoutName::channels_first(spatial).substr(2);
}

// Refuses a layout that is not of the axes that `plain` has.
Result<LayoutName> expect_axes(const std::string& text, const std::string& plain, bool may_be_blocked,
                               const std::string& what, const std::string& layer) {
  const std::string last = plain.substr(0, 1) + plain.substr(2) + plain.substr(1, 1);
  const std::string legal = "Legal is any order of the axes " + plain + ", as in " + plain + " or " + last +
                            (may_be_blocked ? ", also in blocks of channels: " + plain + "8c, " + plain + "16c." : ".");
  auto layout = LayoutName::parse(text);
  if (!layout.ok()) return refused_call(what + ": " + layout.error().message, legal).at_node(layer);
  const auto wanted = LayoutName::parse(plain).value();
  const bool fits = layout->names_the_same_axes(wanted) && (may_be_blocked || !layout->is_blocked()) &&
                    (!layout->is_blocked() || layout->axes()[layout->blocked_axis()] == 'C');
  if (fits) return layout;
  return refused_call(what + " is '" + text + "', which is no layout of the axes " + plain + ".", legal).at_node(layer);
}

}  // namespace

Result<Value*> NetworkBuilder::change_layout(Value* value, const std::string& from, const std::string& to, Dim channels,
                                             const std::string& layer) {
  if (from == to) return value;
  TRY(Node * node,
      emit("layout_transform",
           Attributes({{"from_layout", from}, {"to_layout", to}, {"channels", std::move(channels)}}), {value}, layer));
  return node->output();
}

Result<void> NetworkBuilder::undo_layouts(std::string_view op, const GivenConvolution& given,
                                          std::vector<Value*>& values, const std::string& layer) {
  const GivenLayouts& layouts = given.layouts;
  if (layouts.data.empty() && layouts.kernel.empty() && layouts.result.empty()) return {};
  const int spatial = values[1]->type.shape.rank() - 2;
  if (spatial < 1 || spatial > 3) return {};  // refused with the weight's type
  const std::string kernel = plain_kernel(op, spatial);
  const std::string plain = LayoutName::channels_first(spatial);
  if (!layouts.kernel.empty()) {
    TRY_VOID(expect_axes(layouts.kernel, kernel, false, "kernel_layout", layer));
    TRY(values[1], change_layout(values[1], layouts.kernel, kernel, 0, layer + "/kernel_layout"));
  }
  if (!layouts.result.empty()) {
    TRY_VOID(expect_axes(layouts.result, plain, true, "out_layout", layer));
  }
  if (layouts.data.empty()) return {};
  TRY(const LayoutName data, expect_axes(layouts.data, plain, true, "data_layout", layer));
  if (values[0]->type.shape.rank() != data.rank()) {
    return refused_call("data_layout is '" + layouts.data + "', which has " + std::to_string(data.rank()) +
                            " axes, but the operand is " + values[0]->type.text() + ".",
                        "With a layout the batch axis must be there: reshape the operand.")
        .at_node(layer);
  }
  // The weight tells how many channels there are beside those that fill the last block.
  const Shape& weight = values[1]->type.shape;
  const Dim channels = op == "conv" ? weight[1] * Dim(given.groups) : weight[0];
  TRY(values[0],
      change_layout(values[0], layouts.data, plain, data.is_blocked() ? channels : Dim(0), layer + "/data_layout"));
  return {};
}

}  // namespace polyphase

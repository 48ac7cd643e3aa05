// Rows that only answer questions.
#include "passes/plain_rows.h"

namespace polyphase {
namespace {

std::string accepts(const StepDesc& desc, const Target&) {
  const bool widens = desc.begins_with_cast();
  for (const OperandDesc& input : desc.inputs) {
    const bool is_widened = widens && &input == &desc.data();
    if (input.present && !is_widened && input.type.dtype != DType::f32) return "takes f32";
  }
  for (const Part& part : desc.beginnings()) {
    const bool reflects = part.op->name == "pad" && part.attributes.get<std::string>("mode") == "reflect";
    const bool is_separable = desc.parts.front().op->name == "conv" && part.op->name != "pad";
    if (part.op->name != "leaky_relu" && !reflects && !widens && !is_separable)
      return "does not begin with " + part.op->name;
  }
  const OperandDesc& result = desc.outputs.front();
  if (result.type.dtype != DType::f32) return "gives f32";
  return result.layout == Layout::channels_last(result.type.shape.rank()) ? "" : "gives channels-last";
}

// Two convolutions in one pay where the result is large.
double cost(const StepDesc& desc, const Target&) {
  constexpr std::int64_t large = 100'000;
  const bool is_separable = desc.anchor > 0 && desc.parts.front().op->name == "conv";
  return is_separable && desc.outputs.front().type.shape.element_count().constant().value_or(0) < large ? 3e-6 : 1e-6;
}

Row plain_row(std::string_view op) {
  Row row;
  row.name = "plain";
  row.op = op;
  row.doc = "answers questions";
  row.accepts = accepts;
  row.cost = cost;
  return row;
}

}  // namespace

const Registry& registry() {
  static const Registry built_in = Registry::built_in();
  return built_in;
}

const Catalogue& plain_catalogue(const Registry& registry) {
  static const Row conv = plain_row("conv");
  static const Row conv_transpose = plain_row("conv_transpose");
  static const Catalogue catalogue({&conv, &conv_transpose}, registry);
  return catalogue;
}

}  // namespace polyphase

// A plugin's operator without a runtime: its kernel on views of any strides.
#include "ops/custom.h"

namespace polyphase {

std::string onnx_claim(std::string_view domain, std::string_view op_type) {
  return "onnx " + std::string(domain == "ai.onnx" ? std::string_view() : domain) + " " + std::string(op_type);
}

std::string torch_claim(std::string_view overload) { return "torch " + std::string(overload); }

namespace {

Result<Tensor> row_major_copy(const TensorView& view) {
  TRY(Tensor copy, Tensor::allocate(view.dtype, view.size_span()));
  copy_elements(view, copy.view());
  return copy;
}

}  // namespace

Result<void> run_custom(const OpDef& op, const ReferenceContext& context) {
  std::vector<Tensor> copies;
  std::vector<TensorView> inputs(context.inputs.begin(), context.inputs.end());
  std::vector<TensorView> outputs(context.outputs.begin(), context.outputs.end());
  std::uint64_t absent = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!context.has_input(i)) {
      absent |= std::uint64_t{1} << i;
    } else if (!inputs[i].is_row_major()) {
      TRY(Tensor copy, row_major_copy(inputs[i]));
      inputs[i] = copy.view();
      copies.push_back(std::move(copy));
    }
  }
  for (TensorView& output : outputs) {
    if (output.is_row_major()) continue;
    TRY(Tensor copy, Tensor::allocate(output.dtype, output.size_span()));
    output = copy.view();
    copies.push_back(std::move(copy));
  }
  const CustomCall call{context.attributes, inputs, outputs, absent};
  TRY(const CustomPlan plan, op.custom->plan(op, call));
  TRY(const std::shared_ptr<Buffer> scratch, Buffer::allocate_raw(plan.scratch_bytes));
  for (std::int64_t tile = 0; tile < plan.tiles; ++tile)
    TRY_VOID(op.custom->run(op, call, plan, tile, scratch->data()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].data != context.outputs[i].data) copy_elements(outputs[i], context.outputs[i]);
  }
  return {};
}

}  // namespace polyphase

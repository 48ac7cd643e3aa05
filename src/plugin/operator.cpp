// The kernel's calls, and the sizes that they are held to.
#include "plugin/operator.h"

#include <algorithm>
#include <array>

#include "plugin/definition.h"
#include "plugin/shape_rule.h"
#include "plugin/values.h"

namespace polyphase {
namespace {

constexpr std::int64_t most_tiles = std::int64_t{1} << 31;
constexpr std::size_t most_scratch_bytes = std::size_t{1} << 32;

// One call in the C ABI's form, on the stack: runs allocate nothing.
struct CallFrame {
  std::array<polyphase_op_tensor, POLYPHASE_OP_MAX_OPERANDS> tensors;
  std::array<polyphase_op_value, POLYPHASE_OP_MAX_ATTRIBUTES> values;
  std::array<char, plugin_message_bytes> message{};
  polyphase_op_call call{};

  CallFrame(const OpDef& op, const polyphase_op* given, const CustomCall& with) {
    write_values(with.attributes, op.attributes, values.data());
    const std::size_t input_count = std::max(with.inputs.size(), op.inputs.size());
    for (std::size_t i = 0; i < input_count; ++i) {
      const bool absent = i >= with.inputs.size() || ((with.absent >> i) & 1) != 0;
      tensors[i] = absent ? absent_tensor() : plugin_tensor(with.inputs[i]);
    }
    for (std::size_t i = 0; i < with.outputs.size(); ++i) tensors[input_count + i] = plugin_tensor(with.outputs[i]);
    call.struct_size = sizeof(call);
    call.op = given;
    call.input_count = input_count;
    call.inputs = tensors.data();
    call.attributes = values.data();
    call.output_count = with.outputs.size();
    call.outputs = tensors.data() + input_count;
    call.message = message.data();
    call.message_bytes = message.size();
    call.tile_count = 1;
  }
};

Error refused(const OpDef& op, const char* what, int32_t status, CallFrame& frame) {
  frame.message.back() = '\0';
  std::string words = plain_text(frame.message.data());
  if (words.empty()) words = "it returned " + std::to_string(status) + " and no message.";
  return {ErrorCode::invalid_argument,
          "the " + std::string(what) + " of the plugin's operator '" + op.name + "' reports: " + words,
          "The plugin's own documents say what its operator takes."};
}

Error thrown(const OpDef& op, const char* what) {
  return {ErrorCode::invalid_argument,
          "the " + std::string(what) + " of the plugin's operator '" + op.name + "' threw a C++ exception.",
          "Have the plugin catch its exceptions and return an error instead."};
}

// The rule at these very sizes gives the results that the program has prepared.
Result<void> check_results(const ShapeRule& rule, const OpDef& op, const CustomCall& call) {
  std::vector<Type> types;
  for (const TensorView& input : call.inputs)
    types.push_back({input.dtype, Shape::from_sizes({input.size_span().begin(), input.size_span().end()})});
  std::vector<OperandInfo> infos;
  for (std::size_t i = 0; i < types.size(); ++i)
    infos.push_back({((call.absent >> i) & 1) != 0 ? nullptr : &types[i], nullptr});
  std::vector<DimCheck> checks;
  TRY(const std::vector<Type> given, call_shape_rule(rule, op, call.attributes, infos, checks));
  for (std::size_t i = 0; i < given.size(); ++i) {
    const TensorView& output = call.outputs[i];
    const Type prepared{output.dtype, Shape::from_sizes({output.size_span().begin(), output.size_span().end()})};
    if (given[i] == prepared) continue;
    return Error{ErrorCode::shape_mismatch,
                 "the shape rule of the plugin's operator '" + op.name + "' gives " + given[i].text() + " for result " +
                     std::to_string(i) + " now that sizes are known, and gave what is " + prepared.text() +
                     " for these sizes before they were.",
                 "Correct the plugin's shape function: its results may not depend on what sizes are known."};
  }
  return {};
}

}  // namespace

Result<std::vector<Type>> PluginOperator::infer(const InferContext& context) const {
  if (context.input_count() + context.op().outputs.size() > POLYPHASE_OP_MAX_OPERANDS) {
    return Error{ErrorCode::unsupported,
                 "the plugin's operator '" + context.op().name + "' has " + std::to_string(context.input_count()) +
                     " operands here; operands and results together may be " +
                     std::to_string(POLYPHASE_OP_MAX_OPERANDS) + ".",
                 "Give it fewer operands."};
  }
  return call_shape_rule({definition_, given_}, context.op(), context.attributes(), context.inputs(), context.checks());
}

Result<CustomPlan> PluginOperator::plan(const OpDef& op, const CustomCall& call) const {
  TRY_VOID(check_results({definition_, given_}, op, call));
  CustomPlan out;
  if (definition_.plan == nullptr) return out;
  CallFrame frame(op, given_, call);
  for (polyphase_op_tensor& tensor : frame.tensors) tensor.data = nullptr;
  polyphase_op_plan plan{sizeof(polyphase_op_plan), 1, 0};
  int32_t status = 0;
  try {
    status = definition_.plan(&frame.call, &plan);
  } catch (...) {
    return thrown(op, "plan");
  }
  if (status != 0) return refused(op, "plan", status, frame);
  if (plan.tile_count < 0 || plan.tile_count > most_tiles || plan.scratch_bytes > most_scratch_bytes) {
    return Error{ErrorCode::invalid_argument,
                 "the plan of the plugin's operator '" + op.name + "' wants " + std::to_string(plan.tile_count) +
                     " tiles with " + std::to_string(plan.scratch_bytes) + " bytes of scratch each.",
                 "At most 2^31 tiles and 2^32 bytes can be had."};
  }
  out.tiles = std::max<std::int64_t>(1, plan.tile_count);
  out.scratch_bytes = plan.scratch_bytes;
  return out;
}

Result<void> PluginOperator::run(const OpDef& op, const CustomCall& call, const CustomPlan& plan, std::int64_t tile,
                                 std::byte* scratch) const {
  CallFrame frame(op, given_, call);
  frame.call.tile = tile;
  frame.call.tile_count = plan.tiles;
  frame.call.scratch = plan.scratch_bytes == 0 ? nullptr : scratch;
  frame.call.scratch_bytes = plan.scratch_bytes;
  int32_t status = 0;
  try {
    status = definition_.run(&frame.call);
  } catch (...) {
    return thrown(op, "kernel");
  }
  if (status != 0) return refused(op, "kernel", status, frame);
  return {};
}

}  // namespace polyphase

// OpsetStep: how a node crosses a version that changed its operator's form or meaning; what such steps ask and say.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "export/model_facts.h"

namespace onnx {
class NodeProto;
}

namespace polyphase::legal {

class Replacement;

// Adds nothing: the node says the same in the other version. Errors: it cannot be said there, in the words of
// cannot_be_said.
using CrossVersion = Result<void> (*)(const onnx::NodeProto&, Replacement&);

struct OpsetStep {
  std::string_view op_type;
  int version;                  // the opset that brought the change
  std::string_view doc;         // the change, after "from opset N on"
  CrossVersion up = nullptr;    // null: as operator_versions has it
  CrossVersion down = nullptr;  // the same
  // Where it makes several nodes, each of which rounds: how far results may be apart, in units of the largest.
  double tolerance = 0;
};

// The families, a file each.
std::span<const OpsetStep> axis_steps();
std::span<const OpsetStep> operand_steps();
std::span<const OpsetStep> layer_steps();
std::span<const OpsetStep> composite_steps();
std::span<const OpsetStep> resize_steps();

// All of them, in that order.
std::vector<OpsetStep> opset_steps();
// null: none.
const OpsetStep* find_opset_step(std::string_view op_type, int version);

// "its operand 'w' is computed": the reason, without a full stop.
Error cannot_be_said(const std::string& why);

bool has_operand(const onnx::NodeProto& node, int index);
bool has_result(const onnx::NodeProto& node, int index);
// Without empty names at the end.
void trim_operands(onnx::NodeProto& node);
// Operands up to and with `index`; those that are absent get an empty name.
void set_operand(onnx::NodeProto& node, int index, const std::string& tensor);
void drop_operands_from(onnx::NodeProto& node, int index);

// Errors: it is not known.
Result<Type> operand_type(const onnx::NodeProto& node, int index, const ModelFacts& model);
// Elements of a constant operand. Errors: it is computed.
Result<std::vector<std::int64_t>> constant_integers(const onnx::NodeProto& node, int index, const ModelFacts& model);
Result<Tensor> constant_elements(const onnx::NodeProto& node, int index, const ModelFacts& model);
// As constant_elements, of one element, as a number.
Result<double> constant_number(const onnx::NodeProto& node, int index, const ModelFacts& model);

// A scalar or a vector of one element.
Tensor number_tensor(DType dtype, double value, const std::vector<std::int64_t>& sizes);
float real_of(const onnx::NodeProto& node, std::string_view name, float otherwise);

}  // namespace polyphase::legal

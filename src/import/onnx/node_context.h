// NodeContext: what a converter sees of its ONNX node (operands, attributes, version) and how it adds IR nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/dim.h"
#include "base/result.h"
#include "graph/graph.h"
#include "import/compose/emitter.h"
#include "import/onnx/converter.h"
#include "import/onnx/scope.h"

namespace onnx {
class AttributeProto;
class NodeProto;
}  // namespace onnx

namespace polyphase {

class Importer;
struct Ratio;

class NodeContext : public Emitter {
 public:
  NodeContext(Importer& importer, Graph& graph, const Converter& converter, int version, std::string name,
              Values inputs, std::size_t output_count, std::vector<NamedAttribute> attributes);

  int version() const { return version_; }
  std::string_view op_type() const { return converter_.op_type; }
  // The plugin's operator that this node is; null: one of the table's.
  const OpDef* claimed_by();

  // Operands. The table's min_inputs are there; others may be absent (null).
  std::size_t input_count() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  Value* input(std::size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  const Values& inputs() const { return inputs_; }
  const Type& type(std::size_t i) const { return input(i)->type; }
  const Shape& shape(std::size_t i) const { return input(i)->type.shape; }
  int rank(std::size_t i) const { return shape(i).rank(); }
  // Results that the node names, trailing absent ones not counted.
  std::size_t output_count() const { return output_count_; }

  // Attributes, or the default if the node does not have them. An attribute of the wrong type makes the whole node fail
  // after the converter returns; the default is given meanwhile. What no converter asked for is refused.
  bool has_attribute(std::string_view attribute_name);
  std::int64_t integer(std::string_view attribute_name, std::int64_t otherwise);
  bool flag(std::string_view attribute_name, bool otherwise) { return integer(attribute_name, otherwise ? 1 : 0) != 0; }
  double real(std::string_view attribute_name, double otherwise);
  std::string word(std::string_view attribute_name, std::string_view otherwise);
  std::optional<std::vector<std::int64_t>> integers(std::string_view attribute_name);
  std::optional<std::vector<double>> reals(std::string_view attribute_name);
  std::vector<std::string> words(std::string_view attribute_name);  // none: empty
  Result<Tensor> tensor(std::string_view attribute_name);
  Result<Tensor> sparse_tensor(std::string_view attribute_name);
  void ignore(std::string_view attribute_name) { (void)attribute_named(attribute_name); }
  void refuse_later(Error error);  // keeps the first

  // Operand i's elements as sizes. Where they come from data, a bind node gives them names; its length must be known
  // then.
  Result<std::vector<Dim>> sizes(std::size_t i, DimRange range = {});
  Result<std::vector<Dim>> sizes_of(Value* value, std::string_view role, DimRange range = {});
  // Operand i, a single number, as a size.
  Result<Dim> size(std::size_t i, std::string_view role, DimRange range = {});
  // Operand i's elements if the model fixes them: constants, and small tensors computed from constants alone.
  std::optional<Tensor> fixed(std::size_t i);
  Result<std::vector<std::int64_t>> fixed_integers(std::size_t i, std::string_view role);
  Result<std::vector<double>> fixed_reals(std::size_t i, std::string_view role);
  // Operand i's elements, floats, if they are sizes over sizes.
  std::optional<std::vector<Ratio>> ratios(std::size_t i);
  // The same if they are whole: sizes that took a way through floats.
  std::optional<std::vector<Dim>> whole_sizes(std::size_t i);

  // axis in [-rank, rank) → [0, rank), or an Error that names the attribute.
  Result<std::int64_t> axis(std::int64_t given, std::int64_t of_rank, std::string_view role = "axis");
  // The same for a list, also refusing an axis that is there twice.
  Result<std::vector<std::int64_t>> axes(const std::vector<std::int64_t>& given, std::int64_t of_rank);

  void warn(std::string text);

  // After the converter: the first deferred refusal, or one for an attribute that nobody asked for.
  Result<void> finish() const;

 private:
  onnx::AttributeProto* attribute_named(std::string_view attribute_name);
  onnx::AttributeProto* attribute_named(std::string_view attribute_name, int wanted_type);

  Importer& importer_;
  const Converter& converter_;
  int version_;
  Values inputs_;
  std::size_t output_count_;
  std::vector<NamedAttribute> attributes_;
  std::set<std::string, std::less<>> asked_;
  std::unique_ptr<Error> refusal_;
};

// f16 and bf16 are computed in f32.
inline DType computing_dtype(DType dtype) { return size_bytes(dtype) < 4 ? DType::f32 : dtype; }
// What a converter of one result returns.
Result<Values> single(Result<Value*> value);

Result<Value*> reshaped(NodeContext& node, Value* x, std::vector<Dim> shape);

// A refusal in one line: a rule of ONNX is broken.
inline constexpr const char* rule_broken_advice =
    "The model breaks ONNX's rules: check it with onnx.checker.check_model(model, full_check=True) and export it "
    "again.";
Error broken_rule(std::string message, std::string hint = rule_broken_advice);

}  // namespace polyphase

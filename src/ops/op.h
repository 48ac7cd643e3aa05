// OpDef: what one operator means, as one object, without any graph: attributes, shape rule over Dim, layout rule,
// reference loops.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dim.h"
#include "base/result.h"
#include "base/shape.h"
#include "base/tensor.h"
#include "ops/attributes.h"

namespace polyphase {

// Something a shape rule could not prove; checked when the sizes are known. `why` names both origins, e.g.
// "axis 1 of 'x' (C) must equal dimension 0 of the weight (64)".
struct DimCheck {
  enum class Relation : std::uint8_t {
    equal,       // left == right
    less_equal,  // left <= right
    broadcast,   // left == right, or one of them is 1 and the other not 0
  };
  Dim left;
  Relation relation = Relation::equal;
  Dim right;
  std::string why;
  bool operator==(const DimCheck&) const = default;
};
std::string_view name_of(DimCheck::Relation relation);
// Whether the check holds for these values.
bool holds(DimCheck::Relation relation, std::int64_t left, std::int64_t right);

// Demands on sizes: proved → nothing, disproved → Error(message), open → a run-time check with the same words.
class DimDemands {
 public:
  explicit DimDemands(std::vector<DimCheck>& checks) : checks_(checks) {}
  Result<void> require(const Dim& left, DimCheck::Relation relation, const Dim& right,
                       const std::string& message) const;

 private:
  std::vector<DimCheck>& checks_;
};

// An operand as a shape rule sees it. `contents` are the elements of a small integer or bool tensor, in row-major
// order, when they are known as sizes.
struct OperandInfo {
  const Type* type = nullptr;  // null: an optional operand that is absent
  const std::vector<Dim>* contents = nullptr;
  bool present() const { return type != nullptr; }
};

using Contents = std::optional<std::vector<Dim>>;
// Tensors with more elements than this never get contents.
inline constexpr std::int64_t max_contents = 1024;

struct OpDef;
class CutContext;
class CustomOperator;
struct CutAnswer;

// What a graph takes and gives that a node owns.
struct RegionTypes {
  std::vector<Type> inputs;
  std::vector<Type> results;
};

// What a shape rule knows and what it may demand.
class InferContext {
 public:
  InferContext(const OpDef& op, const Attributes& attributes, std::span<const OperandInfo> inputs,
               std::vector<DimCheck>& checks, std::span<const RegionTypes> regions = {})
      : op_(op), attributes_(attributes), inputs_(inputs), checks_(checks), regions_(regions) {}

  const OpDef& op() const { return op_; }
  const Attributes& attributes() const { return attributes_; }
  std::size_t input_count() const { return inputs_.size(); }
  bool has_input(std::size_t i) const { return i < inputs_.size() && inputs_[i].present(); }
  const Type& input(std::size_t i) const {
    CHECK(has_input(i));
    return *inputs_[i].type;
  }
  const Shape& shape(std::size_t i) const { return input(i).shape; }
  // The types of each graph the node owns (operators with region_count > 0).
  std::span<const RegionTypes> regions() const { return regions_; }
  const std::vector<Dim>* contents(std::size_t i) const { return has_input(i) ? inputs_[i].contents : nullptr; }
  std::span<const OperandInfo> inputs() const { return inputs_; }
  std::vector<DimCheck>& checks() const { return checks_; }

  Result<void> require(const Dim& left, DimCheck::Relation relation, const Dim& right,
                       const std::string& message) const {
    return DimDemands(checks_).require(left, relation, right, message);
  }
  // The size of two broadcast axes by numpy's rule.
  Result<Dim> broadcast(const Dim& a, const Dim& b, const std::string& message) const;

 private:
  const OpDef& op_;
  const Attributes& attributes_;
  std::span<const OperandInfo> inputs_;
  std::vector<DimCheck>& checks_;
  std::span<const RegionTypes> regions_;
};

// Concrete operands for the reference loops: constant attributes, views in logical order with any strides. Absent
// optional operands have data == nullptr and rank 0. Outputs have the inferred sizes and are written completely.
struct ReferenceContext {
  const Attributes& attributes;
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  const OpDef* op = nullptr;  // whose loops run; set by run_reference
  bool has_input(std::size_t i) const { return i < inputs.size() && inputs[i].data != nullptr; }
};

// How an operator constrains the layouts around it; read by choose_layouts.
enum class LayoutRule : std::uint8_t {
  elementwise,  // any order, the same on all operands and results (broadcast operands by their trailing axes)
  spatial,      // (N, C, spatial…): kernels want channels-last, results too
  per_axis,     // works along named axes in any order; results have the first operand's order
  permute,      // transpose: the result is the operand with its axes renamed
  row_major,    // operands and results must be row-major (reshape, gather, …)
};

struct OperandSpec {
  std::string name;
  std::string doc;
  bool optional = false;
  bool variadic = false;  // last operand only: one or more; if optional also none
};

struct OpDef {
  std::string name;  // the file, the word in the IR, the heading in the docs
  std::string doc;   // meaning, formula, source; shapes in the field's terms
  std::vector<OperandSpec> inputs = {};
  std::vector<OperandSpec> outputs = {};
  std::vector<AttributeSpec> attributes = {};

  // Result types from operand types; refuses what is illegal, with the rule named. Attributes are complete.
  Result<std::vector<Type>> (*infer)(const InferContext&) = nullptr;
  // Plain loops over views; floats accumulate in double and round once, integers are exact. Errors are about data only
  // (an index out of range). Null only for operators that own regions or whose result count depends on data.
  Result<void> (*reference)(const ReferenceContext&) = nullptr;
  // What becomes of operands that are pieces (ops/cut.h); null: nobody has said, so they must be whole.
  CutAnswer (*cut)(const CutContext&) = nullptr;

  // Operands that must have one dtype: bit i stands for inputs[i], of a variadic one for all of it.
  std::uint32_t one_dtype = 0;
  LayoutRule layout = LayoutRule::row_major;
  // The operator only moves or repeats elements; so contents follow by running the reference on element numbers.
  bool moves_elements = false;
  // Result contents from operand contents where the operator computes; null: none follow.
  Contents (*contents)(const InferContext&) = nullptr;
  int region_count = 0;  // graphs a node of this operator owns (if: 2, loop: 1)
  // Elementwise of one running value: may be a beginning or an ending of a fused node.
  bool elementwise = false;
  // An operator of a plugin: what its rule and its loops call. Null: one of ours.
  std::shared_ptr<const CustomOperator> custom = nullptr;

  const AttributeSpec* find_attribute(std::string_view attribute_name) const;
  // Checks names, kinds and words, and fills in defaults.
  Result<Attributes> complete(Attributes given) const;
};

// Runs the shape rule with the common checks around it: operand count, attributes, rank limit, no negative or
// overflowing size. `attributes` must be complete.
Result<std::vector<Type>> infer_types(const OpDef& op, const Attributes& attributes,
                                      std::span<const OperandInfo> inputs, std::vector<DimCheck>& checks,
                                      std::span<const RegionTypes> regions = {});
// Contents of the (single) result, if they follow from the operands'.
Contents infer_contents(const OpDef& op, const Attributes& attributes, std::span<const OperandInfo> inputs,
                        const Type& result);
// Runs the reference loops where there is anything to compute: beside an axis of size 0 another may be of any size.
Result<void> run_reference(const OpDef& op, const ReferenceContext& context);
// Runs the reference on concrete tensors: infers, allocates row-major results, computes. An Error if an attribute is
// symbolic or the operator has no reference.
Result<std::vector<Tensor>> evaluate_reference(const OpDef& op, const Attributes& attributes,
                                               std::span<const Tensor> inputs);

// One operator use inside a node: beginnings, the anchor, endings, in order. `operands` index the node's inputs;
// `running` is the result of the part before (for the first part: there is none).
struct Part {
  static constexpr int running = -1;
  static constexpr int absent = -2;
  const OpDef* op = nullptr;
  Attributes attributes;
  std::vector<int> operands;
  // The name of the value that the running value after this part was before a fusion swallowed it; empty: it has none.
  // For people who look at a run: no meaning, not in the text form, not in engine files.
  std::string yields = {};
};

}  // namespace polyphase

// NetworkBuilder: a graph that a program writes layer by layer. Every call is checked at once, so that a refusal comes
// from the call that made it and names its layer; what a refused call has begun is taken back.
//
// Tensors are numbers. Each belongs to the body it was made in: the network itself, or the graph of an `if` or `loop`
// that is being written. Used further inside it is captured: constants and sizes are made again there, all else becomes
// an input of the inner graph.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "graph/graph.h"
#include "import/imported_model.h"
#include "ops/limits.h"

namespace polyphase {

// What a program gives as an operand: a tensor by its number, or a number by itself; nothing: an optional operand that
// is absent.
struct TensorNumber {
  int number = -1;
};
using GivenOperand = std::variant<std::monostate, TensorNumber, bool, std::int64_t, double>;
using GivenOperands = std::vector<GivenOperand>;
using TensorNumbers = std::vector<int>;

enum class PaddingMode : std::uint8_t { explicit_padding, valid, same_upper, same_lower };

// How a convolution's tensors lie, by the letters of their axes (base/layout_name.h); empty: channels-first, the weight
// as the operator has it. data: N, C and spatial axes, perhaps in blocks of C. kernel: O, I and spatial axes. result:
// empty: as data.
struct GivenLayouts {
  std::string data = {};
  std::string kernel = {};
  std::string result = {};
};

// Lists of one entry count for every axis. kernel: empty, or what the weight must have.
struct GivenConvolution {
  std::vector<std::int64_t> kernel = {};
  std::vector<std::int64_t> stride = {1};
  std::vector<std::int64_t> dilation = {1};
  std::int64_t groups = 1;
  std::vector<Dim> pre_padding = {Dim(0)};
  std::vector<Dim> post_padding = {};  // empty: pre_padding
  PaddingMode mode = PaddingMode::explicit_padding;
  GivenLayouts layouts = {};
};
struct GivenDeconvolution : GivenConvolution {
  std::vector<Dim> output_padding = {};  // empty: 0
  std::vector<Dim> output_size = {};     // empty: what the others give; spatial sizes, or the whole shape
};

// What the body of a loop gives after each trip.
struct LoopTurn {
  GivenOperand again = {};  // absent: true
  GivenOperands carried = {};
  GivenOperands rows = {};
};

class NetworkBuilder {
 public:
  struct Settings {
    std::string name = "network";
    bool strongly_typed = false;  // operands of several dtypes are refused, not promoted
    std::string limits = {};      // of which engine the limits are kept as well (ops/limits.h); empty: of none
  };
  NetworkBuilder(const Registry& registry, Settings settings);

  const std::string& name() const { return settings_.name; }

  // A symbolic size may be given a range before an input has it. Error: it is in use already.
  Result<void> set_range(const std::string& symbol, DimRange range);
  // A number, a name, or an expression over names. `may_name`: names that are not there yet are new symbolic sizes.
  Result<Dim> size(std::string_view text, const std::string& layer, bool may_name = false);

  Result<int> add_input(std::string_view name, DType dtype, const std::vector<std::string>& sizes);
  // The elements are taken as they lie, and only read. `lent`: their memory is the caller's.
  Result<int> add_constant(Tensor tensor, std::string_view name, bool lent);
  Result<TensorNumbers> add_layer(std::string_view op, const GivenOperands& operands, Attributes attributes,
                                  std::string_view name);
  // x: (N, C, spatial...) or (C, spatial...); weight of the convolution (Cout, C/groups, k...), of the other
  // (C, Cout/groups, k...).
  Result<int> add_convolution(const GivenOperands& x_weight_bias, const GivenConvolution& given, std::string_view name);
  Result<int> add_deconvolution(const GivenOperands& x_weight_bias, const GivenDeconvolution& given,
                                std::string_view name);

  using Branch = std::function<Result<GivenOperands>()>;
  Result<TensorNumbers> add_if(const GivenOperand& condition, const Branch& then_branch, const Branch& else_branch,
                               std::string_view name);
  // `body` takes the iteration and the carried tensors. It is called again where a carried tensor changes its sizes.
  using LoopBody = std::function<Result<LoopTurn>(int iteration, const TensorNumbers& carried)>;
  Result<TensorNumbers> add_loop(const GivenOperand& trip_count, const GivenOperand& condition,
                                 const GivenOperands& carried, const LoopBody& body, std::string_view name);

  Result<void> set_name(int tensor, std::string_view name);
  Result<void> mark_output(int tensor, std::string_view name);

  // Floats are computed in this dtype until pop_precision. Error: the network is strongly typed.
  Result<void> push_precision(DType dtype);
  void pop_precision();

  const Type& type_of(int tensor) const;
  const std::string& name_of(int tensor) const;
  const Graph& graph() const { return *bodies_.front().graph; }

  // A copy of what was written, with the caller's sizes put in. Errors: no output, names that are not there.
  Result<ImportedModel> finish(const ImportOptions& options) const;

 private:
  struct Body {
    std::unique_ptr<Graph> graph;
    std::string layer;                                // that owns it; empty: the network itself
    std::unordered_map<const Value*, Value*> inside;  // outer value → what it is here
    std::vector<Value*> captured;                     // outer values that became inputs, in order
    std::set<std::string, std::less<>> symbols = {};  // born here
  };
  struct Entry {
    const Graph* graph = nullptr;  // null: of a body that came to nothing
    Value* value = nullptr;
    Type type = {};
    std::string name = {};
    std::string layer = {};  // that made it
  };
  struct Lent {
    const std::byte* first = nullptr;
    std::size_t size_bytes = 0;
  };
  // What a call has begun, to be taken back if it is refused.
  class Attempt;

  Graph& here() { return *bodies_.back().graph; }
  // The limits that were asked for are known, and the use keeps to them.
  Result<void> expect_known_limits() const;
  Result<void> keep_limits(std::string_view op, const Attributes& attributes,
                           const std::vector<Value*>& operands) const;
  Result<void> keep_limits(const Type& input) const;
  Result<std::string> layer_name(std::string_view wish, std::string_view op);
  Result<void> expect_free_tensor_name(std::string_view name) const;
  int enter(Value* value, std::string name, std::string layer);
  // Tensors from this number on that belong to bodies which are no more.
  void forget_bodies(std::size_t first);
  Result<Value*> value_of(int tensor, const std::string& layer);
  Value* capture(std::size_t level, Value* outer);
  Result<Node*> emit(std::string_view op, Attributes attributes, std::vector<Value*> operands, const std::string& layer,
                     std::vector<std::unique_ptr<Graph>> regions = {});
  Result<void> name_births(const OpDef& op, const Attributes& attributes, const std::string& layer);
  TensorNumbers enter_results(const Node& node, const std::string& layer);

  // types.cpp
  Result<std::vector<Value*>> settle_operands(const OpDef& op, const GivenOperands& given, const std::string& layer);
  Result<Value*> as_dtype(Value* value, DType dtype, const std::string& cast_name);
  Result<Value*> number_as(const GivenOperand& number, DType dtype, const std::string& layer,
                           const std::string& operand);

  // convolution.cpp
  Result<std::vector<Value*>> window_operands(std::string_view op, const GivenOperands& given,
                                              const std::string& layer);
  Result<int> finish_window(std::string_view op, Attributes attributes, std::vector<Value*> operands, bool unbatched,
                            const GivenLayouts& layouts, const std::string& layer);

  // layouts.cpp
  // The data and the weight as the operator has them.
  Result<void> undo_layouts(std::string_view op, const GivenConvolution& given, std::vector<Value*>& values,
                            const std::string& layer);
  Result<Value*> change_layout(Value* value, const std::string& from, const std::string& to, Dim channels,
                               const std::string& layer);

  // regions.cpp
  Result<void> run_body(const std::string& layer, const std::string& graph_name, const std::vector<Value*>& captured,
                        const std::function<Result<void>()>& write, Body& finished);
  Result<void> give(const GivenOperand& operand, const std::string& layer, const std::string& result);
  Result<Value*> scalar_of(const GivenOperand& given, DType dtype, const std::string& layer, const std::string& what);

  // finish.cpp
  Result<std::map<std::string, Dim, std::less<>>> caller_sizes(const ImportOptions& options) const;
  void name_weights(Graph& graph, std::set<std::string, std::less<>>& used) const;

  Settings settings_;
  const TargetLimits* limits_ = nullptr;  // null: none, or unknown
  std::vector<Body> bodies_;              // from the network to the body that is being written
  std::vector<Entry> entries_;
  std::map<std::string, std::string, std::less<>> layers_;  // name → operator
  std::map<std::string, int, std::less<>> counts_;          // of automatic names
  std::map<std::string, int, std::less<>> tensors_;         // names that were given → entry
  std::map<std::string, DimRange, std::less<>> symbols_;
  std::set<std::string, std::less<>> symbol_names_;       // all that were ever used
  std::map<std::string, Tensor, std::less<>> constants_;  // by the name of their node
  std::vector<std::string> constant_order_;
  std::vector<Lent> lent_;
  std::vector<std::pair<int, std::string>> outputs_;
  std::vector<DType> precisions_;
};

}  // namespace polyphase

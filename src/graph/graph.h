// The IR: a Graph is a list of Nodes in an order in which every operand comes before its use; Values carry types, sizes
// known as Dims (contents) and, late, layouts. Pure: no aliasing, no memory. Mutate only through Graph's methods; they
// keep users exact.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/layout.h"
#include "base/shape.h"
#include "base/tensor.h"
#include "ops/op.h"
#include "ops/registry.h"

namespace polyphase {

class Graph;
class Node;

// A tensor between nodes: a graph input, or result `index` of `producer`.
struct Value {
  std::string name;  // unique in its graph; a name from the model where there is one
  Type type;
  Contents contents;         // elements known as sizes (small integer tensors)
  Layout layout;             // unset until choose_layouts
  Node* producer = nullptr;  // null: a graph input
  int index = 0;
  std::vector<Node*> users;  // one entry per use by a node
};

// A use of an operator, possibly fused: {beginnings, anchor, endings}. Its meaning is that of its parts in order.
class Node {
 public:
  const std::string& name() const { return name_; }
  const std::vector<Part>& parts() const { return parts_; }
  std::size_t anchor() const { return anchor_; }
  const Part& anchor_part() const { return parts_[anchor_]; }
  const OpDef& op() const { return *parts_[anchor_].op; }                      // of the anchor
  const Attributes& attributes() const { return parts_[anchor_].attributes; }  // of the anchor, complete
  bool fused() const { return parts_.size() > 1; }
  bool is(std::string_view op_name) const { return !fused() && op().name == op_name; }
  bool anchors(std::string_view op_name) const { return op().name == op_name; }

  const std::vector<Value*>& inputs() const { return inputs_; }  // null: an absent optional operand
  Value* input(std::size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  // Operand i of the anchor (null: absent, or the running value of a beginning).
  Value* anchor_input(std::size_t i) const;
  const std::vector<std::unique_ptr<Value>>& outputs() const { return outputs_; }
  Value* output(std::size_t i = 0) const { return outputs_[i].get(); }
  const std::vector<std::unique_ptr<Graph>>& regions() const { return regions_; }
  // A constant node's tensor (op "constant"), else null. Also null for a weight that may be exchanged later.
  const Tensor* constant() const;
  // The tensor of a constant that may be exchanged later (its attribute `weight` names it), else null.
  const Tensor* weight() const;

 private:
  friend class Graph;
  std::string name_;
  std::vector<Part> parts_;
  std::size_t anchor_ = 0;
  std::vector<Value*> inputs_;
  std::vector<std::unique_ptr<Value>> outputs_;
  std::vector<std::unique_ptr<Graph>> regions_;
  std::list<std::unique_ptr<Node>>::iterator place_;
};

class Graph {
 public:
  explicit Graph(const Registry& registry) : registry_(&registry) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const Registry& registry() const { return *registry_; }
  std::string name = "main";
  const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  std::vector<Node*> node_list() const;  // a copy that stays valid while nodes come and go
  const std::vector<std::unique_ptr<Value>>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  // The names callers use for outputs (a value may be output twice, or be an input).
  const std::vector<std::string>& output_names() const { return output_names_; }
  std::vector<DimCheck>& checks() { return checks_; }
  const std::vector<DimCheck>& checks() const { return checks_; }

  Value* add_input(std::string_view value_name, Type type);
  void add_output(Value* value, std::string_view output_name);
  void set_output(std::size_t i, Value* value);

  // Adds a node before `before` (null: at the end): completes attributes, infers types and contents, names results
  // after `node_name`. On an Error nothing was added.
  Result<Node*> add(std::string_view op_name, Attributes attributes, std::vector<Value*> inputs,
                    std::string_view node_name = {}, Node* before = nullptr,
                    std::vector<std::unique_ptr<Graph>> regions = {});
  // The same, for rewrites that are right by construction: CHECKs instead of an Error, and returns result 0.
  Value* must_add(std::string_view op_name, Attributes attributes, std::vector<Value*> inputs,
                  std::string_view node_name = {}, Node* before = nullptr);
  Value* add_constant(Tensor tensor, std::string_view node_name = {}, Node* before = nullptr, std::string weight = {});
  // Adds a fused node as it stands.
  Result<Node*> add_parts(std::vector<Part> parts, std::size_t anchor, std::vector<Value*> inputs,
                          std::string_view node_name = {}, Node* before = nullptr,
                          std::vector<std::unique_ptr<Graph>> regions = {});
  // A region's captured operands and results are declared with add_input / add_output of that region's graph.

  void set_input(Node* node, std::size_t i, Value* value);
  // Replaces the anchor's attributes and infers the types again; they must stay compatible with the users.
  Result<void> set_attributes(Node* node, Attributes attributes);
  // Appends a part after the last one (an ending); operands refer to node->inputs() after `extra` were appended.
  Result<void> append_part(Node* node, Part part, const std::vector<Value*>& extra);
  Result<void> prepend_part(Node* node, Part part, const std::vector<Value*>& extra);
  // All users of `from`, and graph outputs, use `to` instead. The types must be equal in dtype and rank.
  void replace_uses(Value* from, Value* to);
  void erase(Node* node);  // no result may be in use
  void move_before(Node* node, Node* before);
  bool is_output(const Value* value) const;
  bool has_one_user(const Value* value) const { return value->users.size() == 1 && !is_output(value); }
  // Infers types and contents of every node again, in order (after input types changed, e.g. a symbol got a value).
  Result<void> infer_again();
  std::string fresh_name(std::string_view wish);
  // Gives the value the wished name, or the wish with a number behind it if another value has it.
  void rename(Value* value, std::string_view wish);

  void collect_symbols(std::map<std::string, DimRange, std::less<>>& into) const;
  // Symbols that nodes here and in regions give names to (bind, if, loop): sizes born from data.
  void collect_born(std::set<std::string, std::less<>>& into) const;

 private:
  Result<void> infer_node(Node* node);

  const Registry* registry_;
  std::list<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Value>> inputs_;
  std::vector<Value*> outputs_;
  std::vector<std::string> output_names_;
  std::vector<DimCheck> checks_;
  std::unordered_map<std::string, int> names_;
};

// Shape and contents rule of a whole (fused) node: the parts in order, each seeing the one before.
Result<std::vector<Type>> infer_parts(const std::vector<Part>& parts, const std::vector<OperandInfo>& inputs,
                                      std::vector<DimCheck>& checks,
                                      const std::vector<std::unique_ptr<Graph>>& regions);
// How the parts look to a shape rule: the node's operands as OperandInfo.
std::vector<OperandInfo> operand_infos(const std::vector<Value*>& values);

// Text form; parse reads it back exactly. Constants above `max_constant_elements` print as `elided`, which does not
// parse.
struct PrintOptions {
  std::int64_t max_constant_elements = INT64_MAX;
  bool layouts = true;
};
std::string print(const Graph& graph, const PrintOptions& options = {});
// The line of one node in it, without its regions.
std::string print_node(const Node& node, const PrintOptions& options = {});
Result<std::unique_ptr<Graph>> parse_graph(std::string_view text, const Registry& registry);
// Checks every invariant: order, users, types against the shape rules, names, regions. The Error names the node.
Result<void> verify(const Graph& graph);
// A deep copy (constants shared).
std::unique_ptr<Graph> clone(const Graph& graph);
// Runs the graph with the reference loops, part by part, each rounding once. Inputs by position. `observe` sees each
// value as it is computed or comes in, those of regions that run too.
using ValueObserver = std::function<void(const Value&, const Tensor&)>;
Result<std::vector<Tensor>> interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                                      const ValueObserver& observe = {});

}  // namespace polyphase

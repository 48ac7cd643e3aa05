// What passes ask of a graph, and how they replace one piece of it by another.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace polyphase {

// Runs f on the graphs that nodes own, innermost first, then on `graph` itself. Whether any call changed something.
template <typename F>
bool in_every_graph(Graph& graph, F&& f) {
  bool changed = false;
  for (Node* node : graph.node_list()) {
    for (const auto& region : node->regions()) changed = in_every_graph(*region, f) || changed;
  }
  return f(graph) || changed;
}

// Runs f(graph, node) on every node that is there at the start, in every graph. Whether any call changed something.
template <typename F>
bool at_every_node(Graph& graph, F&& f) {
  return in_every_graph(graph, [&](Graph& each) {
    bool changed = false;
    for (Node* node : each.node_list()) changed = f(each, node) || changed;
    return changed;
  });
}

// The tensor of a value that a constant node gives; else null, also for weights that may be exchanged later.
const Tensor* constant_of(const Value* value);
// Follows from constants alone, through any number of nodes: the same at every run.
bool is_constant(const Value* value);
// The element that a constant repeats (a scalar, a filled tensor). Reads values.
std::optional<double> repeated_element(const Value* value);
// The whole constant as doubles, in row-major order. Reads values.
std::vector<double> elements_of(const TensorView& view);
inline std::vector<double> elements_of(const Tensor& tensor) { return elements_of(tensor.view()); }
// Every element of a constant equals `element`.
bool is_filled_with(const Value* value, double element);

// The producer of `value` if it is an unfused `op_name`; else null.
Node* produced_by(const Value* value, std::string_view op_name);
// The same, if nobody else uses the value, so that the producer may be changed or vanish.
Node* produced_for_one(const Graph& graph, const Value* value, std::string_view op_name);

// x of a value that is x times x, element by element: a square, a product with itself, a power of two; else null.
Value* base_of_square(const Value* value);

// The sizes of the axes [first, last), multiplied.
Dim product_of(const Shape& shape, int first, int last);
// Every axis behind the first two has one element.
bool is_one_pixel(const Shape& shape);

// A convolution of either direction, fused or not.
bool is_convolution(const Node& node);
// An unfused cast of an f16 or bf16 value to f32.
bool widens(const Node& node);
// What alone reads the result of an unfused pad by elements of its operand; null if `node` is no such pad.
Node* reader_behind_pad(const Graph& graph, const Node& node);

// What the value's elements take at these sizes; of sizes that are not among them, those of 2^20 elements.
double bytes_of(const Value& value, const DimBindings& sizes);

// Gives names to sizes that only a run tells: a bind, or an if or loop with sizes born in it.
bool gives_names(const Node& node);

// Erases the node if nothing uses its results, and then its operands' producers in the same way. A node that gives
// names to sizes stays.
void erase_unused(Graph& graph, Node* node);

// One replacement: nodes are added before `place`; commit puts the new value where the old one was, or, where that is
// impossible, leaves the graph as it was. A failed add makes all later ones and the commit fail.
class Rewrite {
 public:
  // Added nodes bear the name of `place`'s node.
  Rewrite(Graph& graph, Node* place) : Rewrite(graph, place, place->name()) {}
  Rewrite(Graph& graph, Node* place, std::string node_name);
  Rewrite(const Rewrite&) = delete;
  Rewrite& operator=(const Rewrite&) = delete;
  ~Rewrite();

  Value* add(std::string_view op_name, Attributes attributes, std::vector<Value*> inputs);
  Value* add_parts(std::vector<Part> parts, std::size_t anchor, std::vector<Value*> inputs);
  Value* constant(Tensor tensor);
  // A constant of rank 0.
  Value* scalar(DType dtype, double value);
  Value* reshape(Value* value, Shape shape);
  Value* expand(Value* value, const Shape& shape);  // the value itself if it has that shape
  // `size` elements along each axis from `start` on.
  Value* slice(Value* value, std::vector<Dim> start, std::vector<Dim> size);
  Value* cast(Value* value, DType to);  // the value itself if it has that type

  bool ok() const { return ok_; }
  // Replaces `from` by `to` everywhere; `to` takes its name and contents, and what becomes unused goes. False, and
  // nothing happened, if an add failed or the types differ.
  bool commit(Value* from, Value* to);

 private:
  Graph& graph_;
  Node* place_;
  std::string name_;
  std::vector<Node*> added_;
  std::size_t checks_before_;
  bool ok_ = true;
  bool committed_ = false;
};

}  // namespace polyphase

// Replacement of pieces of a graph, and the questions that patterns ask.
#include "passes/rewrite.h"

#include <algorithm>
#include <array>

namespace polyphase {

const Tensor* constant_of(const Value* value) {
  return value == nullptr || value->producer == nullptr ? nullptr : value->producer->constant();
}

namespace {

constexpr std::size_t most_nodes = 256;  // passes build short chains over constants; odd graphs shall not cost much

bool follows_from_sizes(const Node& node) {
  for (const Part& part : node.parts()) {
    std::map<std::string, DimRange, std::less<>> symbols;
    part.attributes.collect_symbols(symbols);
    if (!symbols.empty()) return true;
  }
  return false;
}

}  // namespace

bool is_constant(const Value* value) {
  if (value == nullptr || value->producer == nullptr) return false;
  std::vector<const Node*> pending{value->producer};
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const Node& node = *pending[i];
    if (node.is("constant")) continue;
    if (!node.regions().empty() || node.inputs().empty() || i >= most_nodes || follows_from_sizes(node)) return false;
    for (const Value* input : node.inputs()) {
      if (input == nullptr) continue;
      if (input->producer == nullptr) return false;
      if (std::find(pending.begin(), pending.end(), input->producer) == pending.end())
        pending.push_back(input->producer);
    }
  }
  return true;
}

std::vector<double> elements_of(const TensorView& view) {
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(view.element_count()));
  for_each_index<1>(view.size_span(), {view.strides.data()}, [&](const std::array<std::int64_t, 1>& at) {
    out.push_back(load_double(view.data + at[0] * static_cast<std::int64_t>(size_bytes(view.dtype)), view.dtype));
  });
  return out;
}

std::optional<double> repeated_element(const Value* value) {
  const Tensor* tensor = constant_of(value);
  if (tensor == nullptr || tensor->view().empty()) return std::nullopt;
  const TensorView& view = tensor->view();
  const double first = load_double(view.data, view.dtype);
  const auto element = static_cast<std::int64_t>(size_bytes(view.dtype));
  if (view.is_row_major()) {  // the usual, and weights end the search at their second element
    for (std::int64_t i = 0; i < view.element_count(); ++i) {
      if (load_double(view.data + i * element, view.dtype) != first) return std::nullopt;
    }
    return first;
  }
  bool same = true;
  for_each_index<1>(view.size_span(), {view.strides.data()}, [&](const std::array<std::int64_t, 1>& at) {
    same = same && load_double(view.data + at[0] * element, view.dtype) == first;
  });
  if (!same) return std::nullopt;
  return first;
}

bool is_filled_with(const Value* value, double element) {
  const auto found = repeated_element(value);
  return found.has_value() && *found == element;
}

Node* produced_by(const Value* value, std::string_view op_name) {
  if (value == nullptr || value->producer == nullptr || !value->producer->is(op_name)) return nullptr;
  return value->producer;
}

Node* produced_for_one(const Graph& graph, const Value* value, std::string_view op_name) {
  Node* node = produced_by(value, op_name);
  return node != nullptr && graph.has_one_user(value) ? node : nullptr;
}

Value* base_of_square(const Value* value) {
  if (const Node* square = produced_by(value, "square")) return square->input(0);
  if (const Node* product = produced_by(value, "mul"))
    return product->input(0) == product->input(1) ? product->input(0) : nullptr;
  const Node* power = produced_by(value, "pow");
  const bool squares = power != nullptr && is_filled_with(power->input(1), 2) && power->input(0)->type == value->type;
  return squares ? power->input(0) : nullptr;
}

Dim product_of(const Shape& shape, int first, int last) {
  Dim out = 1;
  for (int axis = first; axis < last; ++axis) out = out * shape[axis];
  return out;
}

bool is_one_pixel(const Shape& shape) {
  return std::all_of(shape.begin() + 2, shape.end(), [](const Dim& dim) { return dim == 1; });
}

bool is_convolution(const Node& node) { return node.anchors("conv") || node.anchors("conv_transpose"); }

bool widens(const Node& node) {
  return !node.fused() && node.is("cast") && is_narrow(node.input(0)->type.dtype) &&
         node.output()->type.dtype == DType::f32;
}

Node* reader_behind_pad(const Graph& graph, const Node& node) {
  if (node.fused() || !node.is("pad") || node.attributes().get<std::string>("mode") == "constant") return nullptr;
  return graph.has_one_user(node.output()) ? node.output()->users.front() : nullptr;
}

double bytes_of(const Value& value, const DimBindings& sizes) {
  const auto count = value.type.shape.element_count().evaluate(sizes);
  return static_cast<double>(count.value_or(1 << 20)) * static_cast<double>(size_bytes(value.type.dtype));
}

bool gives_names(const Node& node) {
  if (node.anchors("bind")) return true;
  return !node.regions().empty() && !node.attributes().get<std::vector<Dim>>("born").empty();
}

void erase_unused(Graph& graph, Node* node) {
  std::vector<Node*> pending{node};
  while (!pending.empty()) {
    Node* next = pending.back();
    pending.pop_back();
    const bool used = std::any_of(next->outputs().begin(), next->outputs().end(), [&](const auto& output) {
      return !output->users.empty() || graph.is_output(output.get());
    });
    if (used || gives_names(*next)) continue;
    for (Value* input : next->inputs()) {
      if (input == nullptr || input->producer == nullptr) continue;
      if (std::find(pending.begin(), pending.end(), input->producer) == pending.end())
        pending.push_back(input->producer);
    }
    pending.erase(std::remove(pending.begin(), pending.end(), next), pending.end());
    graph.erase(next);
  }
}

Rewrite::Rewrite(Graph& graph, Node* place, std::string node_name)
    : graph_(graph), place_(place), name_(std::move(node_name)), checks_before_(graph.checks().size()) {}

Rewrite::~Rewrite() {
  if (committed_) return;
  for (auto node = added_.rbegin(); node != added_.rend(); ++node) graph_.erase(*node);
  graph_.checks().resize(checks_before_);
}

Value* Rewrite::add(std::string_view op_name, Attributes attributes, std::vector<Value*> inputs) {
  if (!ok_) return nullptr;
  auto node = graph_.add(op_name, std::move(attributes), std::move(inputs), name_, place_);
  ok_ = node.ok();
  if (!ok_) return nullptr;
  added_.push_back(*node);
  return added_.back()->output();
}

Value* Rewrite::add_parts(std::vector<Part> parts, std::size_t anchor, std::vector<Value*> inputs) {
  if (!ok_) return nullptr;
  auto node = graph_.add_parts(std::move(parts), anchor, std::move(inputs), name_, place_);
  ok_ = node.ok();
  if (!ok_) return nullptr;
  added_.push_back(*node);
  return added_.back()->output();
}

Value* Rewrite::constant(Tensor tensor) { return add("constant", Attributes({{"value", std::move(tensor)}}), {}); }

Value* Rewrite::scalar(DType dtype, double value) {
  return constant(Tensor::from_values(dtype, {}, std::array{value}));
}

Value* Rewrite::reshape(Value* value, Shape shape) {
  if (!ok_ || value->type.shape == shape) return value;
  return add("reshape", Attributes({{"shape", shape.dims()}}), {value});
}

Value* Rewrite::expand(Value* value, const Shape& shape) {
  if (!ok_ || value->type.shape == shape) return value;
  return add("expand", Attributes({{"shape", shape.dims()}}), {value});
}

Value* Rewrite::slice(Value* value, std::vector<Dim> start, std::vector<Dim> size) {
  std::vector<std::int64_t> step(size.size(), 1);
  return add("slice", Attributes({{"start", std::move(start)}, {"size", std::move(size)}, {"step", std::move(step)}}),
             {value});
}

Value* Rewrite::cast(Value* value, DType to) {
  if (!ok_ || value->type.dtype == to) return value;
  return add("cast", Attributes({{"to", to}}), {value});
}

bool Rewrite::commit(Value* from, Value* to) {
  if (!ok_ || from == to || !(from->type == to->type)) return false;
  committed_ = true;
  if (from->contents.has_value() && !to->contents.has_value()) to->contents = from->contents;
  const std::string name = from->name;
  Node* before = from->producer;
  graph_.replace_uses(from, to);
  if (before != nullptr) erase_unused(graph_, before);
  const bool is_new = std::any_of(added_.begin(), added_.end(), [&](const Node* node) { return node == to->producer; });
  if (is_new) graph_.rename(to, name);
  return true;
}

}  // namespace polyphase

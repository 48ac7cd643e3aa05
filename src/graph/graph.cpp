// Graph's edits: the only code that touches nodes, values and their users.
#include "graph/graph.h"

#include <algorithm>

#include "base/check.h"
#include "graph/hold_rule.h"

namespace polyphase {

Value* Node::anchor_input(std::size_t i) const {
  const Part& part = parts_[anchor_];
  if (i >= part.operands.size() || part.operands[i] < 0) return nullptr;
  return inputs_[static_cast<std::size_t>(part.operands[i])];
}

const Tensor* Node::constant() const {
  return is("constant") && attributes().get<std::string>("weight").empty() ? &attributes().get<Tensor>("value")
                                                                           : nullptr;
}

const Tensor* Node::weight() const {
  return is("constant") && constant() == nullptr ? &attributes().get<Tensor>("value") : nullptr;
}

std::vector<OperandInfo> operand_infos(const std::vector<Value*>& values) {
  std::vector<OperandInfo> infos(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == nullptr) continue;
    infos[i] = {&values[i]->type, values[i]->contents.has_value() ? &*values[i]->contents : nullptr};
  }
  return infos;
}

namespace {

std::vector<OperandInfo> operands_of(const Part& part, const std::vector<OperandInfo>& inputs,
                                     const std::vector<Type>& running) {
  std::vector<OperandInfo> infos(part.operands.size());
  for (std::size_t i = 0; i < part.operands.size(); ++i) {
    const int operand = part.operands[i];
    if (operand == Part::running) infos[i].type = &running.at(0);
    if (operand >= 0) infos[i] = inputs.at(static_cast<std::size_t>(operand));
  }
  return infos;
}

}  // namespace

Result<std::vector<Type>> infer_parts(const std::vector<Part>& parts, const std::vector<OperandInfo>& inputs,
                                      std::vector<DimCheck>& checks,
                                      const std::vector<std::unique_ptr<Graph>>& regions) {
  std::vector<RegionTypes> region_types(regions.size());
  for (std::size_t i = 0; i < regions.size(); ++i) {
    for (const auto& input : regions[i]->inputs()) region_types[i].inputs.push_back(input->type);
    for (const Value* output : regions[i]->outputs()) region_types[i].results.push_back(output->type);
  }
  std::vector<Type> running;
  for (const Part& part : parts) {
    const std::vector<OperandInfo> infos = operands_of(part, inputs, running);
    const std::size_t demands = checks.size();
    TRY(std::vector<Type> types, infer_types(*part.op, part.attributes, infos, checks, region_types));
    if (part.op->custom != nullptr)
      TRY_VOID(hold_rule_to_numbers(part, infos, types, std::span(checks).subspan(demands)));
    running = std::move(types);
  }
  return running;
}

std::vector<Node*> Graph::node_list() const {
  std::vector<Node*> out;
  out.reserve(nodes_.size());
  for (const auto& node : nodes_) out.push_back(node.get());
  return out;
}

std::string Graph::fresh_name(std::string_view wish) {
  std::string base = wish.empty() ? "v" : std::string(wish);
  int& count = names_[base];
  if (count++ == 0) return base;
  for (;;) {
    std::string candidate = base + "." + std::to_string(names_[base]++ - 1);
    if (names_.emplace(candidate, 1).second) return candidate;
  }
}

void Graph::rename(Value* value, std::string_view wish) {
  if (value->name == wish) return;
  names_.erase(value->name);
  value->name = fresh_name(wish);
}

Value* Graph::add_input(std::string_view value_name, Type type) {
  auto value = std::make_unique<Value>();
  value->name = fresh_name(value_name);
  value->type = std::move(type);
  value->index = static_cast<int>(inputs_.size());
  inputs_.push_back(std::move(value));
  return inputs_.back().get();
}

void Graph::add_output(Value* value, std::string_view output_name) {
  CHECK(value != nullptr);
  outputs_.push_back(value);
  output_names_.emplace_back(output_name);
}

void Graph::set_output(std::size_t i, Value* value) { outputs_.at(i) = value; }

Result<Node*> Graph::add(std::string_view op_name, Attributes attributes, std::vector<Value*> inputs,
                         std::string_view node_name, Node* before, std::vector<std::unique_ptr<Graph>> regions) {
  const OpDef* op = registry_->find(op_name);
  if (op == nullptr)
    return Error{ErrorCode::unsupported, "there is no operator '" + std::string(op_name) + "'.",
                 "docs/operators.md lists the operators."};
  auto completed = op->complete(std::move(attributes));
  if (!completed.ok()) return std::move(completed).error().at_node(node_name);
  Part part{op, std::move(completed).value(), {}};
  for (std::size_t i = 0; i < inputs.size(); ++i)
    part.operands.push_back(inputs[i] == nullptr ? Part::absent : static_cast<int>(i));
  return add_parts({std::move(part)}, 0, std::move(inputs), node_name, before, std::move(regions));
}

Result<Node*> Graph::add_parts(std::vector<Part> parts, std::size_t anchor, std::vector<Value*> inputs,
                               std::string_view node_name, Node* before, std::vector<std::unique_ptr<Graph>> regions) {
  const OpDef& op = *parts.at(anchor).op;
  if (static_cast<int>(regions.size()) != op.region_count) {
    return Error{ErrorCode::invalid_model,
                 "operator " + op.name + " owns " + std::to_string(op.region_count) + " graphs, found " +
                     std::to_string(regions.size()) + ".",
                 "docs/operators.md says what the operator takes."}
        .at_node(node_name);
  }
  std::vector<DimCheck> checks = checks_;
  const std::vector<OperandInfo> infos = operand_infos(inputs);
  auto types = infer_parts(parts, infos, checks, regions);
  if (!types.ok()) return std::move(types).error().at_node(node_name);
  auto owned = std::make_unique<Node>();
  Node* node = owned.get();
  node->name_ = std::string(node_name);
  node->parts_ = std::move(parts);
  node->anchor_ = anchor;
  node->inputs_ = std::move(inputs);
  node->regions_ = std::move(regions);
  for (std::size_t i = 0; i < types->size(); ++i) {
    auto value = std::make_unique<Value>();
    value->name = fresh_name(node_name.empty() ? std::string_view(node->op().name) : node_name);
    value->type = (*types)[i];
    value->producer = node;
    value->index = static_cast<int>(i);
    node->outputs_.push_back(std::move(value));
  }
  if (!node->fused() && types->size() == 1) {
    node->output()->contents = infer_contents(node->op(), node->attributes(), infos, types->front());
  }
  // Where memory runs out, nothing was added: what may throw comes before what others see.
  for (Value* input : node->inputs_) {
    if (input == nullptr) continue;
    std::vector<Node*>& users = input->users;
    const std::size_t needed = users.size() + node->inputs_.size();
    if (users.capacity() < needed) users.reserve(std::max(needed, 2 * users.size()));
  }
  node->place_ = nodes_.insert(before == nullptr ? nodes_.end() : before->place_, std::move(owned));
  checks_ = std::move(checks);
  for (Value* input : node->inputs_) {
    if (input != nullptr) input->users.push_back(node);
  }
  return node;
}

Value* Graph::must_add(std::string_view op_name, Attributes attributes, std::vector<Value*> inputs,
                       std::string_view node_name, Node* before) {
  auto node = add(op_name, std::move(attributes), std::move(inputs), node_name, before);
  if (!node.ok()) check_failed(__FILE__, __LINE__, "must_add", node.error().text().c_str());
  return node.value()->output();
}

Value* Graph::add_constant(Tensor tensor, std::string_view node_name, Node* before, std::string weight) {
  return must_add("constant", Attributes({{"value", std::move(tensor)}, {"weight", std::move(weight)}}), {}, node_name,
                  before);
}

namespace {

void drop_one_user(Value* value, const Node* node) {
  const auto place = std::find(value->users.begin(), value->users.end(), node);
  CHECK(place != value->users.end());
  value->users.erase(place);
}

}  // namespace

void Graph::set_input(Node* node, std::size_t i, Value* value) {
  Value*& slot = node->inputs_.at(i);
  if (slot != nullptr) drop_one_user(slot, node);
  slot = value;
  if (value != nullptr) value->users.push_back(node);
}

Result<void> Graph::infer_node(Node* node) {
  const std::vector<OperandInfo> infos = operand_infos(node->inputs_);
  auto types = infer_parts(node->parts_, infos, checks_, node->regions_);
  if (!types.ok()) return std::move(types).error().at_node(node->name_);
  CHECK(types->size() == node->outputs_.size());
  for (std::size_t i = 0; i < types->size(); ++i) node->outputs_[i]->type = (*types)[i];
  if (!node->fused() && types->size() == 1) {
    node->output()->contents = infer_contents(node->op(), node->attributes(), infos, types->front());
  }
  return {};
}

Result<void> Graph::infer_again() {
  checks_.clear();
  for (const auto& node : nodes_) TRY_VOID(infer_node(node.get()));
  return {};
}

Result<void> Graph::set_attributes(Node* node, Attributes attributes) {
  TRY(Attributes completed, node->op().complete(std::move(attributes)));
  std::swap(node->parts_[node->anchor_].attributes, completed);
  auto inferred = infer_node(node);
  if (!inferred.ok()) std::swap(node->parts_[node->anchor_].attributes, completed);
  return inferred;
}

Result<void> Graph::append_part(Node* node, Part part, const std::vector<Value*>& extra) {
  for (Value* value : extra) {
    node->inputs_.push_back(value);
    value->users.push_back(node);
  }
  node->parts_.push_back(std::move(part));
  return infer_node(node);
}

Result<void> Graph::prepend_part(Node* node, Part part, const std::vector<Value*>& extra) {
  for (Value* value : extra) {
    node->inputs_.push_back(value);
    value->users.push_back(node);
  }
  node->parts_.insert(node->parts_.begin(), std::move(part));
  ++node->anchor_;
  node->parts_[1].operands.at(0) = Part::running;
  return infer_node(node);
}

void Graph::replace_uses(Value* from, Value* to) {
  CHECK(from != to && from->type.dtype == to->type.dtype && from->type.shape.rank() == to->type.shape.rank());
  for (Node* user : from->users) {
    for (Value*& slot : user->inputs_) {
      if (slot == from) {
        slot = to;
        to->users.push_back(user);
      }
    }
  }
  from->users.clear();
  std::replace(outputs_.begin(), outputs_.end(), from, to);
}

void Graph::erase(Node* node) {
  for (const auto& output : node->outputs_) CHECK(output->users.empty() && !is_output(output.get()));
  for (Value* input : node->inputs_) {
    if (input != nullptr) drop_one_user(input, node);
  }
  for (const auto& output : node->outputs_) names_.erase(output->name);
  nodes_.erase(node->place_);
}

void Graph::move_before(Node* node, Node* before) {
  nodes_.splice(before == nullptr ? nodes_.end() : before->place_, nodes_, node->place_);
}

bool Graph::is_output(const Value* value) const {
  return std::find(outputs_.begin(), outputs_.end(), value) != outputs_.end();
}

void Graph::collect_born(std::set<std::string, std::less<>>& into) const {
  for (const auto& node : nodes_) {
    for (const std::string_view attribute : {"symbols", "entering", "born"}) {
      if (!node->anchors("bind") && node->regions().empty()) continue;
      if (!node->attributes().has(attribute)) continue;
      for (const Dim& dim : node->attributes().get<std::vector<Dim>>(attribute)) {
        if (dim.is_symbol()) into.insert(dim.symbol_name());
      }
    }
    for (const auto& region : node->regions()) region->collect_born(into);
  }
}

void Graph::collect_symbols(std::map<std::string, DimRange, std::less<>>& into) const {
  const auto from_shape = [&](const Shape& shape) {
    for (const Dim& dim : shape) dim.collect_symbols(into);
  };
  for (const auto& input : inputs_) from_shape(input->type.shape);
  for (const auto& node : nodes_) {
    for (const Part& part : node->parts()) part.attributes.collect_symbols(into);
    for (const auto& output : node->outputs()) from_shape(output->type.shape);
    for (const auto& region : node->regions()) region->collect_symbols(into);
  }
}

}  // namespace polyphase

// What was written becomes an imported model: a copy with the caller's sizes in it.
#include "import/network/builder.h"

#include "base/check.h"
#include "import/network/refuse.h"

namespace polyphase {
namespace {

using SizeMap = std::map<std::string, Dim, std::less<>>;

Shape with_sizes(const Shape& shape, const SizeMap& sizes) {
  Shape out;
  for (const Dim& dim : shape) out.push_back(dim.substitute(sizes));
  return out;
}

// A rule that the sizes break which the caller has given.
Error with_other_sizes(Error error) {
  if (error.hint.empty()) error.hint = "(It is so with the sizes that were given to compile: give others.)";
  return error;
}

// Copies a graph with other sizes, its bodies too. `names`: of values that have other names than in the graph.
struct Copier {
  const SizeMap& sizes;
  const std::unordered_map<const Value*, std::string>& names;
  std::unordered_map<const Value*, Value*> twin = {};

  const std::string& name_of(const Value* value) const {
    const auto found = names.find(value);
    return found == names.end() ? value->name : found->second;
  }

  Result<std::unique_ptr<Graph>> copy(const Graph& graph) {
    auto out = std::make_unique<Graph>(graph.registry());
    out->name = graph.name;
    for (const auto& input : graph.inputs())
      twin[input.get()] =
          out->add_input(name_of(input.get()), {input->type.dtype, with_sizes(input->type.shape, sizes)});
    for (const auto& node : graph.nodes()) TRY_VOID(copy_node(*node, *out));
    const DimDemands demand(out->checks());
    for (const DimCheck& check : graph.checks()) {
      auto held =
          demand.require(check.left.substitute(sizes), check.relation, check.right.substitute(sizes), check.why);
      if (!held.ok()) return with_other_sizes(std::move(held).error());
    }
    for (std::size_t i = 0; i < graph.outputs().size(); ++i)
      out->add_output(twin.at(graph.outputs()[i]), graph.output_names()[i]);
    return out;
  }

  Result<void> copy_node(const Node& node, Graph& out) {
    std::vector<Value*> operands;
    for (Value* input : node.inputs()) operands.push_back(input == nullptr ? nullptr : twin.at(input));
    std::vector<std::unique_ptr<Graph>> regions;
    for (const auto& region : node.regions()) {
      TRY(regions.emplace_back(), copy(*region));
    }
    auto added = out.add(node.op().name, node.attributes().substitute(sizes), std::move(operands), node.name(), nullptr,
                         std::move(regions));
    if (!added.ok()) return with_other_sizes(std::move(added).error());
    Node* made = *added;
    for (std::size_t i = 0; i < node.outputs().size(); ++i) {
      out.rename(made->output(i), name_of(node.output(i)));
      twin[node.output(i)] = made->output(i);
    }
    return {};
  }
};

}  // namespace

// What CompileOptions::shapes and dims make of the network's symbolic sizes.
Result<SizeMap> NetworkBuilder::caller_sizes(const ImportOptions& options) const {
  SizeMap out;
  std::string names;
  std::map<std::string_view, const Value*> inputs;
  for (const Entry& entry : entries_) {
    if (entry.graph != &graph() || entry.value->producer != nullptr) continue;
    inputs.emplace(entry.name, entry.value);
    names += (names.empty() ? "'" : ", '") + entry.name + "'";
  }
  for (const auto& [name, given] : options.shapes) {
    const auto found = inputs.find(name);
    if (found == inputs.end()) {
      return refused_call("the network has no input '" + name + "' to give a shape to.",
                          "Its inputs are: " + names + ".");
    }
    const Shape& own = found->second->type.shape;
    if (own.rank() != static_cast<int>(given.size())) {
      return refused_call("the shape given for input '" + name + "' has " + std::to_string(given.size()) +
                              " sizes, but the network's has " + std::to_string(own.rank()) + ".",
                          "Give one size per axis: numbers, or names for sizes that stay open.");
    }
    for (int axis = 0; axis < own.rank(); ++axis) {
      if (own[axis].is_symbol()) out.emplace(own[axis].symbol_name(), given[static_cast<std::size_t>(axis)]);
    }
  }
  for (const auto& [name, given] : options.shapes) {
    const Shape& own = inputs.at(name)->type.shape;
    for (int axis = 0; axis < own.rank(); ++axis) {
      const Dim& wanted = given[static_cast<std::size_t>(axis)];
      const Dim found = own[axis].substitute(out);
      if (found == wanted) continue;
      return refused_call("the shape given for input '" + name + "' has " + wanted.text() + " on axis " +
                              std::to_string(axis) + ", where the network has " + own[axis].text() +
                              (own[axis].is_constant() ? "." : ", which is " + found.text() + "."),
                          "Give one value for each symbolic size, and leave numbers as they are.");
    }
  }
  std::map<std::string, DimRange, std::less<>> own;
  for (const auto& input : graph().inputs()) {
    for (const Dim& dim : input->type.shape) dim.collect_symbols(own);
  }
  for (const auto& [name, range] : options.dims) {
    if (own.count(name) != 0 && out.count(name) == 0) {
      out.emplace(name, range.low == range.high ? Dim(range.low) : Dim::symbol(name, range));
    } else if (options.shape_names.count(name) == 0) {
      std::string known;
      for (const auto& [one, its] : own) known += (known.empty() ? "" : ", ") + one;
      return refused_call("no input of the network has a size named '" + name + "'.",
                          known.empty() ? "All sizes of its inputs are fixed." : "Its open sizes are: " + known + ".");
    }
  }
  return out;
}

// Constants that may be exchanged later bear their names, in bodies too.
void NetworkBuilder::name_weights(Graph& graph, std::set<std::string, std::less<>>& used) const {
  for (Node* node : graph.node_list()) {
    for (const auto& region : node->regions()) name_weights(*region, used);
    const Tensor* tensor = node->constant();
    if (tensor == nullptr || constants_.count(node->name()) == 0 || node->output()->users.empty()) continue;
    used.insert(node->name());
    if (!may_be_exchanged(*tensor)) continue;
    const auto done = graph.set_attributes(node, Attributes({{"value", *tensor}, {"weight", node->name()}}));
    CHECK(done.ok(), "the tensor stays");
  }
}

Result<ImportedModel> NetworkBuilder::finish(const ImportOptions& options) const {
  if (bodies_.size() > 1) {
    return refused_call("the network is compiled inside of the body of layer '" + bodies_.back().layer + "'.",
                        "Compile it when the body is finished.");
  }
  if (outputs_.empty())
    return refused_call("the network has no output.", "Mark the tensors that it gives: mark_output.");
  TRY(const SizeMap sizes, caller_sizes(options));
  ImportedModel out;
  out.name = settings_.name;
  out.producer = "polyphase network";
  std::unordered_map<const Value*, std::string> names;
  for (const auto& [name, number] : tensors_) names.emplace(entries_[static_cast<std::size_t>(number)].value, name);
  Copier copier{sizes, names};
  TRY(out.graph, copier.copy(graph()));
  for (const auto& [tensor, name] : outputs_)
    out.graph->add_output(copier.twin.at(entries_[static_cast<std::size_t>(tensor)].value), name);
  for (const auto& [name, number] : tensors_) {
    const Entry& entry = entries_[static_cast<std::size_t>(number)];
    if (entry.graph == nullptr) continue;
    const auto found = copier.twin.find(entry.value);
    if (found != copier.twin.end()) out.tensors.push_back({name, entry.graph->name, found->second->name});
  }
  for (const Lent& lent : lent_) out.lent.emplace_back(lent.first, lent.size_bytes);
  if (!options.refittable) return out;
  std::set<std::string, std::less<>> used;
  name_weights(*out.graph, used);
  for (const std::string& name : constant_order_) {
    out.weights.push_back({{name}, constants_.at(name), used.count(name) != 0, false, {}});
  }
  fix_weights(*out.graph, {}, out.weights);
  return out;
}

}  // namespace polyphase

// Names, inputs, constants and plain layers.
#include "import/network/builder.h"

#include <algorithm>

#include "base/check.h"
#include "import/network/attempt.h"
#include "import/network/refuse.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

constexpr std::size_t longest_name = 1000;

}  // namespace

NetworkBuilder::NetworkBuilder(const Registry& registry, Settings settings)
    : settings_(std::move(settings)), limits_(find_limits(settings_.limits)) {
  bodies_.push_back({std::make_unique<Graph>(registry), {}, {}, {}, {}});
}

// ---------------------------------------------------------------- names

Result<std::string> NetworkBuilder::layer_name(std::string_view wish, std::string_view op) {
  TRY_VOID(expect_known_limits());
  if (wish.empty()) {
    for (;;) {
      std::string name = std::string(op) + "_" + std::to_string(++counts_[std::string(op)]);
      if (layers_.emplace(name, op).second) return name;
    }
  }
  const std::string name(wish);
  if (name.size() > longest_name || wire::printable(name) != name) {
    return refused_call("the name of a layer is '" + wire::printable(name, 60) +
                            "': it is too long, or holds a character that cannot be printed.",
                        "Use names of at most 1000 printable characters.");
  }
  const auto [found, fresh] = layers_.emplace(name, op);
  if (!fresh) {
    return refused_call("two layers are named '" + name + "': one of operator " + found->second +
                            " that is there, and this one of operator " + std::string(op) + ".",
                        "Give each layer a name of its own, or none.");
  }
  return name;
}

Result<void> NetworkBuilder::expect_free_tensor_name(std::string_view name) const {
  if (name.empty() || name.size() > longest_name || wire::printable(std::string(name)) != name) {
    return refused_call("the name of a tensor is '" + wire::printable(std::string(name), 60) +
                            "': it is empty, too long, or holds a character that cannot be printed.",
                        "Use names of 1 to 1000 printable characters.");
  }
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return {};
  const Entry& other = entries_[static_cast<std::size_t>(found->second)];
  return refused_call(
      "two tensors are named '" + std::string(name) + "': one of " + other.layer + ", which is there, and this one.",
      "Give each tensor a name of its own.");
}

Result<void> NetworkBuilder::set_name(int tensor, std::string_view name) {
  Entry& entry = entries_.at(static_cast<std::size_t>(tensor));
  if (entry.name == name) return {};
  TRY_VOID(expect_free_tensor_name(name));
  std::string own(name);
  tensors_[own] = tensor;
  tensors_.erase(entry.name);
  entry.name = std::move(own);
  return {};
}

Result<void> NetworkBuilder::mark_output(int tensor, std::string_view name) {
  const Entry& entry = entries_.at(static_cast<std::size_t>(tensor));
  if (entry.graph != bodies_.front().graph.get()) {
    return refused_call(
        "tensor '" + entry.name + "' of " + entry.layer + " cannot be an output of the network: it belongs to a body.",
        "Give it as a result of the body, and mark that.");
  }
  std::string wish(name.empty() ? entry.name : name);
  for (const auto& [other, taken] : outputs_) {
    if (taken != wish) continue;
    const Entry& first = entries_[static_cast<std::size_t>(other)];
    return refused_call("two outputs are named '" + wish + "': tensor '" + first.name + "' of " + first.layer +
                            ", and tensor '" + entry.name + "' of " + entry.layer + ".",
                        "Give each output a name of its own.");
  }
  outputs_.emplace_back(tensor, std::move(wish));
  return {};
}

const Type& NetworkBuilder::type_of(int tensor) const { return entries_.at(static_cast<std::size_t>(tensor)).type; }
const std::string& NetworkBuilder::name_of(int tensor) const {
  return entries_.at(static_cast<std::size_t>(tensor)).name;
}

int NetworkBuilder::enter(Value* value, std::string name, std::string layer) {
  const int number = static_cast<int>(entries_.size());
  std::string own = name;
  for (int again = 2; tensors_.count(own) != 0; ++again) own = name + "." + std::to_string(again);
  entries_.push_back({bodies_.back().graph.get(), value, value->type, own, std::move(layer)});
  tensors_[std::move(own)] = number;
  return number;
}

void NetworkBuilder::forget_bodies(std::size_t first) {
  for (std::size_t i = first; i < entries_.size(); ++i) {
    const bool is_there = std::any_of(bodies_.begin(), bodies_.end(),
                                      [&](const Body& body) { return body.graph.get() == entries_[i].graph; });
    if (is_there) continue;
    entries_[i].graph = nullptr;
    entries_[i].value = nullptr;
  }
}

// ---------------------------------------------------------------- sizes

Result<void> NetworkBuilder::set_range(const std::string& symbol, DimRange range) {
  const auto parsed = parse_dim(symbol);
  if (!parsed.ok() || !parsed->is_symbol() || range.low < 0 || range.low > range.high) {
    return refused_call("the size '" + wire::printable(symbol, 60) + "' is given the range " +
                            std::to_string(range.low) + ".." + std::to_string(range.high) + ".",
                        "Give a name such as H, and low and high with 0 <= low <= high.");
  }
  if (symbol_names_.count(symbol) != 0) {
    return refused_call("the size '" + symbol + "' is in use already; its range cannot change any more.",
                        "Give ranges before the inputs that have them, or with the options of compile.");
  }
  symbols_[symbol] = range;
  symbol_names_.insert(symbol);
  return {};
}

Result<Dim> NetworkBuilder::size(std::string_view text, const std::string& layer, bool may_name) {
  const std::string shown = wire::printable(std::string(text), 60);
  auto parsed = parse_dim(text, symbols_);
  if (!parsed.ok() || parsed->overflowed()) {
    return refused_call("the size '" + shown + "' is no number, no name and no expression over names.",
                        "Write sizes as 3, H or 2*H + 1.")
        .at_node(layer);
  }
  std::map<std::string, DimRange, std::less<>> used;
  parsed->collect_symbols(used);
  for (const auto& [name, range] : used) {
    if (symbols_.count(name) != 0) continue;
    if (may_name) {
      symbols_[name] = range;
      symbol_names_.insert(name);
      continue;
    }
    std::string known;
    for (const auto& [one, its] : symbols_) known += (known.empty() ? "" : ", ") + one;
    return refused_call(
               "the size '" + shown + "' is written with '" + name + "', which is no size of this network.",
               known.empty() ? "All sizes of its inputs are numbers." : "Its symbolic sizes are: " + known + ".")
        .at_node(layer);
  }
  return parsed;
}

// ---------------------------------------------------------------- limits of others

Result<void> NetworkBuilder::expect_known_limits() const {
  if (settings_.limits.empty() || limits_ != nullptr) return {};
  std::string known;
  for (const TargetLimits& one : target_limits()) known += (known.empty() ? "" : ", ") + std::string(one.target);
  return refused_call("limits is '" + wire::printable(settings_.limits, 60) + "'; there are none of that name.",
                      "Limits are known of: " + known + ".");
}

namespace {

Result<void> within(const TargetLimits& limits, const LimitedUse& use) {
  std::string found;
  const TargetLimit* broken = limits.broken_by(use, found);
  if (broken == nullptr) return {};
  return refused_call(std::string(limits.title) + " refuses this (" + std::string(broken->name) +
                          "): " + std::string(broken->rule) + ", and " + found + ".",
                      std::string(broken->rewrite));
}

}  // namespace

Result<void> NetworkBuilder::keep_limits(std::string_view op, const Attributes& attributes,
                                         const std::vector<Value*>& operands) const {
  if (limits_ == nullptr) return {};
  const auto complete = graph().registry().at(op).complete(attributes);
  if (!complete.ok()) return {};  // the operator's own rule says why
  std::vector<const Type*> types;
  for (const Value* value : operands) types.push_back(value == nullptr ? nullptr : &value->type);
  for (const OperandSpec& spec : graph().registry().at(op).inputs) {
    const auto i = static_cast<std::size_t>(&spec - graph().registry().at(op).inputs.data());
    if (!spec.optional && !spec.variadic && (i >= types.size() || types[i] == nullptr)) return {};
  }
  return within(*limits_, {op, *complete, types});
}

Result<void> NetworkBuilder::keep_limits(const Type& input) const {
  if (limits_ == nullptr) return {};
  const Attributes none;
  const Type* const types[] = {&input};
  return within(*limits_, {"input", none, types});
}

// ---------------------------------------------------------------- inputs and constants

Result<int> NetworkBuilder::add_input(std::string_view name, DType dtype, const std::vector<std::string>& sizes) {
  const std::string what = "input '" + wire::printable(std::string(name), 60) + "'";
  TRY_VOID(expect_known_limits());
  TRY_VOID(expect_free_tensor_name(name));
  if (bodies_.size() > 1)
    return refused_call(what + " is added inside of a body.", "Add it before: bodies read what is outside of them.");
  if (static_cast<int>(dtype) >= dtype_count)
    return refused_call(what + " has an unknown dtype.", "Use a value of DType.");
  if (sizes.size() > max_rank) {
    return refused_call(
        what + " has rank " + std::to_string(sizes.size()) + "; the highest rank is " + std::to_string(max_rank) + ".",
        "Use fewer axes.");
  }
  Type type{dtype, {}};
  for (const std::string& text : sizes) {
    TRY(Dim dim, size(text, std::string(name), true));
    if (dim.range().high < 0) return refused_call(what + " has the size " + dim.text() + ".", "Sizes are 0 or more.");
    type.shape.push_back(std::move(dim));
  }
  if (type.shape.element_count().overflowed())
    return refused_call(what + " has the shape " + type.shape.text() + ", beyond 64-bit arithmetic.",
                        "Use smaller sizes.");
  auto kept = keep_limits(type);
  if (!kept.ok()) return std::move(kept).error().at_node(name);
  Value* value = here().add_input(name, std::move(type));
  return enter(value, std::string(name), "input '" + std::string(name) + "'");
}

Result<int> NetworkBuilder::add_constant(Tensor tensor, std::string_view name, bool lent) {
  TRY(const std::string layer, layer_name(name, "constant"));
  if (!name.empty()) {
    auto free = expect_free_tensor_name(layer);
    if (!free.ok()) {
      layers_.erase(layer);
      return std::move(free).error();
    }
  }
  if (lent && !tensor.view().empty()) {
    lent_.push_back(
        {tensor.view().data, static_cast<std::size_t>(tensor.view().extent()) * size_bytes(tensor.dtype())});
  }
  // Constants belong to the network, wherever they are added: bodies make their own of it.
  Value* value = bodies_.front().graph->add_constant(tensor, layer);
  if (constants_.insert_or_assign(layer, std::move(tensor)).second) constant_order_.push_back(layer);
  const int number = enter(value, layer, "constant '" + layer + "'");
  entries_.back().graph = bodies_.front().graph.get();
  return number;
}

// ---------------------------------------------------------------- layers

Value* NetworkBuilder::capture(std::size_t level, Value* outer) {
  Body& body = bodies_[level];
  const auto found = body.inside.find(outer);
  if (found != body.inside.end()) return found->second;
  Value* inner = nullptr;
  const Tensor* constant = outer->producer != nullptr ? outer->producer->constant() : nullptr;
  if (constant != nullptr) {
    inner = body.graph->add_constant(*constant, outer->producer->name());
  } else if (outer->contents.has_value() && outer->type.dtype == DType::i64 && outer->type.shape.rank() <= 1) {
    inner = body.graph->must_add(
        "dims", Attributes({{"values", *outer->contents}, {"scalar", outer->type.shape.rank() == 0}}), {}, outer->name);
  } else {
    if (body.captured.capacity() == body.captured.size()) body.captured.reserve(2 * body.captured.size() + 8);
    inner = body.graph->add_input(outer->name, outer->type);
    body.captured.push_back(outer);
  }
  body.inside.emplace(outer, inner);
  return inner;
}

Result<Value*> NetworkBuilder::value_of(int tensor, const std::string& layer) {
  const Entry& entry = entries_.at(static_cast<std::size_t>(tensor));
  for (std::size_t level = 0; level < bodies_.size(); ++level) {
    if (bodies_[level].graph.get() != entry.graph) continue;
    Value* value = entry.value;
    for (std::size_t inner = level + 1; inner < bodies_.size(); ++inner) value = capture(inner, value);
    return value;
  }
  return refused_call("the operand is tensor '" + entry.name + "' of " + entry.layer +
                          ", which belongs to a body that is finished.",
                      "Give it as a result of the body, and use that.")
      .at_node(layer);
}

Result<Node*> NetworkBuilder::emit(std::string_view op, Attributes attributes, std::vector<Value*> operands,
                                   const std::string& layer, std::vector<std::unique_ptr<Graph>> regions) {
  auto kept = keep_limits(op, attributes, operands);
  if (!kept.ok()) return std::move(kept).error().at_node(layer);
  auto node = here().add(op, std::move(attributes), std::move(operands), layer, nullptr, std::move(regions));
  if (!node.ok()) return with_advice(std::move(node).error(), op, layer);
  return node;
}

// `bind` gives names to numbers; they must be new.
Result<void> NetworkBuilder::name_births(const OpDef& op, const Attributes& attributes, const std::string& layer) {
  if (op.name != "bind") return {};
  for (const Dim& dim : attributes.get<std::vector<Dim>>("symbols")) {
    std::map<std::string, DimRange, std::less<>> used;
    dim.collect_symbols(used);
    for (const auto& [name, range] : used) {
      if (!symbol_names_.insert(name).second) {
        return refused_call("the size '" + name + "' has its meaning already.", "Bind numbers to new names.")
            .at_node(layer);
      }
      symbols_[name] = range;
      bodies_.back().symbols.insert(name);
    }
  }
  return {};
}

TensorNumbers NetworkBuilder::enter_results(const Node& node, const std::string& layer) {
  const std::string words = "layer '" + layer + "'";
  TensorNumbers out;
  const auto& results = node.op().outputs;
  for (std::size_t i = 0; i < node.outputs().size(); ++i) {
    std::string name = layer;
    if (node.outputs().size() > 1)
      name += ":" + (i < results.size() && results.size() > 1 ? results[i].name : std::to_string(i));
    out.push_back(enter(node.output(i), std::move(name), words));
  }
  return out;
}

Result<TensorNumbers> NetworkBuilder::add_layer(std::string_view op_name, const GivenOperands& operands,
                                                Attributes attributes, std::string_view name) {
  const OpDef* op = here().registry().find(op_name);
  if (op == nullptr) {
    return refused_call("there is no operator '" + wire::printable(std::string(op_name), 60) + "'.",
                        "docs/operators.md lists the operators.");
  }
  if (op->region_count > 0 || op->name == "constant") {
    return refused_call("operator " + op->name + " is not added as a plain layer.",
                        "Use add_constant, add_if and add_loop.");
  }
  TRY(const std::string layer, layer_name(name, op_name));
  Attempt attempt(*this, layer);
  TRY(std::vector<Value*> values, settle_operands(*op, operands, layer));
  auto complete = op->complete(std::move(attributes));
  if (!complete.ok()) return std::move(complete).error().at_node(layer);
  TRY(Node * node, emit(op_name, *complete, std::move(values), layer));
  TRY_VOID(name_births(*op, *complete, layer));
  attempt.succeed();
  return enter_results(*node, layer);
}

}  // namespace polyphase

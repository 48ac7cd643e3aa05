// Finds along which sizes a network may be run piece by piece: every operator's rule (ops/cut.h), in the order of the
// graph, once to learn where pieces must begin, once more with a piece that begins and ends so.
#include <algorithm>
#include <unordered_map>

#include "engine/cuts.h"
#include "lower/lower.h"

namespace polyphase {
namespace {

constexpr std::int64_t first_length = 2 * 1441440;            // divides by most strides
constexpr std::int64_t least_length = std::int64_t{1} << 20;  // a piece in which no end reaches the other
constexpr std::int64_t most_ratio = std::int64_t{1} << 16;
constexpr std::int64_t most_spoiled = std::int64_t{1} << 18;

class CutFinder {
 public:
  CutFinder(const Graph& graph, std::string symbol, DimRange range) : graph_(graph), range_(range) {
    out_.symbol = std::move(symbol);
  }

  EngineCut find() {
    take_inputs();
    length_ = first_length;
    walk();
    if (out_.refusal.empty() && demands_.step > CutContext::most_step) {
      refuse(nullptr, "pieces would have to begin at multiples of more than " + std::to_string(CutContext::most_step));
    }
    if (!out_.refusal.empty()) demands_.step = 1;
    length_ = ceil_div(least_length, demands_.step) * demands_.step;
    if (out_.refusal.empty()) walk();
    out_.step = demands_.step;
    if (out_.refusal.empty()) check_growth();
    for (const Value* value : graph_.outputs()) out_.outputs.push_back(state_of(value));
    out_.needs = std::move(demands_.needs);
    if (out_.refusal.empty()) return std::move(out_);
    EngineCut refused;
    refused.symbol = out_.symbol;
    refused.node = out_.node;
    refused.refusal = out_.refusal;
    return refused;
  }

 private:
  void refuse(const Node* node, std::string why) {
    if (!out_.refusal.empty()) return;
    out_.refusal = std::move(why);
    if (node != nullptr) out_.node = node->name();
  }

  bool varies(const Dim& dim) const {
    std::map<std::string, DimRange, std::less<>> symbols;
    dim.collect_symbols(symbols);
    return symbols.find(out_.symbol) != symbols.end();
  }

  CutState state_of(const Value* value) const {
    const auto found = states_.find(value);
    return found == states_.end() ? CutState() : found->second;
  }

  void take_inputs() {
    const Dim symbol = Dim::symbol(out_.symbol, range_);
    for (const auto& input : graph_.inputs()) {
      CutState state;
      const Shape& shape = input->type.shape;
      for (int axis = 0; axis < shape.rank(); ++axis) {
        if (!varies(shape[axis])) continue;
        if (state.is_cut()) {
          refuse(nullptr, "input '" + input->name + "' has that size on two axes: give them names of their own");
        }
        state.axis = axis;
        while (!(shape[axis] == symbol * Dim(state.up)) && state.up < 64) ++state.up;
        if (!(shape[axis] == symbol * Dim(state.up)))
          refuse(nullptr, "input '" + input->name + "' has the size " + shape[axis].text() + ", no multiple of it");
      }
      states_[input.get()] = state;
      out_.inputs.push_back(state);
    }
  }

  void walk() {
    demands_.needs.clear();
    for (const auto& node : graph_.nodes()) {
      if (!out_.refusal.empty()) return;
      if (is_involved(*node)) take(*node);
    }
  }

  bool is_involved(const Node& node) const {
    for (const Value* input : node.inputs()) {
      if (input != nullptr && state_of(input).is_cut()) return true;
    }
    std::map<std::string, DimRange, std::less<>> symbols;
    for (const Part& part : node.parts()) part.attributes.collect_symbols(symbols);
    for (const auto& region : node.regions()) region->collect_symbols(symbols);
    return symbols.find(out_.symbol) != symbols.end();
  }

  void take(const Node& node) {
    CutState running;
    std::vector<Type> running_types;
    for (const Part& part : node.parts()) {
      std::vector<CutContext::Operand> operands;
      std::vector<OperandInfo> infos;
      for (const int index : part.operands) {
        const Value* value = index >= 0 ? node.inputs()[static_cast<std::size_t>(index)] : nullptr;
        CutContext::Operand operand;
        if (index == Part::running) {
          operand = {&running_types.front(), running};
        } else if (value != nullptr) {
          operand = {&value->type, state_of(value)};
        }
        operands.push_back(operand);
        infos.push_back({operand.type, value != nullptr && value->contents ? &*value->contents : nullptr});
      }
      std::vector<DimCheck> checks;
      Result<std::vector<Type>> types = {std::vector<Type>{}};
      if (node.fused()) {
        types = infer_types(*part.op, part.attributes, infos, checks);
        CHECK(types.ok(), "a verified graph");
      } else {
        for (const auto& output : node.outputs()) types->push_back(output->type);
      }
      const CutAnswer answer = ask(node, part, operands, *types);
      if (!answer.refusal.empty()) {
        refuse(&node, part.op->name + " " + answer.refusal);
        return;
      }
      running = answer.state;
      running_types = std::move(*types);
    }
    for (const auto& output : node.outputs()) states_[output.get()] = running;
  }

  CutAnswer ask(const Node& node, const Part& part, std::span<const CutContext::Operand> operands,
                const std::vector<Type>& types) {
    if (std::none_of(operands.begin(), operands.end(), [](const auto& operand) { return operand.state.is_cut(); })) {
      std::map<std::string, DimRange, std::less<>> symbols;
      part.attributes.collect_symbols(symbols);
      const bool is_same = symbols.find(out_.symbol) == symbols.end() && node.regions().empty();
      if (is_same) return CutState();
      // Only one value all over a size can be had in pieces without an operand in pieces.
      if (part.op->cut != cut_expand) return "makes numbers from the whole size";
    }
    if (part.op->custom != nullptr) return "is a plugin's operator, and those do not say how far they read";
    if (part.op->cut == nullptr || types.empty()) return "may read the whole of what lies in pieces";
    const CutContext context(part.attributes, operands, types.front(), out_.symbol, length_, demands_);
    CutAnswer answer = part.op->cut(context);
    if (!answer.refusal.empty()) return answer;
    answer.refusal = limits(answer.state, types.front());
    if (answer.state.is_cut()) context.align(answer.state, 1);
    return answer;
  }

  std::string limits(const CutState& state, const Type& type) const {
    for (int axis = 0; axis < type.shape.rank(); ++axis) {
      if (axis != state.axis && varies(type.shape[axis]))
        return "has the size in its result's shape, " + type.shape.text() + ", beside the axis that lies in pieces";
    }
    if (!state.is_cut()) return {};
    if (state.up > most_ratio || state.down > most_ratio) return "changes the number of places too much";
    if (state.low > most_spoiled || state.high > most_spoiled) return "reads too far";
    return {};
  }

  // Places keep their distance from the end of the whole: sizes grow by whole steps.
  void check_growth() {
    const std::map<std::string, Dim, std::less<>> longer{
        {out_.symbol, Dim::symbol(out_.symbol, range_) + Dim(out_.step)}};
    for (const auto& node : graph_.nodes()) {
      for (const auto& value : node->outputs()) {
        const CutState state = state_of(value.get());
        if (!state.is_cut()) continue;
        const Dim& size = value->type.shape[state.axis];
        const std::int64_t growth = out_.step * state.up / state.down;
        if (size.substitute(longer) == size + Dim(growth)) continue;
        DimBindings bindings;
        const auto at = [&](std::int64_t length) {
          bindings[out_.symbol] = length;
          return size.evaluate(bindings);
        };
        const auto once = at(length_);
        const auto more = at(length_ + out_.step);
        if (!once.has_value() || !more.has_value() || *more - *once != growth) {
          refuse(node.get(), "its size " + size.text() + " does not grow in step with " + out_.symbol);
          return;
        }
        demands_.needs.push_back({size, 0, growth, out_.step});
      }
    }
  }

  const Graph& graph_;
  const DimRange range_;
  EngineCut out_;
  std::int64_t length_ = first_length;
  CutContext::Demands demands_;
  std::unordered_map<const Value*, CutState> states_;
};

}  // namespace

std::vector<EngineCut> find_cuts(const Graph& graph) {
  std::map<std::string, DimRange, std::less<>> symbols;
  for (const auto& input : graph.inputs()) {
    for (const Dim& size : input->type.shape) size.collect_symbols(symbols);
  }
  std::vector<EngineCut> out;
  for (const auto& [symbol, range] : symbols) out.push_back(CutFinder(graph, symbol, range).find());
  return out;
}

}  // namespace polyphase

// resolve_sizes: what the model itself says about its sizes is put to use everywhere.
//
//   symbol H = 0..                      symbol H = 1..
//   check 3 <= H + 2            →       check 3 <= H + 2
//
//   %d = dims() values=[(H - 1)//2]     every K is (H - 1)//2
//   %k = bind(%d) symbols=[K]   →
//
// A check that bounds one size from below narrows its range; so quotients and maxima over it become plainer, and what
// the importer could only leave to run time (a bind) may turn out to be known. A size that breaks the check is refused
// as before. First in the pipeline: all that compares sizes gains.
#include <algorithm>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

using Sizes = std::map<std::string, Dim, std::less<>>;

void substitute(Shape& shape, const Sizes& sizes) {
  for (int axis = 0; axis < shape.rank(); ++axis) shape[axis] = shape[axis].substitute(sizes);
}

// False if a shape rule refuses the new sizes; then the graph is of no more use.
bool substitute(Graph& graph, const Sizes& sizes) {
  for (const auto& input : graph.inputs()) {
    substitute(input->type.shape, sizes);
    if (!input->contents.has_value()) continue;
    for (Dim& dim : *input->contents) dim = dim.substitute(sizes);
  }
  for (DimCheck& check : graph.checks()) {
    check.left = check.left.substitute(sizes);
    check.right = check.right.substitute(sizes);
  }
  for (Node* node : graph.node_list()) {
    for (const auto& region : node->regions()) {
      if (!substitute(*region, sizes)) return false;
    }
    // A name that is being replaced is no longer given.
    if (node->is("bind") && !(node->attributes().substitute(sizes) == node->attributes())) {
      graph.replace_uses(node->output(), node->input(0));
      graph.erase(node);
      continue;
    }
    if (!graph.set_attributes(node, node->attributes().substitute(sizes)).ok()) return false;
  }
  auto& checks = graph.checks();
  const auto is_constant_truth = [](const DimCheck& check) {
    return check.left.is_constant() && check.right.is_constant() &&
           holds(check.relation, check.left.value(), check.right.value());
  };
  checks.erase(std::remove_if(checks.begin(), checks.end(), is_constant_truth), checks.end());
  return true;
}

// The least value of the one symbol in `difference` that makes it >= 0, if that is a*symbol + b with a > 0.
std::optional<std::pair<std::string, std::int64_t>> lower_bound_of(const Dim& difference) {
  std::map<std::string, DimRange, std::less<>> symbols;
  difference.collect_symbols(symbols);
  if (symbols.size() != 1) return std::nullopt;
  const auto& [name, range] = *symbols.begin();
  const auto at_zero = difference.substitute({{name, Dim(0)}}).constant();
  const auto at_one = difference.substitute({{name, Dim(1)}}).constant();
  if (!at_zero.has_value() || !at_one.has_value() || *at_one <= *at_zero) return std::nullopt;
  const std::int64_t slope = *at_one - *at_zero;
  if (!(difference == Dim(slope) * Dim::symbol(name, range) + Dim(*at_zero))) return std::nullopt;
  return std::pair(name, ceil_div(-*at_zero, slope));
}

Sizes narrower_symbols(const Graph& graph) {
  std::map<std::string, DimRange, std::less<>> symbols;
  for (const auto& input : graph.inputs()) {
    for (const Dim& dim : input->type.shape) dim.collect_symbols(symbols);
  }
  Sizes out;
  for (const DimCheck& check : graph.checks()) {
    if (check.relation != DimCheck::Relation::less_equal) continue;
    const auto bound = lower_bound_of(check.right - check.left);
    if (!bound.has_value()) continue;
    const auto known = symbols.find(bound->first);
    if (known == symbols.end() || bound->second <= known->second.low || bound->second > known->second.high) continue;
    known->second.low = bound->second;
    out[bound->first] = Dim::symbol(bound->first, known->second);
  }
  return out;
}

// Symbols of binds whose operand is known as sizes after all.
Sizes known_symbols(const Graph& graph) {
  Sizes out;
  for (const auto& node : graph.nodes()) {
    if (!node->is("bind") || !node->input(0)->contents.has_value() || node->input(0)->type.dtype != DType::i64)
      continue;
    const auto& symbols = node->attributes().get<std::vector<Dim>>("symbols");
    for (std::size_t i = 0; i < symbols.size(); ++i) out[symbols[i].symbol_name()] = (*node->input(0)->contents)[i];
    return out;  // one at a time: the next may be known by it
  }
  return out;
}

// Tried on a copy: a rule may find out that these sizes can never be legal, and say so when the model runs.
bool try_substitute(Graph& graph, const Sizes& sizes) {
  return !sizes.empty() && substitute(*clone(graph), sizes) && substitute(graph, sizes);
}

}  // namespace

bool resolve_sizes(Graph& graph, const Target&) {
  constexpr int most_rounds = 1000;
  bool changed = try_substitute(graph, narrower_symbols(graph));
  for (int round = 0; round < most_rounds && try_substitute(graph, known_symbols(graph)); ++round) changed = true;
  return changed;
}

}  // namespace polyphase

// Sizes of the results of branches and loops.
#include "import/compose/regions.h"

#include <algorithm>
#include <map>

#include "import/compose/emitter.h"

namespace polyphase {
namespace {

Error broken_region(std::string message) {
  return Error{ErrorCode::invalid_model, std::move(message), "Export the model again with a current exporter."};
}

}  // namespace

bool mentions(const Dim& dim, const Symbols& symbols) {
  std::map<std::string, DimRange, std::less<>> used;
  dim.collect_symbols(used);
  return std::any_of(used.begin(), used.end(), [&](const auto& one) { return symbols.count(one.first) != 0; });
}

// Sizes that the branches do not share get names that the node gives when it has run.
Result<Attributes> attributes_of_branches(const Graph& then_graph, const Graph& else_graph, const FreshSize& fresh) {
  std::vector<Dim> born;
  std::vector<std::int64_t> born_at;
  std::int64_t axes = 0;
  Symbols inside;
  then_graph.collect_born(inside);
  else_graph.collect_born(inside);
  for (std::size_t i = 0; i < then_graph.outputs().size(); ++i) {
    const Type& a = then_graph.outputs()[i]->type;
    const Type& b = else_graph.outputs()[i]->type;
    if (a.dtype != b.dtype)
      return broken_region("the branches give " + a.text() + " and " + b.text() + " as result " + std::to_string(i) +
                           "; they must have one dtype.");
    if (a.shape.rank() != b.shape.rank()) {
      return lacking("the branches give " + a.text() + " and " + b.text() + " as result " + std::to_string(i) +
                         ": they differ in rank, and only a run would tell which.",
                     "Make both branches give tensors of one rank (Unsqueeze, Reshape), or fix the condition.");
    }
    for (int axis = 0; axis < a.shape.rank(); ++axis, ++axes) {
      if (a.shape[axis] == b.shape[axis] && !mentions(a.shape[axis], inside)) continue;
      born.push_back(fresh());
      born_at.push_back(axes);
    }
  }
  return Attributes({{"born", born}, {"born_at", born_at}});
}

Result<bool> free_changing_sizes(const Graph& body, std::vector<Type>& types, std::vector<Dim>& entering,
                                 const FreshSize& fresh) {
  bool changed = false;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Type& after = body.outputs()[i + 1]->type;
    const std::string who = "carried value " + std::to_string(i);
    if (after.dtype != types[i].dtype)
      return broken_region(who + " is " + types[i].text() + " before a trip and " + after.text() + " after it.");
    if (after.shape.rank() != types[i].shape.rank()) {
      return lacking(who + " is " + types[i].text() + " before a trip and " + after.text() +
                         " after it: its rank changes from trip to trip.",
                     "Keep the rank (Unsqueeze before the loop), or unroll the loop.");
    }
    for (int axis = 0; axis < after.shape.rank(); ++axis) {
      const Dim before = types[i].shape[axis];
      if (before == after.shape[axis] || std::find(entering.begin(), entering.end(), before) != entering.end())
        continue;
      entering.push_back(fresh());
      types[i].shape[axis] = entering.back();
      changed = true;
    }
  }
  return changed;
}

Attributes attributes_of_loop(const Graph& body, const std::vector<Type>& types, const std::vector<Dim>& entering,
                              bool counted, const FreshSize& fresh) {
  std::vector<Dim> born;
  std::vector<std::int64_t> born_at;
  std::int64_t axes = 0;
  const auto give_name = [&](bool needed) {
    if (needed) {
      born.push_back(fresh());
      born_at.push_back(axes);
    }
    ++axes;
  };
  for (const Type& type : types) {
    for (const Dim& dim : type.shape) give_name(std::find(entering.begin(), entering.end(), dim) != entering.end());
  }
  Symbols inside;
  body.collect_born(inside);
  for (const Dim& dim : entering) inside.insert(dim.symbol_name());
  for (std::size_t i = types.size() + 1; i < body.outputs().size(); ++i) {
    give_name(!counted);
    for (const Dim& dim : body.outputs()[i]->type.shape) give_name(mentions(dim, inside));
  }
  return Attributes({{"carried", static_cast<std::int64_t>(types.size())},
                     {"entering", entering},
                     {"born", born},
                     {"born_at", born_at}});
}

}  // namespace polyphase

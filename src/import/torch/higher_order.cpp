// Nodes that own graphs: cond, while_loop, scan and map become `if` and `loop`; what only sets a mode is inlined.
//
// A graph takes all that it uses as operands. Weights and sizes are not passed in; each region makes its own.
#include <algorithm>

#include "import/compose/composer.h"
#include "import/compose/regions.h"
#include "import/compose/symbol_name.h"
#include "import/torch/higher_order.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

constexpr int max_nested_graphs = 60;

}  // namespace

bool is_missing(const ProgramMeanings& results) {
  return std::any_of(results.begin(), results.end(), [](const ProgramMeaning& one) { return one.missing; });
}

Result<bool> ProgramImporter::translate_higher_order(const ProgramGraph& graph, const ProgramNode& node,
                                                     const std::string& name) {
  constexpr std::string_view prefix = "torch.ops.higher_order.";
  if (node.target.rfind(prefix, 0) != 0) return false;
  const std::string_view kind = std::string_view(node.target).substr(prefix.size());
  const bool sets_a_mode = kind == "wrap_with_set_grad_enabled" || kind == "wrap_with_autocast";
  const std::size_t graphs = kind == "cond" || kind == "while_loop" ? 2 : 1;
  if (!sets_a_mode && kind != "cond" && kind != "while_loop" && kind != "scan" && kind != "map_impl") return false;
  if (depth_ >= max_nested_graphs) return lacking("graphs lie too deep in one another.", "Flatten the module.");
  TRY(const ProgramCall call, call_of(graph, node, name));
  if (call.graphs.size() != graphs || call.lists.empty())
    return broken_program("it needs " + std::to_string(graphs) + " graphs and its operands.");
  if (call.missing) {
    TRY_VOID(define_missing(node));
    return true;
  }
  ++depth_;
  Result<ProgramMeanings> results = [&]() -> Result<ProgramMeanings> {
    if (kind == "cond") return branch(call, name);
    if (kind == "while_loop") return while_loop(call, name);
    if (kind == "scan") return scan(call, name, call.lists.front().size());
    if (kind == "map_impl") return scan(call, name, 0);
    const bool casts =
        kind == "wrap_with_autocast" && node.inputs.size() > 2 && node.inputs[2].second.items.front().integer != 0;
    return enter(*call.graphs.front(), call.all(), *scope_->graph, scope_->autocast || casts);
  }();
  --depth_;
  if (!results.ok()) return std::move(results).error();
  if (is_missing(*results)) {
    TRY_VOID(define_missing(node));
    return true;
  }
  TRY_VOID(define_call(graph, node, *results));
  return true;
}

Result<ProgramCall> ProgramImporter::call_of(const ProgramGraph& graph, const ProgramNode& node,
                                             const std::string& name) {
  ProgramCall call;
  Emitter emitter(*scope_->graph, name);
  bool single = false;  // the last list is of operands that stand alone
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ProgramArgument& argument = node.inputs[i].second;
    if (!argument.list && argument.items.front().kind == ProgramItem::Kind::graph) {
      call.graphs.push_back(argument.items.front().graph);
      continue;
    }
    if (call.graphs.empty()) {
      const bool decides = i == 0 && node.target == "torch.ops.higher_order.cond";
      if (!decides || argument.list) continue;
      const ProgramItem& item = argument.items.front();
      if (item.kind == ProgramItem::Kind::tensor) {
        TRY(call.condition, value_of(item.text, call.missing));
      } else {
        TRY(call.condition, condition_of(graph, item, emitter));
      }
      continue;
    }
    if (argument.list || !single) call.lists.emplace_back();
    single = !argument.list;
    for (const ProgramItem& item : argument.items) {
      if (item.kind == ProgramItem::Kind::none) continue;
      ProgramMeaning meaning;
      if (item.kind == ProgramItem::Kind::tensor) {
        TRY(meaning.value, value_of(item.text, call.missing));
        meaning.storage = scope_->names.at(item.text).storage;
      } else {
        TRY(const AtenScalar number, scalar_of(graph, item, emitter));
        if (number.kind == AtenScalar::Kind::real) return lacking("an operand is a float.", flatten_advice);
        meaning.value = emitter.sizes_as_data({number.size}, true);
      }
      call.lists.back().push_back(std::move(meaning));
    }
  }
  if (!call.graphs.empty() && call.lists.empty()) call.lists.emplace_back();
  return call;
}

// A condition on sizes as a bool.
Result<Value*> ProgramImporter::condition_of(const ProgramGraph& graph, const ProgramItem& item, Emitter& emitter) {
  Composer c(emitter);
  if (item.kind == ProgramItem::Kind::boolean) return emitter.scalar(DType::boolean, static_cast<double>(item.integer));
  const auto condition = graph.conditions.find(item.text);
  if (item.kind != ProgramItem::Kind::symbol || condition == graph.conditions.end())
    return broken_program("the condition must be a bool, found " + wire::quoted_name(item.text) + ".");
  const SymbolMeaning meaning = [this](std::string_view symbol) { return meaning_of_symbol(symbol); };
  TRY(const std::vector<SymbolicRelation> relations, parse_condition(condition->second, meaning));
  Value* all = nullptr;
  for (const SymbolicRelation& one : relations) {
    const bool equal = one.relation == DimCheck::Relation::equal;
    Value* holds = nullptr;
    if (one.left.is_constant() && one.right.is_constant()) {
      const std::int64_t left = one.left.value();
      const std::int64_t right = one.right.value();
      holds = emitter.scalar(DType::boolean, (equal ? left == right : left <= right) ? 1 : 0);
    } else {
      holds = c.op(equal ? "equal" : "less_equal", {c.dims({one.left}, true), c.dims({one.right}, true)});
    }
    all = all == nullptr ? holds : c.op("and", {all, holds});
  }
  return c.result(all == nullptr ? emitter.scalar(DType::boolean, 1) : all);
}

Result<void> ProgramImporter::define_call(const ProgramGraph& graph, const ProgramNode& node,
                                          const ProgramMeanings& results) {
  std::size_t i = 0;
  for (const ProgramArgument& output : node.outputs) {
    for (const ProgramItem& item : output.items) {
      if (i >= results.size()) return broken_program("the graph inside gives too few results.");
      const ProgramMeaning& result = results[i++];
      if (item.kind == ProgramItem::Kind::none) continue;
      if (item.kind != ProgramItem::Kind::tensor || result.value == nullptr)
        return lacking("result " + std::to_string(i - 1) + " of the graph inside is no tensor.", flatten_advice);
      TRY_VOID(define_tensor(graph, item.text, result));
    }
  }
  if (i != results.size()) return broken_program("the graph inside gives another number of results than the node has.");
  return {};
}

Result<ProgramMeanings> ProgramImporter::enter(const ProgramGraph& inner, const ProgramMeanings& given, Graph& into,
                                               bool autocast) {
  if (inner.inputs.size() != given.size())
    return broken_program("the graph inside takes " + std::to_string(inner.inputs.size()) + " values, the node gives " +
                          std::to_string(given.size()) + ".");
  ProgramScope scope{&into, scope_};
  scope.autocast = autocast;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const ProgramItem& item = inner.inputs[i].items.front();
    if (item.kind == ProgramItem::Kind::tensor) {
      scope.names.insert_or_assign(item.text, given[i]);
    } else if (item.kind == ProgramItem::Kind::symbol && given[i].value != nullptr) {
      Emitter emitter(into, wire::printable(item.text, 200));
      TRY_VOID(define_number(inner, item, given[i].value, emitter));
    }
  }
  note_last_uses(inner, scope);
  ProgramScope* const outer = scope_;
  scope_ = &scope;
  auto done = translate(inner);
  ProgramMeanings results;
  for (const ProgramArgument& output : inner.outputs) {
    for (const ProgramItem& item : output.items) {
      ProgramMeaning meaning;
      if (done.ok() && item.kind == ProgramItem::Kind::tensor) {
        const auto value = value_of(item.text, meaning.missing);
        if (value.ok()) {
          meaning.value = *value;
          meaning.storage = scope.names.at(item.text).storage;
        } else {
          done = Error(value.error());
        }
      }
      results.push_back(std::move(meaning));
    }
  }
  scope_ = outer;
  if (!done.ok()) return std::move(done).error();
  return results;
}

Result<ProgramMeanings> ProgramImporter::branch(const ProgramCall& call, const std::string& name) {
  Value* condition = call.condition;
  if (condition == nullptr || condition->type.dtype != DType::boolean)
    return lacking("the condition is no tensor of bools.", "Compare with a number: x.sum() > 0.");
  if (condition->type.shape.rank() != 0) {
    Emitter emitter(*scope_->graph, name + "/condition");
    TRY(condition, emitter.emit("reshape", Attributes({{"shape", std::vector<Dim>{}}}), {condition}));
  }
  if (const auto fixed = fixed_.of(condition); fixed.has_value()) {
    const bool taken = load_integer(fixed->view().data, DType::boolean) != 0;
    return inlined(*call.graphs[taken ? 0 : 1], call.all());
  }
  Values operands{condition};
  std::vector<Graph*> made;
  const auto symbols = symbols_;
  const auto reals = std::exchange(reals_, {});
  const auto make = [&](std::size_t which) -> Result<bool> {
    Graph& region = new_region(name + (which == 0 ? "/then" : "/else"));
    TRY(const ProgramMeanings inputs, captured(call.all(), region, which == 0 ? &operands : nullptr));
    TRY(const ProgramMeanings results, enter(*call.graphs[which], inputs, region, scope_->autocast));
    symbols_ = symbols;
    made.push_back(&region);
    if (is_missing(results)) return true;
    TRY_VOID(add_outputs(results, region));
    return false;
  };
  TRY(bool missing, make(0));
  TRY(const bool also_missing, make(1));
  reals_ = reals;
  missing = missing || also_missing;
  if (missing) {
    ProgramMeaning unknown;
    unknown.missing = true;
    return ProgramMeanings{unknown};
  }
  if (made[0]->outputs().size() != made[1]->outputs().size())
    return broken_program("the branches give different numbers of results.");
  TRY(Attributes attributes,
      attributes_of_branches(*made[0], *made[1], [&] { return Dim::symbol(unique_symbol(name, used_symbols_)); }));
  return add_owner("if", std::move(attributes), std::move(operands), name, made);
}

}  // namespace polyphase

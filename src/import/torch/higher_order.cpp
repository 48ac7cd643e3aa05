// Nodes that own graphs: cond, while_loop, scan and map become `if` and `loop`; what only sets a mode is inlined.
//
// A graph takes all that it uses as operands. Weights and sizes are not passed in; each region makes its own.
#include <algorithm>
#include <functional>

#include "import/compose/composer.h"
#include "import/compose/regions.h"
#include "import/compose/symbol_name.h"
#include "import/torch/importer.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

constexpr int max_depth = 60;
constexpr std::int64_t most_unrolled_trips = 16;
constexpr std::int64_t most_unrolled_nodes = 256;

constexpr const char* flatten_advice = "Flatten the module, or pass tensors only.";

bool is_missing(const ProgramMeanings& results) {
  return std::any_of(results.begin(), results.end(), [](const ProgramMeaning& one) { return one.missing; });
}

}  // namespace

struct ProgramCall {
  bool missing = false;
  Value* condition = nullptr;  // of cond
  std::vector<std::shared_ptr<const ProgramGraph>> graphs;
  std::vector<ProgramMeanings> lists;  // operands behind the graphs; single ones make one list
  ProgramMeanings all() const {
    ProgramMeanings out;
    for (const auto& list : lists) out.insert(out.end(), list.begin(), list.end());
    return out;
  }
};

// A loop whose body takes {carried values, entries of what is sliced along axis 0, what stays} and gives
// {whether to go on, the carried values, rows to stack}.
struct ProgramLoop {
  Value* trips = nullptr;      // null: only the condition ends it
  Value* condition = nullptr;  // null: only the trips end it
  ProgramMeanings carried;
  ProgramMeanings sliced;
  ProgramMeanings fixed;
  std::int64_t nodes = 0;  // of the body
  std::function<Result<ProgramMeanings>(Graph&, const ProgramMeanings&)> body;
};

Result<bool> ProgramImporter::translate_higher_order(const ProgramGraph& graph, const ProgramNode& node,
                                                     const std::string& name) {
  constexpr std::string_view prefix = "torch.ops.higher_order.";
  if (node.target.rfind(prefix, 0) != 0) return false;
  const std::string_view kind = std::string_view(node.target).substr(prefix.size());
  const bool sets_a_mode = kind == "wrap_with_set_grad_enabled" || kind == "wrap_with_autocast";
  const std::size_t graphs = kind == "cond" || kind == "while_loop" ? 2 : 1;
  if (!sets_a_mode && kind != "cond" && kind != "while_loop" && kind != "scan" && kind != "map_impl") return false;
  if (depth_ >= max_depth) return lacking("graphs lie too deep in one another.", "Flatten the module.");
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

Graph& ProgramImporter::new_region(std::string name) {
  regions_.push_back(std::make_unique<Graph>(registry_));
  regions_.back()->name = std::move(name);
  return *regions_.back();
}

std::unique_ptr<Graph> ProgramImporter::finished(const Graph& region) {
  const auto place =
      std::find_if(regions_.begin(), regions_.end(), [&](const auto& one) { return one.get() == &region; });
  std::unique_ptr<Graph> out = std::move(*place);
  regions_.erase(place);
  return out;
}

// Outer values inside of a region: an input of it, or a constant or sizes of its own. `operands`, if given, gets what
// the inputs stand for.
Result<ProgramMeanings> ProgramImporter::captured(const ProgramMeanings& given, Graph& region, Values* operands) {
  ProgramMeanings out;
  for (const ProgramMeaning& outer : given) {
    Value* const value = outer.value;
    ProgramMeaning inner;
    inner.storage = outer.storage;
    if (value->producer != nullptr && value->producer->constant() != nullptr) {
      inner.value = region.add_constant(*value->producer->constant(), value->name);
    } else if (value->producer != nullptr && value->producer->weight() != nullptr) {
      inner.value = region.add_constant(*value->producer->weight(), value->name, nullptr,
                                        value->producer->attributes().get<std::string>("weight"));
    } else if (value->contents.has_value() && value->type.dtype == DType::i64 && value->type.shape.rank() <= 1) {
      Emitter emitter(region, value->name);
      inner.value = emitter.sizes_as_data(*value->contents, value->type.shape.rank() == 0);
    } else {
      inner.value = region.add_input(value->name, value->type);
      if (operands != nullptr) operands->push_back(value);
    }
    out.push_back(std::move(inner));
  }
  return out;
}

Result<void> ProgramImporter::add_outputs(const ProgramMeanings& results, Graph& region) {
  for (const ProgramMeaning& result : results) {
    if (result.value == nullptr) return lacking("a result of the graph inside is no tensor.", flatten_advice);
    region.add_output(result.value, result.value->name);
  }
  return {};
}

namespace {

ProgramMeaning meaning_of(Value* value) {
  ProgramMeaning out;
  out.value = value;
  return out;
}

}  // namespace

// The node that owns the regions; each of its results has a memory of its own.
Result<ProgramMeanings> ProgramImporter::add_owner(std::string_view op_name, Attributes attributes, Values operands,
                                                   const std::string& name, const std::vector<Graph*>& regions) {
  std::vector<std::unique_ptr<Graph>> owned;
  for (const Graph* region : regions) owned.push_back(finished(*region));
  TRY(Node * node,
      scope_->graph->add(op_name, std::move(attributes), std::move(operands), name, nullptr, std::move(owned)));
  ProgramMeanings out;
  for (const auto& result : node->outputs()) {
    out.push_back(meaning_of(result.get()));
    out.back().storage = storages_++;
  }
  return out;
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

Result<ProgramMeanings> ProgramImporter::while_loop(const ProgramCall& call, const std::string& name) {
  const ProgramGraph& goes_on = *call.graphs[0];
  const ProgramGraph& step = *call.graphs[1];
  ProgramLoop loop;
  loop.carried = call.lists.front();
  for (std::size_t i = 1; i < call.lists.size(); ++i)
    loop.fixed.insert(loop.fixed.end(), call.lists[i].begin(), call.lists[i].end());
  TRY(const ProgramMeanings first, inlined(goes_on, call.all()));
  if (is_missing(first)) return first;
  const auto is_condition = [](const ProgramMeanings& results) {
    return results.size() == 1 && results.front().value != nullptr &&
           results.front().value->type.dtype == DType::boolean;
  };
  if (!is_condition(first)) return lacking("the condition is no tensor of one bool.", "Compare with a number: i < n.");
  loop.condition = first.front().value;
  const std::size_t carried = loop.carried.size();
  loop.body = [&, this, carried](Graph& region, const ProgramMeanings& inputs) -> Result<ProgramMeanings> {
    TRY(ProgramMeanings next, enter(step, inputs, region, scope_->autocast));
    if (is_missing(next)) return next;
    if (next.size() != carried) return broken_program("the body gives another number of values than are carried.");
    ProgramMeanings again = next;
    again.insert(again.end(), inputs.begin() + static_cast<std::ptrdiff_t>(carried), inputs.end());
    for (const ProgramMeaning& one : again) {
      if (one.value == nullptr) return lacking("a carried value is no tensor.", flatten_advice);
    }
    TRY(ProgramMeanings out, enter(goes_on, again, region, scope_->autocast));
    if (!is_missing(out) && !is_condition(out))
      return lacking("the condition is no tensor of one bool.", "Compare with a number: i < n.");
    out.insert(out.end(), next.begin(), next.end());
    return out;
  };
  return this->loop(loop, name);
}

// The body gives the carried values and rows. With none carried this is map.
Result<ProgramMeanings> ProgramImporter::scan(const ProgramCall& call, const std::string& name, std::size_t carried) {
  ProgramLoop loop;
  const std::size_t first = carried == 0 && call.lists.size() < 3 ? 0 : 1;
  if (first == 1) loop.carried = call.lists[0];
  if (call.lists.size() <= first || call.lists[first].empty()) return broken_program("there is nothing to go through.");
  loop.sliced = call.lists[first];
  for (std::size_t i = first + 1; i < call.lists.size(); ++i)
    loop.fixed.insert(loop.fixed.end(), call.lists[i].begin(), call.lists[i].end());
  for (const ProgramMeaning& all : loop.sliced) {
    if (all.value->type.shape.rank() == 0) return broken_program("what is gone through needs an axis.");
  }
  Emitter emitter(*scope_->graph, name);
  loop.trips = emitter.sizes_as_data({loop.sliced.front().value->type.shape[0]}, true);
  const ProgramGraph& step = *call.graphs.front();
  loop.nodes = static_cast<std::int64_t>(step.nodes.size());
  loop.body = [&](Graph& region, const ProgramMeanings& inputs) -> Result<ProgramMeanings> {
    TRY(ProgramMeanings next, enter(step, inputs, region, scope_->autocast));
    if (next.size() < loop.carried.size()) return broken_program("the body gives too few carried values.");
    Emitter inner(region, "again");
    next.insert(next.begin(), meaning_of(inner.scalar(DType::boolean, 1)));
    return next;
  };
  const Dim& trips = loop.sliced.front().value->type.shape[0];
  if (trips.is_constant() && trips.value() >= 1 && trips.value() <= most_unrolled_trips &&
      trips.value() * loop.nodes <= most_unrolled_nodes)
    return unrolled(loop, trips.value(), name);
  return this->loop(loop, name);
}

Result<ProgramMeanings> ProgramImporter::unrolled(const ProgramLoop& loop, std::int64_t trips,
                                                  const std::string& name) {
  Emitter emitter(*scope_->graph, name);
  Composer c(emitter);
  ProgramMeanings carried = loop.carried;
  std::vector<Values> rows;
  for (std::int64_t trip = 0; trip < trips; ++trip) {
    ProgramMeanings inputs = carried;
    for (const ProgramMeaning& all : loop.sliced) {
      TRY(Value * entry, c.result(c.squeeze(c.slice(all.value, 0, trip, 1), 0)));
      inputs.push_back(meaning_of(entry));
    }
    inputs.insert(inputs.end(), loop.fixed.begin(), loop.fixed.end());
    TRY(const ProgramMeanings results, loop.body(*scope_->graph, inputs));
    if (is_missing(results)) return results;
    rows.resize(results.size() - 1 - carried.size());
    for (std::size_t i = 1; i < results.size(); ++i) {
      if (results[i].value == nullptr) return lacking("a result of the graph inside is no tensor.", flatten_advice);
      if (i <= carried.size()) {
        carried[i - 1] = results[i];
      } else {
        rows[i - 1 - carried.size()].push_back(c.unsqueeze(results[i].value, 0));
      }
    }
  }
  for (Values& parts : rows) {
    TRY(Value * stacked, c.result(c.concat(std::move(parts), 0)));
    carried.push_back(meaning_of(stacked));
    carried.back().storage = storages_++;
  }
  return carried;
}

Result<ProgramMeanings> ProgramImporter::loop(const ProgramLoop& loop, const std::string& name) {
  std::vector<Type> types;
  for (const ProgramMeaning& value : loop.carried) types.push_back(value.value->type);
  std::vector<Dim> entering;
  const auto fresh = [&] { return Dim::symbol(unique_symbol(name, used_symbols_)); };
  const auto symbols = symbols_;
  const auto reals = std::exchange(reals_, {});
  Values operands;
  Graph* body = nullptr;
  for (bool again = true; again;) {
    body = &new_region(name + "/body");
    Value* const iteration = body->add_input("iteration", {DType::i64, {}});
    body->add_input("condition", {DType::boolean, {}});
    operands = {loop.trips, loop.condition};
    ProgramMeanings inputs;
    for (std::size_t i = 0; i < types.size(); ++i) {
      inputs.push_back(meaning_of(body->add_input(loop.carried[i].value->name, types[i])));
      inputs.back().storage = storages_++;
      operands.push_back(loop.carried[i].value);
    }
    TRY(const ProgramMeanings fixed, captured(loop.fixed, *body, &operands));
    for (const ProgramMeaning& all : loop.sliced) {
      Value* const inner = body->add_input(all.value->name + ".all", all.value->type);
      operands.push_back(all.value);
      TRY(Node * entry, body->add("gather", Attributes({{"axis", std::int64_t{0}}}), {inner, iteration}, "entry"));
      inputs.push_back(meaning_of(entry->output()));
      inputs.back().storage = storages_++;
    }
    inputs.insert(inputs.end(), fixed.begin(), fixed.end());
    TRY(const ProgramMeanings results, loop.body(*body, inputs));
    symbols_ = symbols;
    if (is_missing(results)) {
      reals_ = reals;
      return results;
    }
    if (results.size() < types.size() + 1) return broken_program("the body gives too few values.");
    TRY_VOID(add_outputs(results, *body));
    TRY(again, free_changing_sizes(*body, types, entering, fresh));
  }
  reals_ = reals;
  const bool counted = loop.trips != nullptr && loop.condition == nullptr;
  Attributes attributes = attributes_of_loop(*body, types, entering, counted, fresh);
  return add_owner("loop", std::move(attributes), std::move(operands), name, {body});
}

}  // namespace polyphase

// while_loop, scan and map: unrolled where they are short, else `loop`.
#include "import/compose/composer.h"
#include "import/compose/regions.h"
#include "import/compose/symbol_name.h"
#include "import/torch/higher_order.h"

namespace polyphase {
namespace {

constexpr std::int64_t most_unrolled_trips = 16;
constexpr std::int64_t most_unrolled_nodes = 256;

}  // namespace

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

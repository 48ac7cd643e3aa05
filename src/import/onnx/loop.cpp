// Loop: unrolled where that is short, else a `loop` node that owns the body as a graph.
//
// Unrolled, the iteration is a constant: slices at it, shapes and indices become fixed and fold, and nothing is copied
// from trip to trip. Longer loops would only make the program long.
#include <algorithm>
#include <unordered_set>

#include "import/compose/regions.h"
#include "import/onnx/importer.h"
#include "import/onnx/node_context.h"
#include "import/onnx/subgraph.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

constexpr std::int64_t most_unrolled_trips = 16;
constexpr std::int64_t most_unrolled_nodes = 256;

bool is_true(const Tensor& tensor) {
  return tensor.view().element_count() == 1 && tensor.dtype() == DType::boolean &&
         load_integer(tensor.view().data, DType::boolean) != 0;
}

// Whether the body gives back the condition that it got (or true), so that only the trip count ends the loop. It may
// also give a value from outside of it, whose name is told then.
bool keeps_condition(const onnx::GraphProto& body, std::string_view& from_outside) {
  std::string_view name = body.output(0).name();
  for (int node = body.node_size() - 1; node >= 0; --node) {
    const auto& at = body.node(node);
    if (at.output_size() != 1 || at.output(0) != name) continue;
    if (at.op_type() == "Constant") {
      return at.attribute_size() == 1 && at.attribute(0).has_t() &&
             at.attribute(0).t().data_type() == onnx::TensorProto::BOOL &&
             ((at.attribute(0).t().raw_data().size() == 1 && at.attribute(0).t().raw_data()[0] != 0) ||
              (at.attribute(0).t().int32_data_size() == 1 && at.attribute(0).t().int32_data(0) != 0));
    }
    const bool passes = at.op_type() == "Identity" || at.op_type() == "Cast";
    if (!passes || at.input_size() != 1) return false;
    name = at.input(0);
  }
  for (const auto& tensor : body.initializer()) {
    if (tensor.name() == name)
      return tensor.data_type() == onnx::TensorProto::BOOL &&
             ((tensor.raw_data().size() == 1 && tensor.raw_data()[0] != 0) ||
              (tensor.int32_data_size() == 1 && tensor.int32_data(0) != 0));
  }
  if (name == body.input(1).name()) return true;
  const auto& nodes = body.node();
  const bool is_inside = std::any_of(nodes.begin(), nodes.end(), [&](const onnx::NodeProto& node) {
    return std::find(node.output().begin(), node.output().end(), name) != node.output().end();
  });
  const bool is_input = std::any_of(body.input().begin(), body.input().end(),
                                    [&](const onnx::ValueInfoProto& input) { return input.name() == name; });
  if (!is_inside && !is_input) from_outside = name;
  return false;
}

Result<void> check_body(const onnx::NodeProto& node, const onnx::GraphProto* body) {
  if (body == nullptr) return broken_rule("the attribute body (a graph) is missing.");
  const int carried = std::max(node.input_size() - 2, 0);
  if (body->input_size() != carried + 2) {
    return broken_rule("the body takes " + std::to_string(body->input_size()) +
                       " values; the iteration, the condition and " + std::to_string(carried) +
                       " carried values are given.");
  }
  if (body->output_size() < carried + 1 || body->output_size() - 1 < node.output_size()) {
    return broken_rule("the body gives " + std::to_string(body->output_size()) + " values; it needs the condition, " +
                       std::to_string(carried) + " carried values, and what the node's " +
                       std::to_string(node.output_size()) + " results want.");
  }
  return {};
}

Result<void> check_one(const Value* value, DType dtype, const char* role) {
  if (value == nullptr) return {};
  const auto count = value->type.shape.element_count().constant();
  if (value->type.dtype == dtype && (!count.has_value() || *count == 1)) return {};
  return broken_rule(std::string(role) + " of Loop must be one " + std::string(name_of(dtype)) + ", found " +
                     value->type.text() + ".");
}

}  // namespace

Result<void> Importer::loop(onnx::NodeProto& node, const std::string& name, Scope& scope) {
  onnx::GraphProto* body = subgraph_of(node, "body");
  TRY_VOID(check_body(node, body));
  bool missing = false;
  bool carries_tensors = true;
  LoopParts parts;
  parts.body = body;
  parts.counts = true;
  if (node.input_size() > 0) {
    TRY(parts.trips, value_of(node.input(0), scope, missing));
  }
  if (node.input_size() > 1) {
    TRY(parts.condition, value_of(node.input(1), scope, missing));
  }
  for (int i = 2; i < node.input_size(); ++i) {
    TRY(const Meaning given, meaning_of(node.input(i), scope, missing));
    carries_tensors = carries_tensors && given.sequence == nullptr && !given.is_empty_optional;
    if (carries_tensors && given.value == nullptr && !missing)
      return broken_rule("carried value " + std::to_string(i - 2) + " has no name.");
    parts.carried.push_back(given.value);
  }
  if (missing) {
    note_missing_below(*body, *scope.body);
    return define_missing(node, scope);
  }
  TRY_VOID(check_one(parts.trips, DType::i64, "the trip count"));
  TRY_VOID(check_one(parts.condition, DType::boolean, "the condition"));
  if (parts.condition != nullptr) {
    const auto fixed = fixed_.of(parts.condition);
    std::string_view from_outside;
    bool goes_on = fixed.has_value() && is_true(*fixed) && parts.trips != nullptr;
    if (goes_on && !keeps_condition(*body, from_outside)) {
      goes_on = false;
      if (!from_outside.empty()) {
        TRY(Value * given, value_of(from_outside, scope, missing));
        const auto kept = given == nullptr ? std::nullopt : fixed_.of(given);
        goes_on = kept.has_value() && is_true(*kept);
      }
    }
    if (goes_on) parts.condition = nullptr;
  }
  ++depth_;
  const auto trips = parts.trips == nullptr ? std::nullopt : fixed_.of(parts.trips);
  if (trips.has_value() && parts.condition == nullptr) {
    const std::int64_t count = load_integer(trips->view().data, DType::i64);
    if (count >= 1 && count <= most_unrolled_trips && count * count_nodes(*body) <= most_unrolled_nodes) {
      TRY_VOID(unroll(node, *body, count, name, scope));
      --depth_;
      return {};
    }
  }
  if (!carries_tensors) {
    return lacking("a sequence is carried from trip to trip, and the loop is not unrolled.",
                   "Give the loop a fixed number of trips, at most 16, or gather its results as scan outputs.");
  }
  TRY(Node * made, make_loop(std::move(parts), name, scope, missing));
  --depth_;
  return missing ? define_missing(node, scope) : define_results(node, *made, 0, scope);
}

Result<void> Importer::unroll(onnx::NodeProto& node, onnx::GraphProto& body, std::int64_t trips,
                              const std::string& name, Scope& scope) {
  const int carried = node.input_size() - 2;
  std::vector<Meaning> values(static_cast<std::size_t>(std::max(carried, 0)));
  for (int i = 0; i < carried; ++i) {
    TRY(Meaning * given, look_up(node.input(i + 2), scope));
    values[static_cast<std::size_t>(i)] = *given;
  }
  std::vector<Values> rows(static_cast<std::size_t>(body.output_size() - 1 - std::max(carried, 0)));
  bool missing = false;
  const std::vector<std::int64_t> scalar;
  for (std::int64_t trip = 0; trip < trips; ++trip) {
    const Body at{scope.body->opsets, scope.body->attributes, name + "/trip" + std::to_string(trip) + "/"};
    Scope inner{scope.graph, &at, &scope, {}};
    Meaning iteration;
    iteration.tensor = Tensor::from_integers(DType::i64, scalar, std::array{trip});
    TRY_VOID(define(body.input(0).name(), std::move(iteration), inner));
    Meaning condition;
    condition.tensor = Tensor::from_integers(DType::boolean, scalar, std::array{std::int64_t{1}});
    TRY_VOID(define(body.input(1).name(), std::move(condition), inner));
    for (std::size_t i = 0; i < values.size(); ++i)
      TRY_VOID(define(body.input(static_cast<int>(i) + 2).name(), values[i], inner));
    TRY_VOID(add_initializers(body, inner));
    TRY_VOID(translate_graph(body, inner));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string& result = body.output(static_cast<int>(i) + 1).name();
      TRY(values[i], meaning_of(result, inner, missing));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      TRY(Value * row, value_of(body.output(static_cast<int>(values.size() + i) + 1).name(), inner, missing));
      if (missing) continue;
      std::vector<Dim> shape{Dim(1)};
      for (const Dim& dim : row->type.shape) shape.push_back(dim);
      TRY(Node * one, scope.graph->add("reshape", Attributes({{"shape", std::move(shape)}}), {row}, name + "/row"));
      rows[i].push_back(one->output());
    }
    if (missing) return define_missing(node, scope);
  }
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    Meaning meaning;
    if (i < carried) {
      meaning = values[static_cast<std::size_t>(i)];
    } else {
      TRY(Node * stacked, scope.graph->add("concat", Attributes({{"axis", std::int64_t{0}}}),
                                           rows[static_cast<std::size_t>(i - carried)], name));
      meaning.value = stacked->output();
    }
    TRY_VOID(define(node.output(i), std::move(meaning), scope));
  }
  return {};
}

namespace {

// The body may want the iteration or the condition as a tensor of one axis.
Result<Value*> as_declared(Graph& region, Value* scalar, const onnx::ValueInfoProto& declared) {
  const auto& type = declared.type().tensor_type();
  if (!type.has_shape() || type.shape().dim_size() != 1) return scalar;
  TRY(Node * made, region.add("reshape", Attributes({{"shape", std::vector<Dim>{Dim(1)}}}), {scalar}, declared.name()));
  return made->output();
}

// One entry of the sliced tensor, in the trip's turn.
Result<Value*> entry_of(Graph& region, const LoopParts::Slice& slice, Value* all, Value* iteration) {
  Value* index = iteration;
  if (slice.reversed) {
    const Dim last = all->type.shape[static_cast<int>(slice.axis)] - 1;
    Value* end =
        region.must_add("dims", Attributes({{"values", std::vector<Dim>{last}}, {"scalar", true}}), {}, "last");
    TRY(Node * turned, region.add("sub", {}, {end, iteration}, "index"));
    index = turned->output();
  }
  TRY(Node * entry, region.add("gather", Attributes({{"axis", slice.axis}}), {all, index}, "entry"));
  return entry->output();
}

}  // namespace

Result<std::unique_ptr<Graph>> Importer::make_body(const LoopParts& parts, const std::vector<Type>& types,
                                                   const std::vector<Capture>& captures, const std::string& name,
                                                   const Scope& scope, bool& missing) {
  auto region = std::make_unique<Graph>(registry_);
  region->name = name + "/body";
  Scope inner{region.get(), scope.body, nullptr, {}};
  onnx::GraphProto& body = *parts.body;
  Value* iteration = region->add_input("iteration", {DType::i64, {}});
  Value* condition = region->add_input("condition", {DType::boolean, {}});
  const auto formal = [&](int index, Value* value) {
    Meaning meaning;
    meaning.value = value;
    return define(body.input(index).name(), std::move(meaning), inner);
  };
  const int first = parts.counts ? 2 : 0;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const int index = first + static_cast<int>(i);
    TRY_VOID(formal(index, region->add_input(wire::printable(body.input(index).name(), 200), types[i])));
  }
  TRY_VOID(define_captures(captures, inner));
  if (parts.counts) {
    TRY(Value * counter, as_declared(*region, iteration, body.input(0)));
    TRY_VOID(formal(0, counter));
    TRY(Value * again, as_declared(*region, condition, body.input(1)));
    TRY_VOID(formal(1, again));
  } else {
    region->add_output(
        region->add_constant(
            Tensor::from_integers(DType::boolean, std::vector<std::int64_t>{}, std::array{std::int64_t{1}}), "again"),
        "again");
  }
  for (std::size_t i = 0; i < parts.slices.size(); ++i) {
    const int index = static_cast<int>(types.size() + i);
    Value* all = region->add_input(wire::printable(body.input(index).name(), 200) + ".all", parts.slices[i].of->type);
    TRY(Value * entry, entry_of(*region, parts.slices[i], all, iteration));
    TRY_VOID(formal(index, entry));
  }
  TRY_VOID(fill_region(body, inner, missing));
  return region;
}

Result<Node*> Importer::make_loop(LoopParts parts, const std::string& name, Scope& scope, bool& missing) {
  std::vector<std::string_view> free;
  std::unordered_set<std::string_view> known;
  collect_free_names(*parts.body, free, known);
  TRY(const std::vector<Capture> captures, captures_of(free, scope));
  std::vector<Type> types;
  for (const Value* value : parts.carried) types.push_back(value->type);
  std::vector<Dim> entering;
  const auto fresh = [&] { return Dim::symbol(fresh_symbol(name)); };
  std::vector<std::unique_ptr<Graph>> regions;
  for (bool again = true; again;) {
    TRY(auto body, make_body(parts, types, captures, name, scope, missing));
    if (missing) return static_cast<Node*>(nullptr);
    TRY(again, free_changing_sizes(*body, types, entering, fresh));
    (again ? discarded_ : regions).push_back(std::move(body));
  }
  const bool counted = parts.trips != nullptr && parts.condition == nullptr && parts.trips->contents.has_value();
  Values operands{parts.trips, parts.condition};
  operands.insert(operands.end(), parts.carried.begin(), parts.carried.end());
  for (const Capture& capture : captures) {
    if (capture.as_input) operands.push_back(capture.meaning.value);
  }
  for (const LoopParts::Slice& slice : parts.slices) operands.push_back(slice.of);
  Attributes attributes = attributes_of_loop(*regions[0], types, entering, counted, fresh);
  return scope.graph->add("loop", std::move(attributes), std::move(operands), name, nullptr, std::move(regions));
}

}  // namespace polyphase

// if, loop: nodes that own graphs. What runs them is the interpreter or the session; here stand their types.
#include <algorithm>
#include <map>

#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

// A bool of one element.
Result<void> expect_condition(const InferContext& context, std::size_t i) {
  const Type& type = context.input(i);
  if (type.dtype == DType::boolean && type.shape.element_count() == 1) return {};
  return refuse(context,
                "operand " + operand_name(context, i) + " must be a bool of one element, found " + type.text() + ".");
}

// Sizes of results that are born when the node has run, by axis counted over all results: born_at[i] is named born[i].
class Births {
 public:
  static Result<Births> of(const InferContext& context) {
    Births out;
    const auto& names = context.attributes().get<std::vector<Dim>>("born");
    const auto& axes = context.attributes().get<std::vector<std::int64_t>>("born_at");
    if (names.size() != axes.size())
      return refuse(context, "attributes 'born' and 'born_at' must have the same length, found " +
                                 std::to_string(names.size()) + " and " + std::to_string(axes.size()) + ".");
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!names[i].is_symbol()) return refuse(context, "an entry of 'born' is no name: " + names[i].text() + ".");
      if (axes[i] < 0 || !out.by_axis_.emplace(axes[i], names[i]).second)
        return refuse(context, "attribute 'born_at' has the entry " + std::to_string(axes[i]) + " twice or below 0.");
    }
    return out;
  }
  const Dim* at(std::int64_t axis) const {
    const auto found = by_axis_.find(axis);
    return found == by_axis_.end() ? nullptr : &found->second;
  }
  // After the last result: every entry named an axis.
  Result<void> all_used(const InferContext& context, std::int64_t axes) const {
    if (by_axis_.empty() || by_axis_.rbegin()->first < axes) return {};
    return refuse(context, "attribute 'born_at' names axis " + std::to_string(by_axis_.rbegin()->first) +
                               "; the results have " + std::to_string(axes) + " axes in all.");
  }

 private:
  std::map<std::int64_t, Dim> by_axis_;
};

// The same dtype and rank, and sizes that agree, are checked when they are known, or are born. `axes` counts on.
Result<Type> expect_same_type(const InferContext& context, const Type& a, const std::string& a_words, const Type& b,
                              const std::string& b_words, const Births& births, std::int64_t& axes) {
  if (a.dtype != b.dtype || a.shape.rank() != b.shape.rank()) {
    return refuse(context, a_words + " and " + b_words + " must have the same dtype and rank, found " + a.text() +
                               " and " + b.text() + ".");
  }
  Type out{a.dtype, {}};
  for (int axis = 0; axis < a.shape.rank(); ++axis) {
    if (const Dim* born = births.at(axes++); born != nullptr) {
      out.shape.push_back(*born);
      continue;
    }
    const std::string words = "axis " + std::to_string(axis) + " of ";
    TRY(Dim dim, expect_equal(context, a.shape[axis], words + a_words, b.shape[axis], words + b_words));
    out.shape.push_back(std::move(dim));
  }
  return out;
}

Result<void> expect_region_inputs(const InferContext& context, std::size_t region, std::size_t count) {
  const std::size_t found = context.regions()[region].inputs.size();
  if (found == count) return {};
  return refuse(context, "graph " + std::to_string(region) + " must take " + std::to_string(count) + " values, found " +
                             std::to_string(found) + ".");
}

Result<std::vector<Type>> infer_if(const InferContext& context) {
  TRY_VOID(expect_condition(context, 0));
  const auto regions = context.regions();
  if (regions.size() != 2)
    return refuse(context, "needs two graphs, then and else, found " + std::to_string(regions.size()) + ".");
  if (regions[0].results.size() != regions[1].results.size()) {
    return refuse(context, "both graphs must give the same number of results, found " +
                               std::to_string(regions[0].results.size()) + " and " +
                               std::to_string(regions[1].results.size()) + ".");
  }
  TRY(const Births births, Births::of(context));
  std::vector<Type> out;
  std::int64_t axes = 0;
  for (std::size_t i = 0; i < regions[0].results.size(); ++i) {
    const std::string words = "result " + std::to_string(i) + " of graph ";
    TRY(Type type, expect_same_type(context, regions[0].results[i], words + "'then'", regions[1].results[i],
                                    words + "'else'", births, axes));
    out.push_back(std::move(type));
  }
  TRY_VOID(births.all_used(context, axes));
  return out;
}

// The trip count as a size, where there is no condition that could stop early.
std::optional<Dim> known_trips(const InferContext& context) {
  const std::vector<Dim>* count = context.contents(0);
  if (count == nullptr || count->size() != 1 || context.has_input(1)) return std::nullopt;
  return max(count->front(), Dim(0));
}

class LoopRule {
 public:
  explicit LoopRule(const InferContext& context) : context_(context) {}

  Result<std::vector<Type>> infer() {
    TRY_VOID(check_operands());
    TRY(births_, Births::of(context_));
    for (const Dim& name : context_.attributes().get<std::vector<Dim>>("entering")) {
      if (!name.is_symbol()) return refuse(context_, "an entry of 'entering' is no name: " + name.text() + ".");
    }
    for (std::size_t i = 0; i < carried_; ++i) TRY_VOID(carry(i));
    for (std::size_t i = carried_; i + 2 < context_.input_count(); ++i) {
      TRY_VOID(expect_same_type(context_, context_.input(i + 2), "value " + std::to_string(i), body().inputs[i + 2],
                                "input " + std::to_string(i + 2) + " of the body", Births(), axes_));
    }
    axes_ = 0;
    for (const Type& type : out_) axes_ += type.shape.rank();
    for (std::size_t i = carried_ + 1; i < body().results.size(); ++i) TRY_VOID(stack(i));
    TRY_VOID(births_.all_used(context_, axes_));
    return std::move(out_);
  }

 private:
  const RegionTypes& body() const { return context_.regions()[0]; }

  Result<void> check_operands() {
    const InferContext& c = context_;
    if (c.has_input(0) && (c.input(0).dtype != DType::i64 || !(c.shape(0).element_count() == 1)))
      return refuse(c, "operand 'trip_count' must be an i64 of one element, found " + c.input(0).text() + ".");
    if (c.has_input(1)) TRY_VOID(expect_condition(c, 1));
    const auto carried = c.attributes().get<std::int64_t>("carried");
    const std::int64_t operands = c.input_count() < 2 ? 0 : static_cast<std::int64_t>(c.input_count()) - 2;
    if (carried < 0 || carried > operands) {
      return refuse(c, "attribute 'carried' must be from 0 to the number of values, " + std::to_string(operands) +
                           ", found " + std::to_string(carried) + ".");
    }
    carried_ = static_cast<std::size_t>(carried);
    if (c.regions().size() != 1 || body().results.size() < carried_ + 1) {
      return refuse(c,
                    "needs one graph that gives the condition and the " + std::to_string(carried) + " carried values.");
    }
    TRY_VOID(expect_region_inputs(c, 0, static_cast<std::size_t>(operands) + 2));
    const Type& iteration = body().inputs[0];
    const Type& condition = body().inputs[1];
    if (!(iteration == Type{DType::i64, {}}) || !(condition == Type{DType::boolean, {}})) {
      return refuse(c, "the body takes the iteration, i64[], and the condition, bool[], first; found " +
                           iteration.text() + " and " + condition.text() + ".");
    }
    const Type& again = body().results[0];
    if (again.dtype != DType::boolean || !(again.shape.element_count() == 1)) {
      return refuse(c,
                    "result 0 of the body, the condition, must be a bool of one element, found " + again.text() + ".");
    }
    return {};
  }

  bool enters(const Dim& dim) const {
    const auto& names = context_.attributes().get<std::vector<Dim>>("entering");
    return std::find(names.begin(), names.end(), dim) != names.end();
  }

  Result<void> carry(std::size_t i) {
    const Type& first = context_.input(i + 2);
    const Type& in = body().inputs[i + 2];
    const Type& next = body().results[i + 1];
    const std::string words = "carried value " + std::to_string(i);
    for (const Type* other : {&in, &next}) {
      if (other->dtype == first.dtype && other->shape.rank() == first.shape.rank()) continue;
      return refuse(context_, words + " must keep its dtype and rank, found " + first.text() + " and " + other->text() +
                                  " in the body.");
    }
    Type result{first.dtype, {}};
    for (int axis = 0; axis < first.shape.rank(); ++axis) {
      const Dim* born = births_.at(axes_++);
      const std::string place = "axis " + std::to_string(axis) + " of " + words;
      if (enters(in.shape[axis])) {
        if (born == nullptr) return refuse(context_, place + " changes from trip to trip: 'born' must name it.");
        result.shape.push_back(*born);
        continue;
      }
      TRY(Dim dim, expect_equal(context_, first.shape[axis], place, in.shape[axis], place + " in the body"));
      TRY_VOID(expect_equal(context_, in.shape[axis], place, next.shape[axis], place + " after a trip"));
      result.shape.push_back(born != nullptr ? *born : dim);
    }
    out_.push_back(std::move(result));
    return {};
  }

  Result<void> stack(std::size_t i) {
    const Type& row = body().results[i];
    const auto trips = known_trips(context_);
    const Dim* counted = births_.at(axes_++);
    if (counted == nullptr && !trips.has_value()) {
      return refuse(context_,
                    "the body's result " + std::to_string(i) +
                        " is stacked over all trips; 'born' must name their number, which no trip count gives.");
    }
    Type stacked{row.dtype, {counted != nullptr ? *counted : *trips}};
    for (const Dim& dim : row.shape) {
      const Dim* born = births_.at(axes_++);
      stacked.shape.push_back(born != nullptr ? *born : dim);
    }
    out_.push_back(std::move(stacked));
    return {};
  }

  const InferContext& context_;
  Births births_;
  std::size_t carried_ = 0;
  std::int64_t axes_ = 0;
  std::vector<Type> out_;
};

Result<std::vector<Type>> infer_loop(const InferContext& context) { return LoopRule(context).infer(); }

}  // namespace

std::vector<OpDef> control_operators() {
  const OperandSpec captures{
      .name = "values", .doc = "what the graphs read from outside, any types", .optional = true, .variadic = true};
  const AttributeSpec born{"born", AttributeKind::dims,
                           "names of sizes of the results that are known only when the node has run",
                           std::vector<Dim>()};
  const AttributeSpec born_at{"born_at", AttributeKind::integers, "the axis of each name, counted over all results",
                              std::vector<std::int64_t>()};
  return {
      OpDef{.name = "if",
            .doc = "Runs its first graph (then) where the condition holds, else its second (else). Both graphs take "
                   "the values and give results of the same dtypes and ranks; a size that differs needs a name in "
                   "'born'.",
            .inputs = {{"condition", "bool, one element"}, captures},
            .outputs = {{"results", "the results of the graph that ran"}},
            .attributes = {born, born_at},
            .infer = infer_if,
            .region_count = 2},
      OpDef{.name = "loop",
            .doc =
                "Runs its graph while the condition holds, at most trip_count times; with neither it ends by an "
                "error, a cancel or a deadline only. The graph takes (iteration: i64[], condition: bool[], the "
                "values) and gives (condition, the carried values, rows to stack). The first `carried` values are "
                "replaced by the graph's results after each trip; the others stay. Where no condition operand is "
                "given, the graph's own is not read. An axis of a carried value that the graph takes under a name in "
                "'entering' may change from trip to trip. All rows of one stack have the same sizes; without any "
                "trip, sizes that only a trip would tell are 0.",
            .inputs = {{"trip_count", "i64, one element; absent: no limit", true},
                       {"condition", "bool, one element; absent: true, always", true},
                       {"values", "the carried values, then what the graph reads from outside", true, true}},
            .outputs = {{"results", "the carried values after the last trip, then each stacked row: [trips, …]"}},
            .attributes = {{"carried", AttributeKind::integer, "how many values are carried"},
                           {"entering", AttributeKind::dims, "sizes of carried values that each trip gives anew",
                            std::vector<Dim>()},
                           born,
                           born_at},
            .infer = infer_loop,
            .region_count = 1},
  };
}

}  // namespace polyphase

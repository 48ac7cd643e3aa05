// if, loop: nodes that own graphs. What runs them is the interpreter or the session; here stand their types.
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

// The same dtype and rank, and sizes that agree or are checked when they are known.
Result<Type> expect_same_type(const InferContext& context, const Type& a, const std::string& a_words, const Type& b,
                              const std::string& b_words) {
  if (a.dtype != b.dtype || a.shape.rank() != b.shape.rank()) {
    return refuse(context, a_words + " and " + b_words + " must have the same dtype and rank, found " + a.text() +
                               " and " + b.text() + ".");
  }
  Type out{a.dtype, {}};
  for (int axis = 0; axis < a.shape.rank(); ++axis) {
    const std::string words = "axis " + std::to_string(axis) + " of ";
    TRY(Dim dim, expect_equal(context, a.shape[axis], words + a_words, b.shape[axis], words + b_words));
    out.shape.push_back(std::move(dim));
  }
  return out;
}

Result<std::vector<Type>> infer_if(const InferContext& context) {
  TRY_VOID(expect_condition(context, 0));
  const auto regions = context.region_results();
  if (regions.size() != 2)
    return refuse(context, "needs two graphs, then and else, found " + std::to_string(regions.size()) + ".");
  if (regions[0].size() != regions[1].size()) {
    return refuse(context, "both graphs must give the same number of results, found " +
                               std::to_string(regions[0].size()) + " and " + std::to_string(regions[1].size()) + ".");
  }
  std::vector<Type> out;
  for (std::size_t i = 0; i < regions[0].size(); ++i) {
    const std::string words = "result " + std::to_string(i) + " of graph ";
    TRY(Type type, expect_same_type(context, regions[0][i], words + "'then'", regions[1][i], words + "'else'"));
    out.push_back(std::move(type));
  }
  return out;
}

// The trip count as a size, where there is no condition that could stop early.
std::optional<Dim> known_trips(const InferContext& context) {
  const std::vector<Dim>* count = context.contents(0);
  if (count == nullptr || count->size() != 1 || context.has_input(1)) return std::nullopt;
  return max(count->front(), Dim(0));
}

Result<std::vector<Type>> infer_loop(const InferContext& context) {
  if (context.has_input(0) && (context.input(0).dtype != DType::i64 || !(context.shape(0).element_count() == 1))) {
    return refuse(context,
                  "operand 'trip_count' must be an i64 of one element, found " + context.input(0).text() + ".");
  }
  if (context.has_input(1)) TRY_VOID(expect_condition(context, 1));
  if (!context.has_input(0) && !context.has_input(1))
    return refuse(context, "needs a trip count or a condition, or it would never end.");
  const auto carried = context.attributes().get<std::int64_t>("carried");
  const std::int64_t operands = context.input_count() < 2 ? 0 : static_cast<std::int64_t>(context.input_count()) - 2;
  if (carried < 0 || carried > operands) {
    return refuse(context, "attribute 'carried' must be from 0 to the number of values, " + std::to_string(operands) +
                               ", found " + std::to_string(carried) + ".");
  }
  const auto regions = context.region_results();
  if (regions.size() != 1 || regions[0].size() < static_cast<std::size_t>(carried) + 1) {
    return refuse(context,
                  "needs one graph that gives the condition and the " + std::to_string(carried) + " carried values.");
  }
  const std::vector<Type>& body = regions[0];
  if (body[0].dtype != DType::boolean || !(body[0].shape.element_count() == 1)) {
    return refuse(context,
                  "result 0 of the body, the condition, must be a bool of one element, found " + body[0].text() + ".");
  }
  std::vector<Type> out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(carried); ++i) {
    TRY(Type type, expect_same_type(context, context.input(i + 2), "carried value " + std::to_string(i), body[i + 1],
                                    "result " + std::to_string(i + 1) + " of the body"));
    out.push_back(std::move(type));
  }
  for (std::size_t i = static_cast<std::size_t>(carried) + 1; i < body.size(); ++i) {
    const auto trips = known_trips(context);
    if (!trips.has_value()) {
      return Error{ErrorCode::unsupported,
                   "loop: the body's result " + std::to_string(i) +
                       " is stacked over all trips, and their number is known only while the loop runs.",
                   "Give the loop a trip count that follows from input shapes, and no condition."};
    }
    Type stacked{body[i].dtype, {*trips}};
    for (const Dim& dim : body[i].shape) stacked.shape.push_back(dim);
    out.push_back(std::move(stacked));
  }
  return out;
}

}  // namespace

std::vector<OpDef> control_operators() {
  const OperandSpec captures{
      .name = "values", .doc = "what the graphs read from outside, any types", .optional = true, .variadic = true};
  return {
      OpDef{.name = "if",
            .doc = "Runs its first graph (then) where the condition holds, else its second (else). Both graphs take "
                   "the values and "
                   "give results of the same types.",
            .inputs = {{"condition", "bool, one element"}, captures},
            .outputs = {{"results", "the results of the graph that ran"}},
            .infer = infer_if,
            .region_count = 2},
      OpDef{.name = "loop",
            .doc = "Runs its graph while the condition holds, at most trip_count times. The graph takes (iteration: "
                   "i64[], condition: "
                   "bool[], the values) and gives (condition, the carried values, rows to stack). The first `carried` "
                   "values are "
                   "replaced by the graph's results after each trip; the others stay.",
            .inputs = {{"trip_count", "i64, one element; absent: no limit", true},
                       {"condition", "bool, one element; absent: true", true},
                       {"values", "the carried values, then what the graph reads from outside", true, true}},
            .outputs = {{"results", "the carried values after the last trip, then each stacked row: [trips, …]"}},
            .attributes = {{"carried", AttributeKind::integer, "how many values are carried"}},
            .infer = infer_loop,
            .region_count = 1},
  };
}

}  // namespace polyphase

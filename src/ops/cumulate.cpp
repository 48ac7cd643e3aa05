// cum_sum, cum_prod, cum_log_sum_exp: running sums, products and logarithms of sums along an axis.
#include <algorithm>
#include <cmath>

#include "ops/cut.h"
#include "ops/dense.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

enum class Fold : std::uint8_t { sum, product, log_sum_exp };

// The axis is a Dim: models may compute it. It counts from the end where it is negative.
template <DTypeSet takes>
Result<std::vector<Type>> infer_cumulate(const InferContext& context) {
  TRY_VOID(expect_dtype(context, 0, takes));
  const Type& x = context.input(0);
  const Dim& axis = context.attributes().get<Dim>("axis");
  const Dim rank(x.shape.rank());
  const std::string message = context.op().name + ": the axis must be from " + (-rank).text() + " to " +
                              (rank - 1).text() + " for " + x.text() + ", found " + axis.text() + ".";
  TRY_VOID(context.require(-rank, DimCheck::Relation::less_equal, axis, message));
  TRY_VOID(context.require(axis + 1, DimCheck::Relation::less_equal, rank, message));
  return std::vector<Type>{x};
}

// log(exp(a) + exp(b)); of two infinities of one sign that one.
double log_add_exp(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  const double high = std::max(a, b);
  return std::isinf(high) ? high : high + std::log1p(std::exp(std::min(a, b) - high));
}

// What the fold of nothing is.
template <Fold fold, typename T>
T nothing() {
  if constexpr (fold == Fold::log_sum_exp) return static_cast<T>(-INFINITY);
  return fold == Fold::product ? T{1} : T{0};
}

template <Fold fold, typename T>
T cumulated(T before, T more) {
  if constexpr (fold == Fold::log_sum_exp) return log_add_exp(before, more);
  return fold == Fold::product ? multiply_add(T{0}, before, more) : multiply_add(before, more, T{1});
}

// values: [outer, count, inner], row-major.
template <Fold fold, typename T>
void cumulate(std::vector<T>& values, std::int64_t count, std::int64_t inner, bool exclusive, bool reverse) {
  const auto total = static_cast<std::int64_t>(values.size());
  std::vector<T> sums(static_cast<std::size_t>(inner));
  for (std::int64_t block = 0; block < total; block += count * inner) {
    std::fill(sums.begin(), sums.end(), nothing<fold, T>());
    for (std::int64_t i = 0; i < count; ++i) {
      T* row = values.data() + block + (reverse ? count - 1 - i : i) * inner;
      for (std::size_t j = 0; j < sums.size(); ++j) {
        const T before = sums[j];
        sums[j] = cumulated<fold>(before, row[j]);
        row[j] = exclusive ? before : sums[j];
      }
    }
  }
}

template <Fold fold>
Result<void> reference_cumulate(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const std::int64_t given = context.attributes.get<Dim>("axis").value();
  const auto axis = static_cast<std::size_t>(given < 0 ? given + x.rank : given);
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < static_cast<std::size_t>(x.rank); ++i) inner *= x.sizes[i];
  const auto run = [&]<typename T>(T) {
    std::vector<T> values = dense_values<T>(x);
    cumulate<fold>(values, x.sizes[axis], inner, context.attributes.get<bool>("exclusive"),
                   context.attributes.get<bool>("reverse"));
    store_values(values, context.outputs[0]);
  };
  if constexpr (fold == Fold::log_sum_exp) {
    run(double{});
  } else {
    with_accumulator(x.dtype, run);
  }
  return {};
}

template <Fold fold>
OpDef cumulate_line(const char* name, const char* doc) {
  constexpr bool floats = fold == Fold::log_sum_exp;
  return {.name = name,
          .doc = doc,
          .inputs = {{"x", floats ? "float, rank >= 1" : "any number dtype, rank >= 1"}},
          .outputs = {{"y", "the type of x"}},
          .attributes = {{"axis", AttributeKind::dim, "which axis; negative ones count from the end"},
                         {"exclusive", AttributeKind::boolean, "an element does not count for its own place",
                          Attribute(false)},
                         {"reverse", AttributeKind::boolean, "from the end to the beginning", Attribute(false)}},
          .infer = infer_cumulate < floats ? DTypeSet::floats : DTypeSet::numbers >
          , .reference = reference_cumulate<fold>, .cut = cut_beside_axis};
}

}  // namespace

std::vector<OpDef> cumulate_operators() {
  return {
      cumulate_line<Fold::sum>("cum_sum", "Running sums along an axis. Source: ONNX operator CumSum; torch.cumsum."),
      cumulate_line<Fold::product>("cum_prod",
                                   "Running products along an axis. Source: ONNX operator CumProd; torch.cumprod."),
      cumulate_line<Fold::log_sum_exp>(
          "cum_log_sum_exp",
          "y[i] = log(exp(x[0]) + … + exp(x[i])) along an axis, without overflow on the way. "
          "Source: torch.logcumsumexp.")};
}

}  // namespace polyphase

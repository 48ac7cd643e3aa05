// cum_sum, cum_prod: running sums and products along an axis.
#include "ops/dense.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

// The axis is a Dim: models may compute it. It counts from the end where it is negative.
Result<std::vector<Type>> infer_cumulate(const InferContext& context) {
  TRY_VOID(expect_dtype(context, 0, DTypeSet::numbers));
  const Type& x = context.input(0);
  const Dim& axis = context.attributes().get<Dim>("axis");
  const Dim rank(x.shape.rank());
  const std::string message = context.op().name + ": the axis must be from " + (-rank).text() + " to " +
                              (rank - 1).text() + " for " + x.text() + ", found " + axis.text() + ".";
  TRY_VOID(context.require(-rank, DimCheck::Relation::less_equal, axis, message));
  TRY_VOID(context.require(axis + 1, DimCheck::Relation::less_equal, rank, message));
  return std::vector<Type>{x};
}

// values: [outer, count, inner], row-major.
template <bool product, typename T>
void cumulate(std::vector<T>& values, std::int64_t count, std::int64_t inner, bool exclusive, bool reverse) {
  const auto total = static_cast<std::int64_t>(values.size());
  std::vector<T> sums(static_cast<std::size_t>(inner));
  for (std::int64_t block = 0; block < total; block += count * inner) {
    std::fill(sums.begin(), sums.end(), product ? T{1} : T{0});
    for (std::int64_t i = 0; i < count; ++i) {
      T* row = values.data() + block + (reverse ? count - 1 - i : i) * inner;
      for (std::size_t j = 0; j < sums.size(); ++j) {
        const T before = sums[j];
        sums[j] = product ? multiply_add(T{0}, before, row[j]) : multiply_add(before, row[j], T{1});
        row[j] = exclusive ? before : sums[j];
      }
    }
  }
}

template <bool product>
Result<void> reference_cumulate(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const std::int64_t given = context.attributes.get<Dim>("axis").value();
  const auto axis = static_cast<std::size_t>(given < 0 ? given + x.rank : given);
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < static_cast<std::size_t>(x.rank); ++i) inner *= x.sizes[i];
  with_accumulator(x.dtype, [&]<typename T>(T) {
    std::vector<T> values = dense_values<T>(x);
    cumulate<product>(values, x.sizes[axis], inner, context.attributes.get<bool>("exclusive"),
                      context.attributes.get<bool>("reverse"));
    store_values(values, context.outputs[0]);
  });
  return {};
}

OpDef line(const char* name, const char* doc, Result<void> (*reference)(const ReferenceContext&)) {
  return {.name = name,
          .doc = doc,
          .inputs = {{"x", "any number dtype, rank >= 1"}},
          .outputs = {{"y", "the type of x"}},
          .attributes = {{"axis", AttributeKind::dim, "which axis; negative ones count from the end"},
                         {"exclusive", AttributeKind::boolean, "an element does not count for its own place",
                          Attribute(false)},
                         {"reverse", AttributeKind::boolean, "from the end to the beginning", Attribute(false)}},
          .infer = infer_cumulate,
          .reference = reference};
}

}  // namespace

std::vector<OpDef> cumulate_operators() {
  return {line("cum_sum", "Running sums along an axis. Source: ONNX operator CumSum; torch.cumsum.",
               reference_cumulate<false>),
          line("cum_prod", "Running products along an axis. Source: ONNX operator CumProd; torch.cumprod.",
               reference_cumulate<true>)};
}

}  // namespace polyphase

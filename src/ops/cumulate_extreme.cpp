// cum_max, cum_min: the greatest or least element so far along an axis, and where it stands.
#include <algorithm>
#include <cmath>

#include "ops/cut.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_cumulate_extreme(const InferContext& context) {
  TRY_VOID(expect_dtype(context, 0, DTypeSet::numbers));
  const Type& x = context.input(0);
  TRY_VOID(expect_axis(context, "axis", x.shape.rank()));
  return std::vector<Type>{x, {DType::i64, x.shape}};
}

// Whether `next` takes the place of `best`: of equals the last, and a NaN of all, also of another NaN.
bool takes_over(double next, double best, bool maximum, bool) {
  return std::isnan(next) || (!std::isnan(best) && (maximum ? next >= best : next <= best));
}
bool takes_over(std::int64_t next, std::int64_t best, bool maximum, bool is_unsigned) {
  if (!is_unsigned) return maximum ? next >= best : next <= best;
  const auto left = static_cast<std::uint64_t>(next);
  const auto right = static_cast<std::uint64_t>(best);
  return maximum ? left >= right : left <= right;
}

template <typename Number>
void search_extremes(const ReferenceContext& context, bool maximum) {
  const TensorView& x = context.inputs[0];
  const TensorView& values = context.outputs[0];
  const TensorView& places = context.outputs[1];
  const auto axis = static_cast<std::size_t>(context.attributes.get<std::int64_t>("axis"));
  const std::size_t width = size_bytes(x.dtype);
  std::array<std::int64_t, max_rank> sizes = x.sizes;
  sizes[axis] = 1;
  for_each_index<3>({sizes.data(), static_cast<std::size_t>(x.rank)},
                    {x.strides.data(), values.strides.data(), places.strides.data()}, [&](const auto& at) {
                      Number best{};
                      std::int64_t place = 0;
                      for_each_on_axis<Number>(x, axis, at[0], [&](std::int64_t here, Number next) {
                        if (here == 0 || takes_over(next, best, maximum, x.dtype == DType::u64)) {
                          best = next;
                          place = here;
                        }
                        std::copy_n(element_at(x, at[0] + place * x.strides[axis]), width,
                                    element_at(values, at[1] + here * values.strides[axis]));
                        places.as<std::int64_t>()[at[2] + here * places.strides[axis]] = place;
                      });
                    });
}

template <bool maximum>
Result<void> reference_cumulate_extreme(const ReferenceContext& context) {
  if (is_float(context.inputs[0].dtype)) {
    search_extremes<double>(context, maximum);
  } else {
    search_extremes<std::int64_t>(context, maximum);
  }
  return {};
}

OpDef extreme_line(const char* name, const char* doc, Result<void> (*reference)(const ReferenceContext&)) {
  return {.name = name,
          .doc = doc,
          .inputs = {{"x", "any number dtype, rank >= 1"}},
          .outputs = {{"values", "the type of x"}, {"indices", "i64, the shape of x"}},
          .attributes = {{"axis", AttributeKind::integer, "which axis, from 0"}},
          .infer = infer_cumulate_extreme,
          .reference = reference,
          .cut = cut_beside_axis};
}

}  // namespace

std::vector<OpDef> cumulate_extreme_operators() {
  return {
      extreme_line(
          "cum_max",
          "The greatest element so far along an axis, and its index: of equals the last. NaN counts as greater "
          "than all. Source: torch.cummax.",
          reference_cumulate_extreme<true>),
      extreme_line("cum_min",
                   "The least element so far along an axis, and its index: of equals the last. NaN counts as less than "
                   "all. Source: torch.cummin.",
                   reference_cumulate_extreme<false>)};
}

}  // namespace polyphase

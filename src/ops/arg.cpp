// arg_max, arg_min: where along an axis the greatest or least element stands.
#include <cmath>

#include "ops/cut.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_arg(const InferContext& context) {
  TRY_VOID(expect_dtype(context, 0, DTypeSet::numbers));
  const Type& x = context.input(0);
  TRY(const int axis, expect_axis(context, "axis", x.shape.rank()));
  TRY_VOID(context.require(
      1, DimCheck::Relation::less_equal, x.shape[axis],
      context.op().name + ": axis " + std::to_string(axis) + " of " + x.text() + " must have at least one element."));
  Type result{DType::i64, {}};
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (i != axis) {
      result.shape.push_back(x.shape[i]);
    } else if (context.attributes().get<bool>("keep")) {
      result.shape.push_back(1);
    }
  }
  return std::vector<Type>{std::move(result)};
}

// NaN beats everything, as in numpy and PyTorch.
bool arg_beats(double a, double b, bool maximum, bool) {
  return std::isnan(a) ? !std::isnan(b) : (maximum ? a > b : a < b);
}
bool arg_beats(std::int64_t a, std::int64_t b, bool maximum, bool is_unsigned) {
  if (!is_unsigned) return maximum ? a > b : a < b;
  const auto left = static_cast<std::uint64_t>(a);
  const auto right = static_cast<std::uint64_t>(b);
  return maximum ? left > right : left < right;
}

bool ties(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
bool ties(std::int64_t a, std::int64_t b) { return a == b; }

template <typename Number>
void search_arg(const ReferenceContext& context, bool maximum) {
  const TensorView& x = context.inputs[0];
  const TensorView& y = context.outputs[0];
  const auto axis = static_cast<std::size_t>(context.attributes.get<std::int64_t>("axis"));
  const bool last = context.attributes.get<bool>("last");
  const bool keep = context.attributes.get<bool>("keep");
  std::array<std::int64_t, max_rank> sizes = x.sizes;
  std::array<std::int64_t, max_rank> y_strides{};
  sizes[axis] = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.rank); ++i) {
    if (i != axis) y_strides[i] = y.strides[!keep && i > axis ? i - 1 : i];
  }
  for_each_index<2>(
      {sizes.data(), static_cast<std::size_t>(x.rank)}, {x.strides.data(), y_strides.data()}, [&](const auto& at) {
        Number best{};
        std::int64_t place = 0;
        for_each_on_axis<Number>(x, axis, at[0], [&](std::int64_t here, Number next) {
          if (here == 0 || arg_beats(next, best, maximum, x.dtype == DType::u64) || (last && ties(next, best))) {
            best = next;
            place = here;
          }
        });
        y.as<std::int64_t>()[at[1]] = place;
      });
}

template <bool maximum>
Result<void> reference_arg(const ReferenceContext& context) {
  if (is_float(context.inputs[0].dtype)) {
    search_arg<double>(context, maximum);
  } else {
    search_arg<std::int64_t>(context, maximum);
  }
  return {};
}

OpDef arg_line(const char* name, const char* doc, Result<void> (*reference)(const ReferenceContext&)) {
  return {.name = name,
          .doc = doc,
          .inputs = {{"x", "any shape with at least one element along the axis"}},
          .outputs = {{"y", "i64, x with the axis of size 1, or without it"}},
          .attributes = {{"axis", AttributeKind::integer, "which axis, from 0"},
                         {"keep", AttributeKind::boolean, "the axis stays, with size 1", Attribute(true)},
                         {"last", AttributeKind::boolean, "of equals take the last instead of the first",
                          Attribute(false)}},
          .infer = infer_arg,
          .reference = reference,
          .cut = cut_reduction,
          .layout = LayoutRule::per_axis};
}

}  // namespace

std::vector<OpDef> arg_operators() {
  return {
      arg_line("arg_max", "The index of the greatest element along an axis; NaN counts as greater than all.",
               reference_arg<true>),
      arg_line("arg_min", "The index of the least element along an axis; NaN counts as less than all.",
               reference_arg<false>),
  };
}

}  // namespace polyphase

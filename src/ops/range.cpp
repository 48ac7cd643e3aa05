// range: evenly spaced integers.
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_range(const InferContext& context) {
  const Dim& count = context.attributes().get<Dim>("count");
  TRY_VOID(context.require(0, DimCheck::Relation::less_equal, count,
                           "range: the count must not be negative, found " + count.text() + "."));
  return std::vector<Type>{{DType::i64, Shape{count}}};
}

Result<void> reference_range(const ReferenceContext& context) {
  const std::int64_t start = context.attributes.get<Dim>("start").value();
  const auto step = context.attributes.get<std::int64_t>("step");
  const TensorView& y = context.outputs[0];
  for (std::int64_t i = 0; i < y.sizes[0]; ++i) {
    y.as<std::int64_t>()[i * y.strides[0]] = wrapping_add(start, wrapping_multiply(i, step));
  }
  return {};
}

Contents range_contents(const InferContext& context) {
  const Dim& start = context.attributes().get<Dim>("start");
  const Dim step(context.attributes().get<std::int64_t>("step"));
  const auto count = context.attributes().get<Dim>("count").constant();
  if (!count.has_value()) return std::nullopt;
  std::vector<Dim> out;
  for (std::int64_t i = 0; i < *count; ++i) {
    out.push_back(start + Dim(i) * step);
    if (out.back().overflowed()) return std::nullopt;
  }
  return out;
}

}  // namespace

std::vector<OpDef> range_operators() {
  return {OpDef{.name = "range",
                .doc = "The integers start, start + step, start + 2 * step, …",
                .inputs = {},
                .outputs = {{"y", "i64, [count]"}},
                .attributes = {{"start", AttributeKind::dim, "the first"},
                               {"count", AttributeKind::dim, "how many"},
                               {"step", AttributeKind::integer, "the distance"}},
                .infer = infer_range,
                .reference = reference_range,
                .contents = range_contents}};
}

}  // namespace polyphase

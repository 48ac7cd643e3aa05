// slice: evenly spaced elements along every axis.
#include "ops/cut.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

// All elements lie inside: the first and the last one of each axis that has any.
Result<void> expect_inside(const InferContext& context, int axis, const Dim& start, const Dim& size,
                           std::int64_t step) {
  const Dim& extent = context.shape(0)[axis];
  const std::string words = "axis " + std::to_string(axis) + " (size " + extent.text() + ", start " + start.text() +
                            ", " + size.text() + " elements, step " + std::to_string(step) + ")";
  TRY_VOID(context.require(0, DimCheck::Relation::less_equal, size,
                           "slice: the size must not be negative on " + words + "."));
  if (size == 0) return {};
  const Dim last = start + (size - 1) * Dim(step);
  const Dim& least = step > 0 ? start : last;
  const Dim& greatest = step > 0 ? last : start;
  TRY_VOID(
      context.require(0, DimCheck::Relation::less_equal, least, "slice: begins before element 0 of " + words + "."));
  return context.require(greatest + 1, DimCheck::Relation::less_equal, extent,
                         "slice: reaches past the end of " + words + ".");
}

Result<std::vector<Type>> infer_slice(const InferContext& context) {
  const auto& start = context.attributes().get<std::vector<Dim>>("start");
  const auto& size = context.attributes().get<std::vector<Dim>>("size");
  const auto& step = context.attributes().get<std::vector<std::int64_t>>("step");
  const int rank = context.shape(0).rank();
  TRY_VOID(expect_entries(context, "start", start.size(), rank));
  TRY_VOID(expect_entries(context, "size", size.size(), rank));
  TRY_VOID(expect_entries(context, "step", step.size(), rank));
  for (int axis = 0; axis < rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (step[i] == 0) return refuse(context, "the step must not be 0, as it is on axis " + std::to_string(axis) + ".");
    TRY_VOID(expect_inside(context, axis, start[i], size[i], step[i]));
  }
  return std::vector<Type>{{context.input(0).dtype, Shape(size)}};
}

Result<void> reference_slice(const ReferenceContext& context) {
  const TensorView& result = context.outputs[0];
  if (result.empty()) return {};
  const auto start = integers_of(context.attributes.get<std::vector<Dim>>("start"));
  const auto& step = context.attributes.get<std::vector<std::int64_t>>("step");
  TensorView from = context.inputs[0];
  for (std::size_t axis = 0; axis < start.size(); ++axis) {
    from.data += start[axis] * from.strides[axis] * static_cast<std::int64_t>(size_bytes(from.dtype));
    // A step beyond the axis is legal for a single element, and must not overflow.
    from.strides[axis] = result.sizes[axis] == 1 ? 0 : from.strides[axis] * step[axis];
    from.sizes[axis] = result.sizes[axis];
  }
  copy_elements(from, result);
  return {};
}

}  // namespace

std::vector<OpDef> slice_operators() {
  return {
      OpDef{.name = "slice",
            .doc = "Evenly spaced elements: element i along an axis is x[start + i * step]. Nothing is clamped: every "
                   "element must exist. A negative step walks backwards.",
            .inputs = {{"x", "any dtype and shape"}},
            .outputs = {{"y", "the shape `size`"}},
            .attributes = {{"start", AttributeKind::dims, "the first element, one entry per axis"},
                           {"size", AttributeKind::dims, "how many elements, one entry per axis"},
                           {"step", AttributeKind::integers, "the distance between them, one entry per axis, not 0"}},
            .infer = infer_slice,
            .reference = reference_slice,
            .cut = cut_slice,
            .layout = LayoutRule::per_axis,
            .moves_elements = true}};
}

}  // namespace polyphase

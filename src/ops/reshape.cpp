// reshape, transpose, expand, tile: the same elements under another shape.
#include <algorithm>

#include "ops/cut.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

Result<void> expect_no_negative(const InferContext& context, const std::string& attribute,
                                const std::vector<Dim>& sizes) {
  for (const Dim& size : sizes) {
    TRY_VOID(context.require(0, DimCheck::Relation::less_equal, size,
                             context.op().name + ": attribute '" + attribute + "' must not be negative, found " +
                                 Shape(sizes).text() + "."));
  }
  return {};
}

Result<std::vector<Type>> infer_reshape(const InferContext& context) {
  const Shape shape(context.attributes().get<std::vector<Dim>>("shape"));
  const Type& x = context.input(0);
  TRY_VOID(expect_no_negative(context, "shape", shape.dims()));
  const Dim from = x.shape.element_count();
  const Dim to = shape.element_count();
  TRY_VOID(context.require(from, DimCheck::Relation::equal, to,
                           "reshape: the number of elements must stay: " + x.shape.text() + " has " + from.text() +
                               ", " + shape.text() + " has " + to.text() + "."));
  return std::vector<Type>{{x.dtype, shape}};
}

// Elements in logical order; one side seen under the other's shape, where it is row-major.
Result<void> reference_reshape(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& y = context.outputs[0];
  if (y.is_row_major()) {
    copy_elements(x, {TensorDesc::row_major(x.dtype, x.size_span()), y.data});
  } else if (x.is_row_major()) {
    copy_elements({TensorDesc::row_major(y.dtype, y.size_span()), x.data}, y);
  } else {
    TRY(const Tensor dense, Tensor::allocate(x.dtype, x.size_span()));
    copy_elements(x, dense.view());
    copy_elements({TensorDesc::row_major(y.dtype, y.size_span()), dense.view().data}, y);
  }
  return {};
}

Result<std::vector<Type>> infer_transpose(const InferContext& context) {
  const auto& order = context.attributes().get<std::vector<std::int64_t>>("order");
  const Type& x = context.input(0);
  TRY_VOID(expect_entries(context, "order", order.size(), x.shape.rank()));
  std::vector<bool> seen(order.size(), false);
  Shape shape;
  for (const std::int64_t axis : order) {
    if (axis < 0 || axis >= x.shape.rank() || seen[static_cast<std::size_t>(axis)]) {
      return refuse(context, "attribute 'order' must name every axis of " + x.text() + " once, found " +
                                 print_attribute(order) + ".");
    }
    seen[static_cast<std::size_t>(axis)] = true;
    shape.push_back(x.shape[static_cast<int>(axis)]);
  }
  return std::vector<Type>{{x.dtype, std::move(shape)}};
}

Result<void> reference_transpose(const ReferenceContext& context) {
  const auto& order = context.attributes.get<std::vector<std::int64_t>>("order");
  TensorView from = context.inputs[0];
  for (std::size_t i = 0; i < order.size(); ++i) {
    from.sizes[i] = context.inputs[0].sizes[static_cast<std::size_t>(order[i])];
    from.strides[i] = context.inputs[0].strides[static_cast<std::size_t>(order[i])];
  }
  copy_elements(from, context.outputs[0]);
  return {};
}

Result<std::vector<Type>> infer_expand(const InferContext& context) {
  const Shape shape(context.attributes().get<std::vector<Dim>>("shape"));
  const Type& x = context.input(0);
  TRY_VOID(expect_no_negative(context, "shape", shape.dims()));
  const int missing = shape.rank() - x.shape.rank();
  if (missing < 0) {
    return refuse(context,
                  "the shape must have at least the rank of 'x', found " + shape.text() + " for " + x.text() + ".");
  }
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    const Dim& from = x.shape[axis];
    const Dim& to = shape[axis + missing];
    if (from == 1 || from == to) continue;
    const std::string message = "expand: axis " + std::to_string(axis) + " of 'x' (" + from.text() +
                                ") must be 1 or equal the new size (" + to.text() + "), found " + x.shape.text() +
                                " and " + shape.text() + ".";
    TRY_VOID(context.require(from, DimCheck::Relation::less_equal, to, message));
    TRY_VOID(context.require(from, DimCheck::Relation::broadcast, to, message));
  }
  return std::vector<Type>{{x.dtype, shape}};
}

Result<void> reference_expand(const ReferenceContext& context) {
  copy_elements(broadcast_view(context.inputs[0], context.outputs[0].size_span()), context.outputs[0]);
  return {};
}

Result<std::vector<Type>> infer_tile(const InferContext& context) {
  const auto& repeats = context.attributes().get<std::vector<Dim>>("repeats");
  const Type& x = context.input(0);
  TRY_VOID(expect_entries(context, "repeats", repeats.size(), x.shape.rank()));
  TRY_VOID(expect_no_negative(context, "repeats", repeats));
  Shape shape;
  for (int axis = 0; axis < x.shape.rank(); ++axis)
    shape.push_back(x.shape[axis] * repeats[static_cast<std::size_t>(axis)]);
  return std::vector<Type>{{x.dtype, std::move(shape)}};
}

// One copy of x per place in the grid of repeats.
Result<void> reference_tile(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& y = context.outputs[0];
  if (y.empty()) return {};
  const auto repeats = integers_of(context.attributes.get<std::vector<Dim>>("repeats"));
  std::array<std::int64_t, max_rank> strides{};
  for (std::size_t axis = 0; axis < repeats.size(); ++axis) strides[axis] = x.sizes[axis] * y.strides[axis];
  for_each_index<1>(repeats, {strides.data()}, [&](const auto& at) {
    TensorView to = y;
    to.sizes = x.sizes;
    to.data += at[0] * static_cast<std::int64_t>(size_bytes(y.dtype));
    copy_elements(x, to);
  });
  return {};
}

}  // namespace

std::vector<OpDef> reshape_operators() {
  return {
      OpDef{.name = "reshape",
            .doc = "The same elements in row-major order under another shape. There are no codes 0 and -1: sizes are "
                   "written out.",
            .inputs = {{"x", "any dtype and shape"}},
            .outputs = {{"y", "the shape `shape`"}},
            .attributes = {{"shape", AttributeKind::dims, "the new sizes, with as many elements as x"}},
            .infer = infer_reshape,
            .reference = reference_reshape,
            .cut = cut_reshape,
            .moves_elements = true},
      OpDef{.name = "transpose",
            .doc = "The axes in another order: axis i of the result is axis order[i] of x.",
            .inputs = {{"x", "any dtype and shape"}},
            .outputs = {{"y", "the sizes of x in that order"}},
            .attributes = {{"order", AttributeKind::integers, "a permutation of 0 … rank - 1"}},
            .infer = infer_transpose,
            .reference = reference_transpose,
            .cut = cut_transpose,
            .layout = LayoutRule::permute,
            .moves_elements = true},
      OpDef{.name = "expand",
            .doc = "numpy's broadcast_to: unit and missing leading axes repeat their element.",
            .inputs = {{"x", "any dtype and shape"}},
            .outputs = {{"y", "the shape `shape`"}},
            .attributes = {{"shape", AttributeKind::dims, "the new sizes; x's sizes equal them or are 1"}},
            .infer = infer_expand,
            .reference = reference_expand,
            .cut = cut_expand,
            .moves_elements = true},
      OpDef{.name = "tile",
            .doc = "x repeated along every axis, whole copies side by side.",
            .inputs = {{"x", "any dtype and shape"}},
            .outputs = {{"y", "the sizes of x times repeats"}},
            .attributes = {{"repeats", AttributeKind::dims, "how many copies, one entry per axis"}},
            .infer = infer_tile,
            .reference = reference_tile,
            .cut = cut_tile,
            .moves_elements = true},
  };
}

}  // namespace polyphase

// one_hot, trilu: rows marked by an index; the triangle above or below a diagonal.
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/indices.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_one_hot(const InferContext& context) {
  TRY_VOID(expect_indices(context, 0));
  const Shape& indices = context.shape(0);
  const Type& values = context.input(1);
  TRY(const int axis, expect_axis(context, "axis", indices.rank() + 1));
  const Dim& depth = context.attributes().get<Dim>("depth");
  TRY_VOID(context.require(0, DimCheck::Relation::less_equal, depth,
                           "one_hot: the depth must not be negative, found " + depth.text() + "."));
  if (values.shape.rank() != 1)
    return refuse(context, "operand 'values' must be [2], the values off and on, found " + values.shape.text() + ".");
  TRY_VOID(expect_equal(context, values.shape[0], "the size of 'values'", 2, "the number of values, off and on"));
  Shape shape;
  for (int i = 0; i < axis; ++i) shape.push_back(indices[i]);
  shape.push_back(depth);
  for (int i = axis; i < indices.rank(); ++i) shape.push_back(indices[i]);
  return std::vector<Type>{{values.dtype, std::move(shape)}};
}

Result<void> reference_one_hot(const ReferenceContext& context) {
  const TensorView& indices = context.inputs[0];
  const TensorView& values = context.inputs[1];
  const TensorView& y = context.outputs[0];
  const auto axis = static_cast<std::size_t>(context.attributes.get<std::int64_t>("axis"));
  TensorView one(TensorDesc::row_major(values.dtype, {}), values.data);
  copy_elements(broadcast_view(one, y.size_span()), y);
  const TensorView places = without_axis(y, axis);
  const std::size_t width = size_bytes(y.dtype);
  const std::byte* on = element_at(values, values.strides[0]);
  for_each_index<2>(indices.size_span(), {indices.strides.data(), places.strides.data()}, [&](const auto& at) {
    std::int64_t index = load_integer(element_at(indices, at[0]), indices.dtype);
    if (index < 0) index += y.sizes[axis];
    if (index >= 0 && index < y.sizes[axis]) std::copy_n(on, width, element_at(y, at[1] + index * y.strides[axis]));
  });
  return {};
}

Result<std::vector<Type>> infer_trilu(const InferContext& context) {
  const Type& x = context.input(0);
  if (x.shape.rank() < 2)
    return refuse(context, "the operand must be matrices, of rank 2 or above, found " + x.text() + ".");
  const Dim& k = context.attributes().get<Dim>("k");
  if (k.overflowed()) return refuse(context, "the diagonal k leaves 64-bit arithmetic.");
  return std::vector<Type>{x};
}

// What stays of row i: columns [begin, end).
Result<void> reference_trilu(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& y = context.outputs[0];
  const bool upper = context.attributes.get<bool>("upper");
  const auto rows_axis = static_cast<std::size_t>(x.rank - 2);
  const auto columns_axis = rows_axis + 1;
  const std::int64_t rows = x.sizes[rows_axis];
  const std::int64_t columns = x.sizes[columns_axis];
  // Beyond the corners every diagonal is the same.
  const std::int64_t k = std::clamp(context.attributes.get<Dim>("k").value(), -rows - 1, columns + 1);
  const std::size_t width = size_bytes(x.dtype);
  copy_elements(x, y);
  for_each_index<1>(
      {y.sizes.data(), columns_axis}, {y.strides.data()}, [&, row = std::int64_t{0}](const auto& at) mutable {
        const std::int64_t diagonal = std::clamp<std::int64_t>(row % rows + k + (upper ? 0 : 1), 0, columns);
        ++row;
        const std::int64_t end = upper ? diagonal : columns;
        for (std::int64_t j = upper ? 0 : diagonal; j < end; ++j)
          std::fill_n(element_at(y, at[0] + j * y.strides[columns_axis]), width, std::byte{0});
      });
  return {};
}

}  // namespace

std::vector<OpDef> one_hot_operators() {
  return {OpDef{.name = "one_hot",
                .doc = "A new axis along which the element that the index names is `on` and all others are `off`; an "
                       "index outside marks none. Source: ONNX operator OneHot; torch.nn.functional.one_hot.",
                .inputs = {{"indices", "i64 or i32; negative ones count from the end"},
                           {"values", "[2], any dtype: off, on"}},
                .outputs = {{"y", "the dtype of values; the shape of indices with the new axis"}},
                .attributes = {{"depth", AttributeKind::dim, "the size of the new axis"},
                               {"axis", AttributeKind::integer, "where the new axis stands in the result"}},
                .infer = infer_one_hot,
                .reference = reference_one_hot},
          OpDef{.name = "trilu",
                .doc = "The upper (or lower) triangle of each matrix, with its diagonal k; the rest is 0. k = 0 is the "
                       "main diagonal, k > 0 lies above it. Source: ONNX operator Trilu; torch.triu, torch.tril.",
                .inputs = {{"x", "any dtype, (…, rows, columns)"}},
                .outputs = {{"y", "the type of x"}},
                .attributes = {{"k", AttributeKind::dim, "the diagonal", Attribute(Dim(0))},
                               {"upper", AttributeKind::boolean, "what lies above stays, else what lies below",
                                Attribute(true)}},
                .infer = infer_trilu,
                .reference = reference_trilu}};
}

}  // namespace polyphase

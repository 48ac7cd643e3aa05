// gather, gather_elements, gather_nd: elements by computed index. Negative indices count from the end of the axis.
#include "ops/cut.h"
#include "ops/families.h"
#include "ops/indices.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_gather(const InferContext& context) {
  TRY_VOID(expect_indices(context));
  const Type& x = context.input(0);
  TRY(const int axis, expect_axis(context, "axis", x.shape.rank()));
  Shape shape;
  for (int i = 0; i < axis; ++i) shape.push_back(x.shape[i]);
  for (const Dim& dim : context.shape(1)) shape.push_back(dim);
  for (int i = axis + 1; i < x.shape.rank(); ++i) shape.push_back(x.shape[i]);
  return std::vector<Type>{{x.dtype, std::move(shape)}};
}

// For each index one copy of a slab: all axes of x but the one that is indexed.
Result<void> reference_gather(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& indices = context.inputs[1];
  const TensorView& y = context.outputs[0];
  if (y.empty()) return {};
  const auto axis = static_cast<std::size_t>(context.attributes.get<std::int64_t>("axis"));
  TensorView slab = y;
  for (int i = 0; i < indices.rank; ++i) slab = without_axis(slab, axis);
  Result<void> done;
  for_each_index<2>(indices.size_span(), {indices.strides.data(), y.strides.data() + axis}, [&](const auto& at) {
    if (!done.ok()) return;
    auto index = index_at(indices, at[0], x.sizes[axis]);
    if (!index.ok()) {
      done = std::move(index).error();
      return;
    }
    TensorView from = without_axis(x, axis);
    TensorView to = slab;
    advance(from, *index * x.strides[axis]);
    advance(to, at[1]);
    copy_elements(from, to);
  });
  return done;
}

Result<std::vector<Type>> infer_gather_elements(const InferContext& context) {
  TRY_VOID(expect_indices(context));
  const Type& x = context.input(0);
  const Shape& indices = context.shape(1);
  TRY(const int axis, expect_axis(context, "axis", x.shape.rank()));
  if (indices.rank() != x.shape.rank()) {
    return refuse(context,
                  "'indices' must have the rank of 'x', found " + indices.text() + " and " + x.shape.text() + ".");
  }
  for (int i = 0; i < indices.rank(); ++i) {
    if (i == axis) continue;
    TRY_VOID(context.require(indices[i], DimCheck::Relation::less_equal, x.shape[i],
                             "gather_elements: axis " + std::to_string(i) + " of 'indices' (" + indices[i].text() +
                                 ") must not exceed that of 'x' (" + x.shape[i].text() + ")."));
  }
  return std::vector<Type>{{x.dtype, indices}};
}

Result<void> reference_gather_elements(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& indices = context.inputs[1];
  const TensorView& y = context.outputs[0];
  const auto axis = static_cast<std::size_t>(context.attributes.get<std::int64_t>("axis"));
  const std::size_t size = size_bytes(x.dtype);
  std::array<std::int64_t, max_rank> strides = x.strides;
  strides[axis] = 0;
  Result<void> done;
  for_each_index<3>(y.size_span(), {y.strides.data(), indices.strides.data(), strides.data()}, [&](const auto& at) {
    if (!done.ok()) return;
    auto index = index_at(indices, at[1], x.sizes[axis]);
    if (!index.ok()) {
      done = std::move(index).error();
      return;
    }
    TensorView from = x;
    TensorView to = y;
    advance(from, at[2] + *index * x.strides[axis]);
    advance(to, at[0]);
    std::copy_n(from.data, size, to.data);
  });
  return done;
}

Result<std::vector<Type>> infer_gather_nd(const InferContext& context) {
  TRY_VOID(expect_indices(context));
  const Type& x = context.input(0);
  const Shape& indices = context.shape(1);
  const auto batch = context.attributes().get<std::int64_t>("batch_dims");
  if (indices.rank() < 1 || batch < 0 || batch >= std::min(indices.rank(), x.shape.rank())) {
    return refuse(context, "batch_dims must be from 0 to below the ranks of 'x' and 'indices', found " +
                               std::to_string(batch) + " for " + x.shape.text() + " and " + indices.text() + ".");
  }
  const auto depth = indices[indices.rank() - 1].constant();
  if (!depth.has_value() || *depth < 1 || *depth > x.shape.rank() - batch) {
    return refuse(context, "the last axis of 'indices' must be a known number from 1 to " +
                               std::to_string(x.shape.rank() - batch) + ", the axes left to index, found " +
                               indices.text() + ".");
  }
  Shape shape;
  for (int i = 0; i + 1 < indices.rank(); ++i) {
    Dim dim = indices[i];
    if (i < batch) {
      const std::string words = "axis " + std::to_string(i) + " of ";
      TRY(dim, expect_equal(context, x.shape[i], words + "'x'", indices[i], words + "'indices'"));
    }
    shape.push_back(dim);
  }
  for (int i = static_cast<int>(batch + *depth); i < x.shape.rank(); ++i) shape.push_back(x.shape[i]);
  return std::vector<Type>{{x.dtype, std::move(shape)}};
}

// One slab x[batch…, tuple…, :] per index tuple.
Result<void> reference_gather_nd(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& indices = context.inputs[1];
  const TensorView& y = context.outputs[0];
  if (y.empty()) return {};
  const auto batch = static_cast<std::size_t>(context.attributes.get<std::int64_t>("batch_dims"));
  const auto tuple_axis = static_cast<std::size_t>(indices.rank - 1);
  const auto depth = static_cast<std::size_t>(indices.sizes[tuple_axis]);
  std::array<std::int64_t, max_rank> x_strides{};
  for (std::size_t i = 0; i < batch; ++i) x_strides[i] = x.strides[i];
  Result<void> done;
  for_each_index<3>({indices.sizes.data(), tuple_axis}, {indices.strides.data(), x_strides.data(), y.strides.data()},
                    [&](const auto& at) {
                      TensorView from = trailing(x, batch + depth);
                      TensorView to = trailing(y, tuple_axis);
                      advance(from, at[1]);
                      advance(to, at[2]);
                      for (std::size_t i = 0; i < depth && done.ok(); ++i) {
                        auto index =
                            index_at(indices, at[0] + static_cast<std::int64_t>(i) * indices.strides[tuple_axis],
                                     x.sizes[batch + i]);
                        if (!index.ok()) {
                          done = std::move(index).error();
                        } else {
                          advance(from, *index * x.strides[batch + i]);
                        }
                      }
                      if (done.ok()) copy_elements(from, to);
                    });
  return done;
}

}  // namespace

std::vector<OpDef> gather_operators() {
  const OperandSpec indices{"indices",
                            "i64 or i32; negative ones count from the end; one out of range is an error at run time"};
  return {
      OpDef{.name = "gather",
            .doc = "Slabs of x along an axis by index, numpy's take.",
            .inputs = {{"x", "any dtype, rank >= 1"}, indices},
            .outputs = {{"y", "the shape of x with the axis replaced by the shape of indices"}},
            .attributes = {{"axis", AttributeKind::integer, "which axis is indexed"}},
            .infer = infer_gather,
            .reference = reference_gather,
            .cut = cut_gather,
            .moves_elements = true},
      OpDef{.name = "gather_elements",
            .doc = "y[i, j, …] = x[i, …, indices[i, j, …], …]: one index per element, along an axis, torch.gather.",
            .inputs = {{"x", "any dtype, rank >= 1"}, indices},
            .outputs = {{"y", "the shape of indices"}},
            .attributes = {{"axis", AttributeKind::integer, "which axis is indexed"}},
            .infer = infer_gather_elements,
            .reference = reference_gather_elements,
            .moves_elements = true},
      OpDef{.name = "gather_nd",
            .doc = "Slabs of x by index tuples: y[b, i, :] = x[b, indices[b, i, 0], indices[b, i, 1], …, :].",
            .inputs = {{"x", "any dtype, rank >= 1"}, indices},
            .outputs = {{"y", "the shape of indices without its last axis, then the axes of x that are not indexed"}},
            .attributes = {{"batch_dims", AttributeKind::integer, "how many leading axes x and indices share",
                            Attribute(std::int64_t{0})}},
            .infer = infer_gather_nd,
            .reference = reference_gather_nd,
            .moves_elements = true},
  };
}

}  // namespace polyphase

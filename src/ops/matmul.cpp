// matmul: matrix products with numpy's rules for vectors and batches.
#include <algorithm>

#include "ops/cut.h"
#include "ops/dense.h"
#include "ops/families.h"
#include "ops/window.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_matmul(const InferContext& context) {
  const Type& a = context.input(0);
  const Type& b = context.input(1);
  const std::string found = "found " + a.text() + " and " + b.text() + ".";
  if (a.dtype != b.dtype || a.dtype == DType::boolean) {
    return Error{ErrorCode::invalid_model, "matmul: the operands must have the same numeric dtype, " + found};
  }
  if (a.shape.rank() == 0 || b.shape.rank() == 0) {
    return Error{ErrorCode::invalid_model, "matmul: the operands must have at least one axis, " + found};
  }
  TRY_VOID(check_products(context, "matmul"));
  const int a_batch = std::max(a.shape.rank() - 2, 0);
  const int b_batch = std::max(b.shape.rank() - 2, 0);
  TRY_VOID(context.require(
      a.shape[a.shape.rank() - 1], DimCheck::Relation::equal, b.shape[b_batch],
      "matmul: the last axis of the first operand must equal the last but one of the second, " + found));
  const int batch = std::max(a_batch, b_batch);
  Shape out;
  for (int i = 0; i < batch; ++i) {
    const int from_a = i - (batch - a_batch);
    const int from_b = i - (batch - b_batch);
    if (from_a < 0 || from_b < 0) {
      out.push_back(from_a < 0 ? b.shape[from_b] : a.shape[from_a]);
      continue;
    }
    TRY(Dim size,
        context.broadcast(a.shape[from_a], b.shape[from_b], "matmul: the batch axes must be equal or 1, " + found));
    out.push_back(std::move(size));
  }
  if (a.shape.rank() > 1) out.push_back(a.shape[a_batch]);
  if (b.shape.rank() > 1) out.push_back(b.shape[b.shape.rank() - 1]);
  return std::vector<Type>{{a.dtype, out}};
}

// Element strides of a row-major operand's batch axes, lined up with `batch` result axes; 0 where it is broadcast.
std::array<std::int64_t, max_rank> batch_strides(const TensorView& view, std::size_t batch, std::int64_t matrix) {
  std::array<std::int64_t, max_rank> out{};
  std::int64_t step = matrix;
  for (int axis = view.rank - 3; axis >= 0; --axis) {
    const std::size_t i = batch - static_cast<std::size_t>(view.rank - 2 - axis);
    if (view.sizes[static_cast<std::size_t>(axis)] != 1) out[i] = step;
    step *= view.sizes[static_cast<std::size_t>(axis)];
  }
  return out;
}

template <typename T>
void multiply_matrices(const TensorView& a, const TensorView& b, const TensorView& y) {
  const auto last = [](const TensorView& view, int back) {
    return view.sizes[static_cast<std::size_t>(view.rank - back)];
  };
  const std::int64_t rows = a.rank > 1 ? last(a, 2) : 1;
  const std::int64_t inner = last(a, 1);
  const std::int64_t columns = b.rank > 1 ? last(b, 1) : 1;
  const std::size_t batch = static_cast<std::size_t>(std::max({a.rank, b.rank, 2}) - 2);
  const std::vector<T> left = dense_values<T>(a);
  const std::vector<T> right = dense_values<T>(b);
  std::vector<T> result(static_cast<std::size_t>(y.element_count()));
  T* to = result.data();
  const auto a_strides = batch_strides(a, batch, rows * inner);
  const auto b_strides = batch_strides(b, batch, inner * columns);
  for_each_index<2>({y.sizes.data(), batch}, {a_strides.data(), b_strides.data()},
                    [&](const std::array<std::int64_t, 2>& at) {
                      const T* factors = left.data() + at[0];
                      for (std::int64_t i = 0; i < rows; ++i, to += columns) {
                        const T* row = right.data() + at[1];
                        for (std::int64_t k = 0; k < inner; ++k, ++factors, row += columns) {
                          for (std::int64_t j = 0; j < columns; ++j) to[j] = multiply_add(to[j], *factors, row[j]);
                        }
                      }
                    });
  store_values(result, y);
}

Result<void> reference_matmul(const ReferenceContext& context) {
  with_accumulator(context.inputs[0].dtype, [&]<typename T>(T) {
    multiply_matrices<T>(context.inputs[0], context.inputs[1], context.outputs[0]);
  });
  return {};
}

// One operand in pieces along its rows, its columns or a batch axis; the other one whole.
CutAnswer cut_matmul(const CutContext& context) {
  const bool by_a = context.state(0).is_cut();
  if (by_a && context.state(1).is_cut()) return "multiplies two operands that both lie in pieces";
  CutState y = context.state(by_a ? 0 : 1);
  const int rank = context.operand(by_a ? 0 : 1).shape.rank();
  const Shape& other = context.operand(by_a ? 1 : 0).shape;
  const int summed = by_a || rank == 1 ? rank - 1 : rank - 2;
  if (y.axis == summed) return "sums over the whole of " + axis_words(y);
  const int result_rank = context.result().shape.rank();
  if (y.axis >= rank - 2) {  // the one of the last two axes that is not summed
    y.axis = by_a && other.rank() > 1 ? result_rank - 2 : result_rank - 1;
    return y;
  }
  const int from_end = rank - 2 - y.axis;  // batch axes meet at their last
  if (other.rank() - 2 >= from_end && !(other[other.rank() - 2 - from_end] == 1))
    return "has an operand of its own values for every place along " + axis_words(y) + ", of shape " + other.text();
  y.axis = result_rank - (other.rank() == 1 ? 1 : 2) - from_end;
  return y;
}

}  // namespace

std::vector<OpDef> matmul_operators() {
  return {OpDef{.name = "matmul",
                .doc = "Matrix product, y[..., i, j] = sum over k of a[..., i, k] * b[..., k, j]. The leading axes are "
                       "batches and broadcast.\n"
                       "A 1-D first operand counts as a row, a 1-D second one as a column, and that axis is left out "
                       "of the result.\n"
                       "Source: numpy.matmul; ONNX operator MatMul.",
                .inputs = {{"a", "(..., I, K) or (K)"}, {"b", "(..., K, J) or (K), the dtype of a"}},
                .outputs = {{"y", "(..., I, J)"}},
                .attributes = {products_attribute()},
                .infer = infer_matmul,
                .reference = reference_matmul,
                .cut = cut_matmul,
                .one_dtype = 0b11,
                .layout = LayoutRule::row_major}};
}

}  // namespace polyphase

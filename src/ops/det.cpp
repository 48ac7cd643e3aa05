// det: determinants, by elimination with the greatest pivot of each column.
#include <algorithm>
#include <cmath>

#include "ops/dense.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_det(const InferContext& context) {
  TRY_VOID(expect_dtype(context, 0, DTypeSet::floats));
  const Type& x = context.input(0);
  const int rank = x.shape.rank();
  if (rank < 2) return refuse(context, "the operand must be matrices, of rank 2 or above, found " + x.text() + ".");
  TRY_VOID(expect_equal(context, x.shape[rank - 2], "the number of rows", x.shape[rank - 1], "the number of columns"));
  Shape shape;
  for (int i = 0; i + 2 < rank; ++i) shape.push_back(x.shape[i]);
  return std::vector<Type>{{x.dtype, std::move(shape)}};
}

double determinant(double* matrix, std::int64_t n) {
  double product = 1;
  for (std::int64_t column = 0; column < n; ++column) {
    std::int64_t pivot = column;
    for (std::int64_t row = column + 1; row < n; ++row) {
      if (std::fabs(matrix[row * n + column]) > std::fabs(matrix[pivot * n + column])) pivot = row;
    }
    if (pivot != column) {
      product = -product;
      std::swap_ranges(matrix + pivot * n, matrix + (pivot + 1) * n, matrix + column * n);
    }
    const double head = matrix[column * n + column];
    product *= head;
    if (head == 0) return product;
    for (std::int64_t row = column + 1; row < n; ++row) {
      const double factor = matrix[row * n + column] / head;
      for (std::int64_t i = column; i < n; ++i) matrix[row * n + i] -= factor * matrix[column * n + i];
    }
  }
  return product;
}

Result<void> reference_det(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  std::vector<double> matrices = dense_values<double>(x);
  const std::int64_t n = x.sizes[static_cast<std::size_t>(x.rank - 1)];
  std::vector<double> result(static_cast<std::size_t>(context.outputs[0].element_count()));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = determinant(matrices.data() + static_cast<std::int64_t>(i) * n * n, n);
  store_values(result, context.outputs[0]);
  return {};
}

}  // namespace

std::vector<OpDef> det_operators() {
  return {
      OpDef{.name = "det",
            .doc = "The determinant of each square matrix; 1 of an empty one. Source: ONNX operator Det; torch.det.",
            .inputs = {{"x", "(…, n, n), float"}},
            .outputs = {{"y", "the shape of x without its last two axes"}},
            .infer = infer_det,
            .reference = reference_det}};
}

}  // namespace polyphase

// softmax, log_softmax along one axis.
#include <algorithm>
#include <cmath>

#include "ops/cut.h"
#include "ops/dense.h"
#include "ops/families.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_along_axis(const InferContext& context, const std::string& op) {
  const Type& x = context.input(0);
  const std::int64_t axis = context.attributes().get<std::int64_t>("axis");
  if (!is_float(x.dtype))
    return Error{ErrorCode::invalid_model, op + ": the operand must be of a float dtype, found " + x.text() + "."};
  if (axis < 0 || axis >= x.shape.rank()) {
    return Error{ErrorCode::invalid_model, op + ": attribute 'axis' must name an axis of the operand " + x.text() +
                                               ", found " + std::to_string(axis) + "."};
  }
  return std::vector<Type>{x};
}

// Subtracting the largest value first keeps exp finite; the result does not change.
void normalise_exponentials(double* first, std::int64_t count, std::int64_t step, bool logarithm) {
  double largest = -INFINITY;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, first[i * step]);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += std::exp(first[i * step] - largest);
  for (std::int64_t i = 0; i < count; ++i) {
    double& value = first[i * step];
    value = logarithm ? value - largest - std::log(sum) : std::exp(value - largest) / sum;
  }
}

Result<void> along_axis(const ReferenceContext& context, bool logarithm) {
  const TensorView& x = context.inputs[0];
  const auto axis = static_cast<std::size_t>(context.attributes.get<std::int64_t>("axis"));
  std::vector<double> values = dense_values<double>(x);
  const std::int64_t count = x.sizes[axis];
  std::int64_t step = 1;
  for (std::size_t i = axis + 1; i < static_cast<std::size_t>(x.rank); ++i) step *= x.sizes[i];
  const auto total = static_cast<std::int64_t>(values.size());
  for (std::int64_t block = 0; block < total; block += count * step) {
    for (std::int64_t i = 0; i < step; ++i) normalise_exponentials(values.data() + block + i, count, step, logarithm);
  }
  store_values(values, context.outputs[0]);
  return {};
}

OpDef softmax_operator(const std::string& name, const std::string& formula, decltype(OpDef::infer) infer,
                       decltype(OpDef::reference) reference) {
  return OpDef{.name = name,
               .doc = formula +
                      ", the sum over the elements along one axis.\nSource: ONNX operators Softmax-13 and "
                      "LogSoftmax-13; torch.softmax.",
               .inputs = {{"x", "any rank above 0, float"}},
               .outputs = {{"y", "the shape of x"}},
               .attributes = {{"axis", AttributeKind::integer, "the axis, 0 to rank - 1"}},
               .infer = infer,
               .reference = reference,
               .cut = cut_beside_axis,
               .layout = LayoutRule::per_axis};
}

}  // namespace

std::vector<OpDef> softmax_operators() {
  return {softmax_operator(
              "softmax", "y = exp(x) / sum(exp(x))",
              [](const InferContext& context) { return infer_along_axis(context, "softmax"); },
              [](const ReferenceContext& context) { return along_axis(context, false); }),
          softmax_operator(
              "log_softmax", "y = x - log(sum(exp(x)))",
              [](const InferContext& context) { return infer_along_axis(context, "log_softmax"); },
              [](const ReferenceContext& context) { return along_axis(context, true); })};
}

}  // namespace polyphase

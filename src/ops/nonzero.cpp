// count_nonzero, nonzero: which elements are not 0. The count, bound to a symbol, is a size of the list.
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

// f(i) with the row-major number of each element that is not 0, in order. NaN is not 0.
template <typename F>
void for_each_nonzero(const TensorView& x, F&& f) {
  std::int64_t first = 0;
  const auto search = [&]<typename Number>(Number) {
    for_each_block<1>(x.size_span(), {x.strides.data()}, RowOrder::logical,
                      [&](const auto& at, std::int64_t count, const auto& step) {
                        Number numbers[block_elements];
                        read_block(element_at(x, at[0]), x.dtype, step[0], count, numbers);
                        for (std::int64_t i = 0; i < count; ++i) {
                          if (!(numbers[i] == Number{0})) f(first + i);
                        }
                        first += count;
                      });
  };
  if (is_float(x.dtype)) {
    search(double{});
  } else {
    search(std::int64_t{});
  }
}

std::int64_t count_of(const TensorView& x) {
  std::int64_t count = 0;
  for_each_nonzero(x, [&](std::int64_t) { ++count; });
  return count;
}

Result<std::vector<Type>> infer_nonzero_count(const InferContext&) { return std::vector<Type>{{DType::i64, Shape{}}}; }

Result<void> reference_nonzero_count(const ReferenceContext& context) {
  *context.outputs[0].as<std::int64_t>() = count_of(context.inputs[0]);
  return {};
}

Result<std::vector<Type>> infer_nonzero(const InferContext& context) {
  const Dim& count = context.attributes().get<Dim>("count");
  TRY_VOID(context.require(0, DimCheck::Relation::less_equal, count,
                           "nonzero: the count must not be negative, found " + count.text() + "."));
  return std::vector<Type>{{DType::i64, Shape{Dim(context.shape(0).rank()), count}}};
}

Result<void> reference_nonzero(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& y = context.outputs[0];
  const std::int64_t found = count_of(x);
  if (found != y.sizes[1]) {
    return Error{ErrorCode::invalid_argument, "the operand has " + std::to_string(found) +
                                                  " elements that are not 0; the attribute 'count' says " +
                                                  std::to_string(y.sizes[1]) + "."};
  }
  std::int64_t column = 0;
  for_each_nonzero(x, [&](std::int64_t element) {
    for (std::int64_t axis = x.rank - 1; axis >= 0; --axis) {
      const std::int64_t size = x.sizes[static_cast<std::size_t>(axis)];
      y.as<std::int64_t>()[axis * y.strides[0] + column * y.strides[1]] = element % size;
      element /= size;
    }
    ++column;
  });
  return {};
}

}  // namespace

std::vector<OpDef> nonzero_operators() {
  return {OpDef{.name = "count_nonzero",
                .doc = "How many elements are not 0 (or not false). NaN is not 0.",
                .inputs = {{"x", "any dtype and shape"}},
                .outputs = {{"count", "i64, a scalar"}},
                .infer = infer_nonzero_count,
                .reference = reference_nonzero_count},
          OpDef{.name = "nonzero",
                .doc = "The indices of all elements that are not 0, in row-major order, one column each. Source: ONNX "
                       "operator NonZero; torch.nonzero transposed.",
                .inputs = {{"x", "any dtype and shape"}},
                .outputs = {{"indices", "i64, [rank of x, count]"}},
                .attributes = {{"count", AttributeKind::dim,
                                "how many elements are not 0: a symbol that `bind` gave to count_nonzero's result"}},
                .infer = infer_nonzero,
                .reference = reference_nonzero}};
}

}  // namespace polyphase

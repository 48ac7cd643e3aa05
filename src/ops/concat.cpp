// concat: tensors one after the other along an axis.
#include "ops/cut.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_concat(const InferContext& context) {
  Type result = context.input(0);
  TRY(const int axis, expect_axis(context, "axis", result.shape.rank()));
  for (std::size_t i = 1; i < context.input_count(); ++i) {
    TRY_VOID(expect_same_dtype(context, 0, i));
    const Shape& shape = context.shape(i);
    if (shape.rank() != result.shape.rank()) {
      return refuse(context, "all operands must have the same rank, found " + context.shape(0).text() + " and " +
                                 shape.text() + ".");
    }
    for (int other = 0; other < shape.rank(); ++other) {
      if (other == axis) {
        result.shape[other] += shape[other];
        continue;
      }
      const std::string words = "axis " + std::to_string(other) + " of ";
      TRY(result.shape[other], expect_equal(context, result.shape[other], words + operand_name(context, 0),
                                            shape[other], words + operand_name(context, i)));
    }
  }
  return std::vector<Type>{std::move(result)};
}

Result<void> reference_concat(const ReferenceContext& context) {
  const auto axis = static_cast<std::size_t>(context.attributes.get<std::int64_t>("axis"));
  TensorView to = context.outputs[0];
  for (const TensorView& from : context.inputs) {
    to.sizes[axis] = from.sizes[axis];
    copy_elements(from, to);
    to.data += from.sizes[axis] * to.strides[axis] * static_cast<std::int64_t>(size_bytes(to.dtype));
  }
  return {};
}

}  // namespace

std::vector<OpDef> concat_operators() {
  return {OpDef{.name = "concat",
                .doc = "The operands one after the other along an axis.",
                .inputs = {{.name = "x", .doc = "equal dtypes, ranks and sizes but for the axis", .variadic = true}},
                .outputs = {{"y", "the sizes of x, added along the axis"}},
                .attributes = {{"axis", AttributeKind::integer, "which axis, from 0"}},
                .infer = infer_concat,
                .reference = reference_concat,
                .cut = cut_concat,
                .one_dtype = 0b1,
                .layout = LayoutRule::per_axis,
                .moves_elements = true}};
}

}  // namespace polyphase

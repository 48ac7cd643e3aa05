// where, cast, identity, bind: choosing, converting and naming elements.
#include "ops/cut.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_where(const InferContext& context) {
  TRY_VOID(expect_dtype(context, 0, DTypeSet::booleans));
  TRY_VOID(expect_same_dtype(context, 1, 2));
  TRY(const Shape branches, broadcast_operands(context, 1, 2));
  TRY(Shape shape, broadcast_shapes(context, context.shape(0), "'condition'", branches, "'x' and 'y' together"));
  return std::vector<Type>{{context.input(1).dtype, std::move(shape)}};
}

template <typename Bits>
void choose(const ReferenceContext& context) {
  const TensorView& result = context.outputs[0];
  const TensorView condition = broadcast_view(context.inputs[0], result.size_span());
  const TensorView x = broadcast_view(context.inputs[1], result.size_span());
  const TensorView y = broadcast_view(context.inputs[2], result.size_span());
  for_each_row<4>(result.size_span(),
                  {result.strides.data(), condition.strides.data(), x.strides.data(), y.strides.data()}, RowOrder::any,
                  [&](const auto& at, std::int64_t count, const auto& step) {
                    Bits* to = result.as<Bits>() + at[0];
                    const std::uint8_t* test = condition.as<std::uint8_t>() + at[1];
                    const Bits* yes = x.as<Bits>() + at[2];
                    const Bits* no = y.as<Bits>() + at[3];
                    for (std::int64_t i = 0; i < count; ++i) {
                      to[i * step[0]] = test[i * step[1]] != 0 ? yes[i * step[2]] : no[i * step[3]];
                    }
                  });
}

Result<void> reference_where(const ReferenceContext& context) {
  switch (size_bytes(context.outputs[0].dtype)) {
    case 1:
      choose<std::uint8_t>(context);
      break;
    case 2:
      choose<std::uint16_t>(context);
      break;
    case 4:
      choose<std::uint32_t>(context);
      break;
    default:
      choose<std::uint64_t>(context);
      break;
  }
  return {};
}

Contents where_contents(const InferContext& context) {
  std::vector<TensorView> views;
  const auto shape = infer_where(context);
  if (!shape.ok()) return std::nullopt;
  const std::vector<std::int64_t> sizes = shape->front().shape.evaluate({}).value();
  for (std::size_t i = 0; i < 3; ++i) {
    const auto own = context.shape(i).evaluate({});
    if (context.contents(i) == nullptr || !own.has_value()) return std::nullopt;
    views.push_back(broadcast_view({TensorDesc::row_major(DType::i64, *own), nullptr}, sizes));
  }
  std::vector<Dim> out;
  bool known = true;
  for_each_index<3>(sizes, {views[0].strides.data(), views[1].strides.data(), views[2].strides.data()},
                    [&](const auto& at) {
                      const Dim& condition = (*context.contents(0))[static_cast<std::size_t>(at[0])];
                      const Dim& x = (*context.contents(1))[static_cast<std::size_t>(at[1])];
                      const Dim& y = (*context.contents(2))[static_cast<std::size_t>(at[2])];
                      known = known && (condition.is_constant() || x == y);
                      out.push_back(condition == 0 ? y : x);
                    });
  return known ? Contents(std::move(out)) : std::nullopt;
}

Result<std::vector<Type>> infer_cast(const InferContext& context) {
  return std::vector<Type>{{context.attributes().get<DType>("to"), context.shape(0)}};
}

template <typename Number>
void convert(const TensorView& x, const TensorView& y) {
  for_each_block<2>(y.size_span(), {y.strides.data(), x.strides.data()}, RowOrder::any,
                    [&](const auto& at, std::int64_t count, const auto& step) {
                      Number values[block_elements];
                      read_block(element_at(x, at[1]), x.dtype, step[1], count, values);
                      if constexpr (std::is_integral_v<Number>) {
                        write_block(element_at(y, at[0]), y.dtype, step[0], count, values, x.dtype == DType::u64);
                      } else {
                        write_block(element_at(y, at[0]), y.dtype, step[0], count, values);
                      }
                    });
}

Result<void> reference_cast(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  if (is_float(x.dtype)) {
    convert<double>(x, context.outputs[0]);
  } else {
    convert<std::int64_t>(x, context.outputs[0]);
  }
  return {};
}

// Sizes survive where the new dtype surely holds them.
Contents cast_contents(const InferContext& context) {
  const DType to = context.attributes().get<DType>("to");
  if (context.contents(0) == nullptr) return std::nullopt;
  std::vector<Dim> out;
  for (const Dim& x : *context.contents(0)) {
    if (to == DType::boolean) {
      if (!x.is_constant() && !surely_different(x, 0)) return std::nullopt;
      out.emplace_back(x == 0 ? 0 : 1);
    } else if (x.is_constant()) {
      std::byte element[8];
      store_integer(element, to, x.value());
      out.emplace_back(load_integer(element, to));
    } else if (to == DType::i64 || to == DType::i32) {
      out.push_back(x);
    } else {
      return std::nullopt;
    }
  }
  return out;
}

Result<std::vector<Type>> infer_identity(const InferContext& context) { return std::vector<Type>{context.input(0)}; }

Result<void> reference_identity(const ReferenceContext& context) {
  copy_elements(context.inputs[0], context.outputs[0]);
  return {};
}

Result<std::vector<Type>> infer_bind(const InferContext& context) {
  const Type& x = context.input(0);
  const auto& symbols = context.attributes().get<std::vector<Dim>>("symbols");
  if (x.dtype != DType::i64 && x.dtype != DType::i32) {
    return refuse(context, "sizes must be i64 or i32, found " + std::string(name_of(x.dtype)) + ".");
  }
  if (x.shape.rank() > 1) return refuse(context, "sizes must be a vector or a scalar, found " + x.text() + ".");
  const Dim count = x.shape.element_count();
  if (!(count == Dim(static_cast<std::int64_t>(symbols.size())))) {
    return refuse(context, "needs one symbol per element, found " + std::to_string(symbols.size()) + " symbols for " +
                               x.text() + ".");
  }
  return std::vector<Type>{{DType::i64, x.shape}};
}

Contents bind_contents(const InferContext& context) { return context.attributes().get<std::vector<Dim>>("symbols"); }

}  // namespace

std::vector<OpDef> select_operators() {
  OpDef cast{.name = "cast",
             .doc =
                 "Converts the dtype. Floats round once to nearest even; floats to integers truncate towards zero and "
                 "saturate, NaN gives 0; integers to integers wrap; to bool: x != 0.",
             .inputs = {{"x", "any dtype and shape"}},
             .outputs = {{"y", "the shape of x"}},
             .attributes = {{"to", AttributeKind::dtype, "the dtype of the result"}},
             .infer = infer_cast,
             .reference = reference_cast,
             .layout = LayoutRule::elementwise,
             .contents = cast_contents};
  cast.elementwise = true;
  cast.cut = cut_elementwise;
  return {
      OpDef{.name = "where",
            .doc = "x where the condition holds, else y; all three broadcast by numpy's rule.",
            .inputs = {{"condition", "bool"}, {"x", "any dtype"}, {"y", "the dtype of x"}},
            .outputs = {{"z", "the broadcast shape"}},
            .infer = infer_where,
            .reference = reference_where,
            .cut = cut_elementwise,
            .one_dtype = 0b110,
            .layout = LayoutRule::elementwise,
            .contents = where_contents},
      std::move(cast),
      OpDef{.name = "identity",
            .doc = "The operand itself.",
            .inputs = {{"x", "any dtype and shape"}},
            .outputs = {{"y", "the same"}},
            .infer = infer_identity,
            .reference = reference_identity,
            .cut = cut_elementwise,
            .layout = LayoutRule::elementwise,
            .moves_elements = true},
      OpDef{.name = "bind",
            .doc = "Gives the elements of x names: from here on the symbols stand for them, as sizes born from data.",
            .inputs = {{"x", "i64 or i32, a vector or a scalar"}},
            .outputs = {{"y", "i64, the shape of x"}},
            .attributes = {{"symbols", AttributeKind::dims, "one symbol per element"}},
            .infer = infer_bind,
            .reference = reference_cast,
            .contents = bind_contents},
  };
}

}  // namespace polyphase

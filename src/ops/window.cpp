// Rules and spans of sliding windows.
#include "ops/window.h"

#include <algorithm>

namespace polyphase {
namespace {

template <typename T>
Result<void> check_length(const std::vector<T>& values, const std::string& op, const std::string& name, int spatial) {
  if (values.size() == static_cast<std::size_t>(spatial)) return {};
  return Error{ErrorCode::invalid_model, op + ": attribute '" + name + "' must have one entry per spatial axis (" +
                                             std::to_string(spatial) + "), found " + print_attribute(values) + "."};
}

Result<void> check_positive(const std::vector<std::int64_t>& values, const std::string& op, const std::string& name) {
  if (std::all_of(values.begin(), values.end(), [](std::int64_t v) { return v >= 1; })) return {};
  return Error{ErrorCode::invalid_model, op + ": every entry of attribute '" + name + "' must be at least 1, found " +
                                             print_attribute(values) + "."};
}

}  // namespace

Result<WindowAttributes> window_attributes(const InferContext& context, const std::string& op, int spatial) {
  const Attributes& given = context.attributes();
  WindowAttributes out;
  out.stride = given.get<std::vector<std::int64_t>>("stride");
  out.dilation = given.get<std::vector<std::int64_t>>("dilation");
  TRY_VOID(check_length(out.stride, op, "stride", spatial));
  TRY_VOID(check_length(out.dilation, op, "dilation", spatial));
  TRY_VOID(check_positive(out.stride, op, "stride"));
  TRY_VOID(check_positive(out.dilation, op, "dilation"));
  out.pre = given.get<std::vector<Dim>>("pre");
  out.post = given.get<std::vector<Dim>>("post");
  TRY_VOID(check_length(out.pre, op, "pre", spatial));
  TRY_VOID(check_length(out.post, op, "post", spatial));
  return out;
}

Result<WindowAttributes> check_convolution(const InferContext& context, const std::string& op) {
  const Type& x = context.input(0);
  const Type& w = context.input(1);
  const std::string found = "found " + x.text() + " and weight " + w.text() + ".";
  if (x.shape.rank() < 3 || x.shape.rank() > 5) {
    return Error{ErrorCode::invalid_model,
                 op + ": the operand must be (N, C, one to three spatial axes), rank 3 to 5, found " + x.text() + "."};
  }
  if (w.shape.rank() != x.shape.rank()) {
    return Error{ErrorCode::invalid_model, op + ": operand and weight must have the same rank, " + found};
  }
  if (x.dtype == DType::boolean || w.dtype != x.dtype) {
    return Error{ErrorCode::invalid_model, op + ": operand and weight must have the same numeric dtype, " + found};
  }
  const std::int64_t groups = context.attributes().get<std::int64_t>("groups");
  if (groups < 1) {
    return Error{ErrorCode::invalid_model,
                 op + ": attribute 'groups' must be at least 1, found " + std::to_string(groups) + "."};
  }
  TRY_VOID(check_products(context, op));
  for (int axis = 2; axis < w.shape.rank(); ++axis) {
    TRY_VOID(context.require(1, DimCheck::Relation::less_equal, w.shape[axis],
                             op + ": every kernel size must be at least 1, found weight " + w.text() + "."));
  }
  return window_attributes(context, op, x.shape.rank() - 2);
}

Result<void> check_products(const InferContext& context, const std::string& op) {
  const auto products = context.attributes().get<DType>("products");
  for (const DType known : {DType::f32, DType::bf16, DType::i32, DType::i8}) {
    if (products == known) return {};
  }
  return Error{ErrorCode::invalid_model, op + ": attribute 'products' must be f32, bf16, i32 or i8, found " +
                                             std::string(name_of(products)) + "."};
}

AttributeSpec products_attribute() {
  return {"products", AttributeKind::dtype,
          "the narrowest type that a kernel may round floats to before it multiplies them, f32 or bf16; sums are never "
          "narrower than f32. i32: the floats are whole numbers whose sums f32 holds exactly, and no others may be "
          "computed from them; i8: the same, and bf16 holds them as well",
          Attribute(DType::f32)};
}

AttributeSpec transformed_attribute() {
  return {"rounds_transformed", AttributeKind::boolean,
          "whether a kernel may also round to `products` what it has computed from the operands, as minimal filtering "
          "does; else only the operands themselves",
          Attribute(false)};
}

AttributeSpec fours_attribute() {
  return {
      "filters_fours", AttributeKind::boolean,
      "whether a kernel may filter four outputs at once along each of two axes, F(4, 2) and F(4, 3), with some three "
      "times the error of direct sums in the L2 norm",
      Attribute(false)};
}

Result<void> check_bias(const InferContext& context, const std::string& op, const Dim& channels) {
  if (!context.has_input(2)) return {};
  const Type& bias = context.input(2);
  const std::string message = op + ": the bias must be " + Type{context.input(0).dtype, Shape{channels}}.text() +
                              ", one entry per output channel, found " + bias.text() + ".";
  if (bias.shape.rank() != 1 || bias.dtype != context.input(0).dtype) return Error{ErrorCode::invalid_model, message};
  return context.require(bias.shape[0], DimCheck::Relation::equal, channels, message);
}

std::vector<TapSpan> tap_spans(const WindowAxis& axis) {
  std::vector<TapSpan> out;
  if (axis.small_size == 0 || axis.big_size == 0) return out;
  const std::int64_t reach = (axis.small_size - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1;
  const std::int64_t pre = std::clamp(axis.pre, -axis.big_size, reach);  // beyond these the grids do not meet at all
  // Only taps that meet the operand somewhere: a window may be far longer than the operand.
  const std::int64_t from =
      std::max<std::int64_t>(0, ceil_div(pre - (axis.small_size - 1) * axis.stride, axis.dilation));
  const std::int64_t to = std::min(axis.taps, floor_div(axis.big_size - 1 + pre, axis.dilation) + 1);
  for (std::int64_t tap = from; tap < to; ++tap) {
    const std::int64_t shift = tap * axis.dilation - pre;
    const std::int64_t first = std::max<std::int64_t>(0, ceil_div(-shift, axis.stride));
    const std::int64_t end = std::min(axis.small_size, ceil_div(axis.big_size - shift, axis.stride));
    if (first < end) out.push_back({tap, first, first * axis.stride + shift, end - first});
  }
  return out;
}

Window::Window(const std::vector<WindowAxis>& axes) {
  CHECK(axes.size() <= 3);
  std::copy(axes.begin(), axes.end(), axes_.end() - static_cast<std::ptrdiff_t>(axes.size()));
  for (std::size_t i = 0; i < 3; ++i) spans_[i] = tap_spans(axes_[i]);
}

Window make_window(const Attributes& attributes, const std::vector<std::int64_t>& taps, const TensorView& small,
                   const TensorView& big) {
  const auto& stride = attributes.get<std::vector<std::int64_t>>("stride");
  const auto& dilation = attributes.get<std::vector<std::int64_t>>("dilation");
  const std::vector<std::int64_t> pre = integers_of(attributes.get<std::vector<Dim>>("pre"));
  std::vector<WindowAxis> axes;
  for (std::size_t i = 0; i < taps.size(); ++i)
    axes.push_back({small.sizes[i + 2], big.sizes[i + 2], taps[i], stride[i], dilation[i], pre[i]});
  return Window(axes);
}

}  // namespace polyphase

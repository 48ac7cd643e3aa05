// conv: cross-correlation with stride, dilation and groups over one to three spatial axes.
#include <algorithm>

#include "ops/cut.h"
#include "ops/dense.h"
#include "ops/families.h"
#include "ops/window.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_conv(const InferContext& context) {
  TRY(const WindowAttributes window, check_convolution(context, "conv"));
  const Type& x = context.input(0);
  const Shape& w = context.shape(1);
  const std::int64_t groups = context.attributes().get<std::int64_t>("groups");
  const std::string found =
      "found operand " + x.text() + ", weight " + w.text() + ", groups=" + std::to_string(groups) + ".";
  TRY_VOID(context.require(w[1] * Dim(groups), DimCheck::Relation::equal, x.shape[1],
                           "conv: dimension 1 of the weight times groups must equal the operand's channels, " + found));
  TRY_VOID(context.require(floor_mod(w[0], Dim(groups)), DimCheck::Relation::equal, 0,
                           "conv: groups must divide dimension 0 of the weight, the output channels, " + found));
  TRY_VOID(check_bias(context, "conv", w[0]));
  Shape out{x.shape[0], w[0]};
  for (int axis = 2; axis < x.shape.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis - 2);
    const Dim kernel = dilated_kernel(w[axis], window.dilation[i]);
    const Dim padded = x.shape[axis] + window.pre[i] + window.post[i];
    TRY_VOID(context.require(kernel, DimCheck::Relation::less_equal, padded,
                             "conv: the kernel must fit into the padded operand on axis " + std::to_string(axis) +
                                 ", but it spans " + kernel.text() + " and the padded size is " + padded.text() + "."));
    out.push_back(floor_div(padded - kernel, Dim(window.stride[i])) + 1);
  }
  return std::vector<Type>{{x.dtype, out}};
}

// One result plane at a time; each tap adds a scaled, shifted row of the operand to a row of the plane.
template <typename T>
void convolve(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& w = context.inputs[1];
  const TensorView& y = context.outputs[0];
  const std::int64_t groups = context.attributes.get<std::int64_t>("groups");
  const Window window = make_window(context.attributes, {w.sizes.data() + 2, w.sizes.data() + w.rank}, y, x);
  const std::vector<T> operand = dense_values<T>(x);
  const std::vector<T> weight = dense_values<T>(w);
  const std::vector<T> bias =
      context.has_input(2) ? dense_values<T>(context.inputs[2]) : std::vector<T>(static_cast<std::size_t>(w.sizes[0]));
  std::vector<T> result(static_cast<std::size_t>(y.element_count()));
  const std::int64_t group_inputs = w.sizes[1];
  const std::int64_t group_outputs = w.sizes[0] / groups;
  const std::int64_t step = window.inner_stride();
  T* plane = result.data();
  for (std::int64_t n = 0; n < y.sizes[0]; ++n) {
    for (std::int64_t oc = 0; oc < w.sizes[0]; ++oc, plane += window.small_count()) {
      std::fill(plane, plane + window.small_count(), bias[static_cast<std::size_t>(oc)]);
      for (std::int64_t ic = 0; ic < group_inputs; ++ic) {
        const T* image =
            operand.data() + (n * x.sizes[1] + oc / group_outputs * group_inputs + ic) * window.big_count();
        const T* taps = weight.data() + (oc * group_inputs + ic) * window.tap_count();
        window.for_each_row([&](std::int64_t tap, std::int64_t small, std::int64_t big, std::int64_t count) {
          const T factor = taps[tap];
          T* to = plane + small;
          const T* from = image + big;
          for (std::int64_t i = 0; i < count; ++i) to[i] = multiply_add(to[i], from[i * step], factor);
        });
      }
    }
  }
  store_values(result, y);
}

Result<void> reference_conv(const ReferenceContext& context) {
  with_accumulator(context.inputs[0].dtype, [&]<typename T>(T) { convolve<T>(context); });
  return {};
}

}  // namespace

std::vector<OpDef> conv_operators() {
  return {OpDef{
      .name = "conv",
      .doc =
          "Convolution (cross-correlation, as in every deep-learning system) over one to three spatial axes with zero "
          "padding:\n"
          "y[n, m, o] = b[m] + sum over c, t of x[n, c, o*stride + t*dilation - pre] * w[m, c, t], where places "
          "outside x count as 0.\n"
          "Output size per axis: floor((I + pre + post - (k-1)*dilation - 1) / stride) + 1. Output channel m reads the "
          "input channels\n"
          "of group m / (Cout/groups); groups = C is the depthwise convolution. Negative padding crops the operand.\n"
          "Source: ONNX operator Conv; torch.nn.functional.conv1d, conv2d, conv3d.",
      .inputs = {{"x", "(N, C, spatial...), one to three spatial axes"},
                 {"w", "(Cout, C/groups, k...), the dtype of x"},
                 {"b", "(Cout), the dtype of x; absent means 0", true}},
      .outputs = {{"y", "(N, Cout, spatial...)"}},
      .attributes = {{"stride", AttributeKind::integers,
                      "distance of neighbouring windows per spatial axis, at least 1"},
                     {"dilation", AttributeKind::integers,
                      "distance of neighbouring taps per spatial axis, at least 1"},
                     {"groups", AttributeKind::integer, "the channels fall into this many independent groups",
                      Attribute(std::int64_t{1})},
                     {"pre", AttributeKind::dims, "zeros before the first element per spatial axis; negative crops"},
                     {"post", AttributeKind::dims, "zeros after the last element per spatial axis; negative crops"},
                     products_attribute(),
                     transformed_attribute(),
                     fours_attribute()},
      .infer = infer_conv,
      .reference = reference_conv,
      .cut = cut_conv,
      .one_dtype = 0b111,
      .layout = LayoutRule::spatial}};
}

}  // namespace polyphase

// conv_transpose: the transposed convolution with stride, dilation, groups and a crop of any sign; output_padding is
// not known here.
#include <algorithm>

#include "ops/cut.h"
#include "ops/dense.h"
#include "ops/families.h"
#include "ops/window.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_conv_transpose(const InferContext& context) {
  TRY(const WindowAttributes window, check_convolution(context, "conv_transpose"));
  const Type& x = context.input(0);
  const Shape& w = context.shape(1);
  const Dim groups(context.attributes().get<std::int64_t>("groups"));
  TRY_VOID(
      context.require(w[0], DimCheck::Relation::equal, x.shape[1],
                      "conv_transpose: dimension 0 of the weight must equal the operand's channels, found operand " +
                          x.text() + ", weight " + w.text() + "."));
  TRY_VOID(context.require(floor_mod(x.shape[1], groups), DimCheck::Relation::equal, 0,
                           "conv_transpose: groups must divide the operand's channels, found operand " + x.text() +
                               ", groups=" + groups.text() + "."));
  const Dim channels = w[1] * groups;
  TRY_VOID(check_bias(context, "conv_transpose", channels));
  Shape out{x.shape[0], channels};
  for (int axis = 2; axis < x.shape.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis - 2);
    const Dim kernel = dilated_kernel(w[axis], window.dilation[i]);
    const Dim size = (x.shape[axis] - 1) * Dim(window.stride[i]) + kernel - window.pre[i] - window.post[i];
    TRY_VOID(context.require(0, DimCheck::Relation::less_equal, size,
                             "conv_transpose: the output size (I-1)*stride + (k-1)*dilation + 1 - pre - post must not "
                             "be negative, but on axis " +
                                 std::to_string(axis) + " it is " + size.text() + "."));
    out.push_back(size);
  }
  return std::vector<Type>{{x.dtype, out}};
}

// One result plane at a time, filled with the bias; each tap adds a scaled row of the operand to every stride-th place
// of a row.
template <typename T>
void scatter_products(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& w = context.inputs[1];
  const TensorView& y = context.outputs[0];
  const std::int64_t groups = context.attributes.get<std::int64_t>("groups");
  const Window window = make_window(context.attributes, {w.sizes.data() + 2, w.sizes.data() + w.rank}, x, y);
  const std::vector<T> operand = dense_values<T>(x);
  const std::vector<T> weight = dense_values<T>(w);
  const std::vector<T> bias =
      context.has_input(2) ? dense_values<T>(context.inputs[2]) : std::vector<T>(static_cast<std::size_t>(y.sizes[1]));
  std::vector<T> result(static_cast<std::size_t>(y.element_count()));
  const std::int64_t group_inputs = x.sizes[1] / groups;
  const std::int64_t group_outputs = w.sizes[1];
  const std::int64_t step = window.inner_stride();
  T* plane = result.data();
  for (std::int64_t n = 0; n < y.sizes[0]; ++n) {
    for (std::int64_t oc = 0; oc < y.sizes[1]; ++oc, plane += window.big_count()) {
      std::fill(plane, plane + window.big_count(), bias[static_cast<std::size_t>(oc)]);
      for (std::int64_t i = 0; i < group_inputs; ++i) {
        const std::int64_t ic = oc / group_outputs * group_inputs + i;
        const T* image = operand.data() + (n * x.sizes[1] + ic) * window.small_count();
        const T* taps = weight.data() + (ic * group_outputs + oc % group_outputs) * window.tap_count();
        window.for_each_row([&](std::int64_t tap, std::int64_t small, std::int64_t big, std::int64_t count) {
          const T factor = taps[tap];
          T* to = plane + big;
          const T* from = image + small;
          for (std::int64_t j = 0; j < count; ++j) to[j * step] = multiply_add(to[j * step], from[j], factor);
        });
      }
    }
  }
  store_values(result, y);
}

Result<void> reference_conv_transpose(const ReferenceContext& context) {
  with_accumulator(context.inputs[0].dtype, [&]<typename T>(T) { scatter_products<T>(context); });
  return {};
}

}  // namespace

std::vector<OpDef> conv_transpose_operators() {
  return {OpDef{
      .name = "conv_transpose",
      .doc = "Transposed convolution over one to three spatial axes: every input element adds its multiple of the "
             "kernel to the output,\n"
             "y[n, m, i*stride + t*dilation - pre] += x[n, c, i] * w[c, m, t], on top of the bias b[m]; what falls "
             "outside y is dropped.\n"
             "Output size per axis: (I-1)*stride + (k-1)*dilation + 1 - pre - post. The crop pre, post may have any "
             "sign and may be computed;\n"
             "a negative one makes the output grow by places that hold the bias, as do the places that no tap reaches "
             "(kernel < stride).\n"
             "PyTorch's padding p and output_padding op are pre = p, post = p - op; ONNX's pads, auto_pad and "
             "output_shape reduce likewise.\n"
             "Source: ONNX operator ConvTranspose; torch.nn.functional.conv_transpose1d, conv_transpose2d, "
             "conv_transpose3d;\n"
             "Dumoulin and Visin, A guide to convolution arithmetic for deep learning.",
      .inputs = {{"x", "(N, C, spatial...), one to three spatial axes"},
                 {"w", "(C, Cout/groups, k...), the dtype of x"},
                 {"b", "(Cout), the dtype of x; absent means 0", true}},
      .outputs = {{"y", "(N, Cout, spatial...)"}},
      .attributes = {{"stride", AttributeKind::integers,
                      "distance in the output of neighbouring inputs per spatial axis, at least 1"},
                     {"dilation", AttributeKind::integers,
                      "distance in the output of neighbouring taps per spatial axis, at least 1"},
                     {"groups", AttributeKind::integer, "the channels fall into this many independent groups",
                      Attribute(std::int64_t{1})},
                     {"pre", AttributeKind::dims, "elements cut off at the beginning per spatial axis; negative adds"},
                     {"post", AttributeKind::dims, "elements cut off at the end per spatial axis; negative adds"},
                     products_attribute(),
                     transformed_attribute(),
                     fours_attribute()},
      .infer = infer_conv_transpose,
      .reference = reference_conv_transpose,
      .cut = cut_conv_transpose,
      .one_dtype = 0b111,
      .layout = LayoutRule::spatial}};
}

}  // namespace polyphase

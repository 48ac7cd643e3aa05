// pad: elements before and after, on any axis, by four rules; a negative amount crops.
#include "ops/cut.h"
#include "ops/families.h"
#include "ops/pick.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_pad(const InferContext& context) {
  const Type& x = context.input(0);
  const auto& pre = context.attributes().get<std::vector<Dim>>("pre");
  const auto& post = context.attributes().get<std::vector<Dim>>("post");
  const auto rank = static_cast<std::size_t>(x.shape.rank());
  if (pre.size() != rank || post.size() != rank) {
    return Error{ErrorCode::invalid_model, "pad: attributes 'pre' and 'post' must have one entry per axis of " +
                                               x.text() + ", found " + print_attribute(pre) + " and " +
                                               print_attribute(post) + "."};
  }
  const std::string& mode = context.attributes().get<std::string>("mode");
  Type out{x.dtype, {}};
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim& size = x.shape[static_cast<int>(i)];
    const Dim padded = size + pre[i] + post[i];
    TRY_VOID(context.require(0, DimCheck::Relation::less_equal, padded,
                             "pad: the size after padding must not be negative, but on axis " + std::to_string(i) +
                                 " it is " + padded.text() + "."));
    if (mode != "constant" && !(pre[i] == 0 && post[i] == 0)) {
      TRY_VOID(context.require(1, DimCheck::Relation::less_equal, size,
                               "pad: mode " + mode + " needs at least one element to take values from, but axis " +
                                   std::to_string(i) + " has size " + size.text() + "."));
    }
    out.shape.push_back(padded);
  }
  return std::vector<Type>{out};
}

Result<void> reference_pad(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& y = context.outputs[0];
  const std::string& mode = context.attributes.get<std::string>("mode");
  const auto pre = integers_of(context.attributes.get<std::vector<Dim>>("pre"));
  PickTables source(static_cast<std::size_t>(x.rank));
  for (std::size_t axis = 0; axis < source.size(); ++axis) {
    for (std::int64_t i = 0; i < y.sizes[axis]; ++i)
      source[axis].push_back(padded_source(i, pre[axis], x.sizes[axis], mode));
  }
  pick_elements(x, source, context.attributes.get<double>("value"), y);
  return {};
}

}  // namespace

std::vector<OpDef> pad_operators() {
  return {OpDef{
      .name = "pad",
      .doc = "Adds pre[a] elements before and post[a] after the elements of each axis a; a negative entry removes as "
             "many.\n"
             "Modes, for a b c d: constant gives v v [a b c d] v v, reflect c b [a b c d] c b, edge a a [a b c d] d d, "
             "wrap c d [a b c d] a b.\n"
             "Reflections repeat where the padding is longer than the operand. Places are mirrored and wrapped by the "
             "whole axis, also where its\n"
             "other end is cropped. Source: ONNX operator Pad; numpy.pad; torch.nn.functional.pad (circular is wrap, "
             "replicate is edge).",
      .inputs = {{"x", "any rank and dtype"}},
      .outputs = {{"y", "size I + pre + post per axis"}},
      .attributes = {{"pre", AttributeKind::dims, "elements before, per axis; negative crops"},
                     {"post", AttributeKind::dims, "elements after, per axis; negative crops"},
                     {"mode",
                      AttributeKind::word,
                      "what the new elements are",
                      Attribute(std::string("constant")),
                      {"constant", "reflect", "edge", "wrap"}},
                     {"value", AttributeKind::real, "the element of mode constant, in the dtype of x", Attribute(0.0)}},
      .infer = infer_pad,
      .reference = reference_pad,
      .cut = cut_pad,
      .layout = LayoutRule::per_axis}};
}

}  // namespace polyphase

// depth_to_space, space_to_depth: blocks of channels become blocks of pixels, and back.
#include "ops/cut.h"
#include "ops/families.h"

namespace polyphase {
namespace {

Result<void> check_block(const InferContext& context, const std::string& op) {
  const Type& x = context.input(0);
  const std::int64_t block = context.attributes().get<std::int64_t>("block");
  if (x.shape.rank() != 4)
    return Error{ErrorCode::invalid_model, op + ": the operand must be (N, C, H, W), found " + x.text() + "."};
  if (block < 1)
    return Error{ErrorCode::invalid_model,
                 op + ": attribute 'block' must be at least 1, found " + std::to_string(block) + "."};
  return {};
}

Result<std::vector<Type>> infer_depth_to_space(const InferContext& context) {
  TRY_VOID(check_block(context, "depth_to_space"));
  const Type& x = context.input(0);
  const Dim block(context.attributes().get<std::int64_t>("block"));
  TRY_VOID(context.require(
      floor_mod(x.shape[1], block * block), DimCheck::Relation::equal, 0,
      "depth_to_space: block*block must divide the channels, found " + x.text() + ", block=" + block.text() + "."));
  return std::vector<Type>{
      {x.dtype, {x.shape[0], floor_div(x.shape[1], block * block), x.shape[2] * block, x.shape[3] * block}}};
}

Result<std::vector<Type>> infer_space_to_depth(const InferContext& context) {
  TRY_VOID(check_block(context, "space_to_depth"));
  const Type& x = context.input(0);
  const Dim block(context.attributes().get<std::int64_t>("block"));
  for (const int axis : {2, 3}) {
    TRY_VOID(context.require(
        floor_mod(x.shape[axis], block), DimCheck::Relation::equal, 0,
        "space_to_depth: block must divide height and width, found " + x.text() + ", block=" + block.text() + "."));
  }
  return std::vector<Type>{
      {x.dtype, {x.shape[0], x.shape[1] * block * block, floor_div(x.shape[2], block), floor_div(x.shape[3], block)}}};
}

// The (N, C, H*b, W*b) side seen as (N, C, b, b, H, W): pixel (h*b + i, w*b + j) at (i, j, h, w).
TensorView pixel_side(const TensorView& view, std::int64_t block) {
  TensorView out = view;
  out.rank = 6;
  out.sizes = {view.sizes[0], view.sizes[1], block, block, view.sizes[2] / block, view.sizes[3] / block};
  out.strides = {view.strides[0], view.strides[1],         view.strides[2],
                 view.strides[3], view.strides[2] * block, view.strides[3] * block};
  return out;
}

// The (N, C*b*b, H, W) side seen the same way; dcr: channel (i*b + j)*C + c, crd: channel (c*b + i)*b + j.
TensorView channel_side(const TensorView& view, std::int64_t block, bool dcr) {
  const std::int64_t channels = view.sizes[1] / (block * block);
  const std::int64_t step = view.strides[1];
  TensorView out = view;
  out.rank = 6;
  out.sizes = {view.sizes[0], channels, block, block, view.sizes[2], view.sizes[3]};
  out.strides = dcr ? std::array<std::int64_t, max_rank>{view.strides[0],         step,
                                                         step * channels * block, step * channels,
                                                         view.strides[2],         view.strides[3]}
                    : std::array<std::int64_t, max_rank>{view.strides[0], step * block * block, step * block, step,
                                                         view.strides[2], view.strides[3]};
  return out;
}

Result<void> reference_depth_to_space(const ReferenceContext& context) {
  const std::int64_t block = context.attributes.get<std::int64_t>("block");
  const bool dcr = context.attributes.get<std::string>("mode") == "dcr";
  copy_elements(channel_side(context.inputs[0], block, dcr), pixel_side(context.outputs[0], block));
  return {};
}

Result<void> reference_space_to_depth(const ReferenceContext& context) {
  const std::int64_t block = context.attributes.get<std::int64_t>("block");
  copy_elements(pixel_side(context.inputs[0], block), channel_side(context.outputs[0], block, true));
  return {};
}

}  // namespace

std::vector<OpDef> depth_space_operators() {
  return {OpDef{.name = "depth_to_space",
                .doc = "Each pixel's channels become a block of pixels: y[n, c, h*b + i, w*b + j] = x[n, channel, h, "
                       "w] with channel =\n"
                       "(i*b + j)*C + c for mode dcr (depth, column, row) and (c*b + i)*b + j for mode crd, where C "
                       "counts the result's channels.\n"
                       "Mode crd is the pixel shuffle of sub-pixel convolution. Source: ONNX operator DepthToSpace; "
                       "torch.nn.functional.pixel_shuffle.",
                .inputs = {{"x", "(N, C*b*b, H, W)"}},
                .outputs = {{"y", "(N, C, H*b, W*b)"}},
                .attributes = {{"block", AttributeKind::integer, "b, at least 1"},
                               {"mode",
                                AttributeKind::word,
                                "the order of the channels",
                                Attribute(std::string("dcr")),
                                {"dcr", "crd"}}},
                .infer = infer_depth_to_space,
                .reference = reference_depth_to_space,
                .cut = cut_depth_to_space,
                .layout = LayoutRule::spatial,
                .moves_elements = true},
          OpDef{.name = "space_to_depth",
                .doc = "Each block of pixels becomes channels of one pixel: y[n, (i*b + j)*C + c, h, w] = x[n, c, h*b "
                       "+ i, w*b + j].\n"
                       "The inverse of depth_to_space in mode dcr. Source: ONNX operator SpaceToDepth.",
                .inputs = {{"x", "(N, C, H*b, W*b)"}},
                .outputs = {{"y", "(N, C*b*b, H, W)"}},
                .attributes = {{"block", AttributeKind::integer, "b, at least 1"}},
                .infer = infer_space_to_depth,
                .reference = reference_space_to_depth,
                .cut = cut_space_to_depth,
                .layout = LayoutRule::spatial,
                .moves_elements = true}};
}

}  // namespace polyphase

// Deformable convolution: grid_sample for all taps, then one product with the weights.
//
//   columns[n, c, t, o] = mask[n, t, o] · x[n, c, o·stride - pad + t·dilation + offset[n, t, o]];   y = W · columns
//
// An offset group has offsets and masks of its own; for grid_sample it is an image of its own.
#include "import/compose/deform_conv.h"

#include <algorithm>
#include <vector>

#include "import/compose/composer.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;
using Integers = Composer::Integers;

constexpr std::int64_t longest_kernel = 1024;
constexpr const char* advice = "Give operands as the operator's documentation has them, and export again.";

Result<void> check_operands(const DeformConv& conv) {
  for (const Value* value : {conv.x, conv.weight, conv.offset, conv.mask}) {
    if (value != nullptr && value->type.shape.rank() != 4)
      return Error{
          ErrorCode::invalid_model,
          "the operand, the weight, the offsets and the mask must have rank 4, found " + value->type.text() + ".",
          advice};
  }
  const Shape& x = conv.x->type.shape;
  const Shape& w = conv.weight->type.shape;
  if (!w.is_static() || !x[1].is_constant())
    return lacking("the weight's sizes or the channels are not fixed.", "Export with fixed channels and kernel.");
  if (w[2].value() > longest_kernel || w[3].value() > longest_kernel)
    return lacking("a deformable convolution with a kernel of more than " + std::to_string(longest_kernel) +
                       " places on an axis, found the weight " + conv.weight->type.text() + ".",
                   "Use a smaller kernel.");
  const std::int64_t channels = x[1].value();
  const auto divides = [](std::int64_t count, std::int64_t whole) {
    return count >= 1 && count <= std::max<std::int64_t>(whole, 1) && whole % count == 0;
  };
  if (!divides(conv.groups, channels) || !divides(conv.groups, w[0].value()) ||
      !divides(conv.offset_groups, channels) || w[1].value() != channels / conv.groups || w[2] == 0 || w[3] == 0)
    return Error{ErrorCode::invalid_model,
                 "the weight must be (M, C / groups, kH, kW), groups divide M and offset groups divide C; found " +
                     conv.x->type.text() + ", " + conv.weight->type.text() + ", " + std::to_string(conv.groups) +
                     " groups and " + std::to_string(conv.offset_groups) + " offset groups.",
                 advice};
  return {};
}

class Deformation {
 public:
  Deformation(Emitter& node, const DeformConv& conv)
      : node_(node), make_(node), conv_(conv), x_(conv.x->type.shape), out_(conv.offset->type.shape) {
    const Shape& w = conv.weight->type.shape;
    kernel_ = {w[2].value(), w[3].value()};
    taps_ = kernel_[0] * kernel_[1];
    planes_ = x_[0] * Dim(conv.offset_groups);
  }

  Result<Value*> result() {
    require_sizes();
    const DType own = conv_.x->type.dtype;
    const DType dtype = size_bytes(own) < 4 ? DType::f32 : own;
    const std::int64_t channels = x_[1].value();
    const std::int64_t outputs = conv_.weight->type.shape[0].value();
    const Dim rows = Dim(taps_) * out_[2];
    Value* const image =
        make_.reshape(make_.cast(conv_.x, dtype), {planes_, Dim(channels / conv_.offset_groups), x_[2], x_[3]});
    Value* const grid = make_.concat({coordinates(1), coordinates(0)}, 3);
    Value* read = make_.op("grid_sample", {image, grid});
    if (conv_.mask != nullptr)
      read = make_.mul(read, make_.reshape(make_.cast(conv_.mask, dtype), {planes_, Dim(1), rows, out_[3]}));
    const Dim depth(channels / conv_.groups * taps_);
    Value* const columns = make_.reshape(read, {x_[0], Dim(conv_.groups), depth, out_[2] * out_[3]});
    Value* const weight =
        make_.reshape(make_.cast(conv_.weight, dtype), {Dim(conv_.groups), Dim(outputs / conv_.groups), depth});
    Value* y = make_.reshape(make_.matmul(weight, columns), {x_[0], Dim(outputs), out_[2], out_[3]});
    if (conv_.bias != nullptr)
      y = make_.add(y, make_.reshape(make_.cast(conv_.bias, dtype), {Dim(outputs), Dim(1), Dim(1)}));
    return make_.result(make_.cast(y, own));
  }

 private:
  void require_sizes() {
    const auto require = [&](const Value* given, const char* who, const Sizes& sizes) {
      for (int axis = 0; given != nullptr && axis < 4; ++axis) {
        make_.require_equal(given->type.shape[axis], sizes[static_cast<std::size_t>(axis)],
                            "a deformable convolution: axis " + std::to_string(axis) + " of " + std::string(who) + " " +
                                given->type.text() + " must be " + sizes[static_cast<std::size_t>(axis)].text() + ".");
      }
    };
    const Dim places = Dim(conv_.offset_groups) * Dim(taps_);
    require(conv_.offset, "the offsets", {x_[0], places * Dim(2), out_[2], out_[3]});
    require(conv_.mask, "the mask", {x_[0], places, out_[2], out_[3]});
  }

  // Where the taps lie along one spatial axis, (N·G, taps·oH, oW, 1), as grid_sample counts: -1 and 1 are the outer
  // edges of the outer elements, so a place p is (2·p + 1) / size - 1, for axes of one element as well. In FP64: whole
  // places must stay whole.
  Value* coordinates(int axis) {
    const auto i = static_cast<std::size_t>(axis);
    Value* const moved =
        make_.reshape(make_.cast(conv_.offset, DType::f64), {planes_, Dim(taps_), Dim(2), out_[2], out_[3]});
    Value* const own = make_.reshape(make_.slice(moved, 2, axis, 1), {planes_, Dim(taps_), out_[2], out_[3]});
    std::vector<double> of_taps;
    for (std::int64_t t = 0; t < taps_; ++t) {
      const std::int64_t tap = axis == 0 ? t / kernel_[1] : t % kernel_[1];
      of_taps.push_back(static_cast<double>(tap) * static_cast<double>(conv_.dilation[i]) -
                        static_cast<double>(conv_.pad[i]));
    }
    Value* const tap = node_.constant(Tensor::from_values(DType::f64, Integers{taps_, 1, 1}, of_taps));
    Sizes along{Dim(1), Dim(1), Dim(1)};
    along[i + 1] = out_[axis + 2];
    Value* const windows = make_.mul(make_.counting(out_[axis + 2], DType::f64), static_cast<double>(conv_.stride[i]));
    Value* const place = make_.add(make_.add(own, tap), make_.reshape(windows, along));
    Value* const size = make_.cast(make_.dims({x_[axis + 2]}, true), DType::f64);
    Value* const from_edge = make_.add(make_.div(make_.add(make_.mul(place, 2), 1.0), size), -1.0);
    return make_.reshape(from_edge, {planes_, Dim(taps_) * out_[2], out_[3], Dim(1)});
  }

  Emitter& node_;
  Composer make_;
  const DeformConv& conv_;
  const Shape& x_;
  const Shape& out_;  // the offsets', whose last two axes are the result's
  std::array<std::int64_t, 2> kernel_ = {};
  std::int64_t taps_ = 0;
  Dim planes_;
};

}  // namespace

Result<Value*> deform_conv(Emitter& node, const DeformConv& conv) {
  TRY_VOID(check_operands(conv));
  return Deformation(node, conv).result();
}

}  // namespace polyphase

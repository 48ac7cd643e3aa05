// The borders of a crop as nodes on small integer tensors, which importers that know sizes fold back.
#include "export/computed_crop.h"

#include <algorithm>

#include "export/conv_transpose.h"

namespace polyphase::legal {
namespace {

// Before this opset Slice has no operands, so nothing can be computed for it.
constexpr std::int64_t slice_takes_operands = 10;

Error needs_later_opset(std::int64_t opset) {
  const std::string needed = std::to_string(slice_takes_operands);
  return Error{ErrorCode::unsupported,
               "its crop must be computed when the model runs, which ONNX can say from opset " + needed +
                   " on; the model is of opset " + std::to_string(opset) + ".",
               "Export the model with opset " + needed + " or later."};
}

// Elements [begin, end) of a vector.
std::string elements_of(Replacement& out, const std::string& vector, std::int64_t begin, std::int64_t end,
                        const std::string& word) {
  return out.add("Slice", {vector, out.integers({begin}, word + "_start"), out.integers({end}, word + "_end")}, word);
}

std::vector<std::int64_t> axes_from_two(std::size_t count) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<std::int64_t>(i) + 2);
  return out;
}

}  // namespace

Result<std::vector<std::int64_t>> known_pads(const onnx::NodeProto& node, const ModelFacts& model) {
  if (node.input_size() < 3 || node.input(2).empty()) return std::vector<std::int64_t>();
  return known_integers(node.input(2), model);
}

Result<std::vector<std::int64_t>> known_integers(const std::string& tensor, const ModelFacts& model) {
  std::vector<std::int64_t> out;
  if (const auto* constant = model.initializer(tensor); constant != nullptr) {
    TRY(const Tensor pads, model.elements(*constant));
    if (pads.dtype() != DType::i64 || pads.view().rank != 1) return out;
    for (std::int64_t i = 0; i < pads.view().element_count(); ++i) out.push_back(pads.view().as<std::int64_t>()[i]);
    return out;
  }
  const TensorFact* fact = model.find(tensor);
  if (fact == nullptr || !fact->contents.has_value()) return out;
  for (const Dim& pad : *fact->contents) {
    if (!pad.is_constant()) return std::vector<std::int64_t>();
    out.push_back(pad.value());
  }
  return out;
}

Result<void> rewrite_computed_pads(const onnx::NodeProto& node, Replacement& out) {
  const TensorFact* x = out.model().find(node.input_size() > 0 ? node.input(0) : std::string());
  if (x == nullptr)
    return Error{ErrorCode::unsupported, "the rank of its operand 0 is not known.",
                 "polyphase check tells what Polyphase lacks on the way to it."};
  if (x->type.shape.rank() < 3 || node.input_size() < 2)
    return Error{ErrorCode::invalid_model,
                 "it needs an operand of rank 3 or more and a weight, found " + std::to_string(node.input_size()) +
                     " operands, the first " + x->type.text() + ".",
                 "Export the model again."};
  const auto axes = static_cast<std::size_t>(x->type.shape.rank() - 2);
  const auto count = static_cast<std::int64_t>(axes);
  std::vector<std::string> operands = {node.input(0), node.input(1)};
  if (node.input_size() > 3) operands.push_back(node.input(3));
  const bool has_pads = node.input_size() > 2 && !node.input(2).empty();
  TRY(const std::vector<std::int64_t> known, known_pads(node, out.model()));
  const auto fill = [&] {
    for (const auto& attribute : node.attribute()) *out.latest().add_attribute() = attribute;
  };
  if (!has_pads || !known.empty()) {
    out.add_last("ConvTranspose", operands);
    fill();
    if (!known.empty()) set_integers(out.latest(), "pads", known);
    return {};
  }
  if (out.model().opset() < slice_takes_operands) return needs_later_opset(out.model().opset());
  const std::string uncropped = out.add("ConvTranspose", operands, "uncropped");
  fill();
  const std::string& pads = node.input(2);
  const std::string starts = elements_of(out, pads, 0, count, "crop_starts");
  const std::string behind = elements_of(out, pads, count, 2 * count, "crop_behind");
  const std::string shape = out.add("Shape", {uncropped}, "uncropped_shape");
  const std::string sizes = elements_of(out, shape, 2, count + 2, "uncropped_sizes");
  const std::string ends = out.add("Sub", {sizes, behind}, "crop_ends");
  out.add_last("Slice", {uncropped, starts, ends, out.integers(axes_from_two(axes), "crop_axes")});
  return {};
}

namespace {

// Max takes integers from this opset on; our importer follows sizes through it, not through Where.
constexpr std::int64_t max_takes_integers = 12;

// Nodes on vectors with one entry for each spatial axis.
class SizeNodes {
 public:
  SizeNodes(const ConvTransposeFacts& facts, Replacement& out) : facts_(facts), out_(out) {
    const std::string shape = out_.add("Shape", {out_.replaced().input(0)}, "input_shape");
    const std::string sizes = elements_of(out_, shape, 2, static_cast<std::int64_t>(facts.axes()) + 2, "input_sizes");
    std::vector<std::int64_t> rest;
    for (std::size_t i = 0; i < facts.axes(); ++i) {
      natural_.push_back((facts.x.shape[static_cast<int>(i) + 2] - 1) * Dim(facts.stride[i]) +
                         Dim(facts.span(i) + facts.output_padding[i]));
      rest.push_back(facts.span(i) + facts.output_padding[i] - facts.stride[i]);
    }
    const std::string strided = out_.add("Mul", {sizes, out_.integers(facts.stride, "strides")}, "strided_sizes");
    natural_sizes_ = out_.add("Add", {strided, out_.integers(rest, "beside_strides")}, "natural_sizes");
    wanted_ = out_.integers(wanted_sizes(), "output_sizes");
  }

  // Whether the output may be asked to be larger than its natural size.
  bool may_grow() const {
    for (std::size_t i = 0; i < facts_.axes(); ++i) {
      if (!surely_less_equal(Dim(wanted_sizes()[i]), natural_[i])) return true;
    }
    return false;
  }
  std::string starts() {
    const std::string total = clamped(out_.add("Sub", {natural_sizes_, wanted_}, "cropped"), "cropped_at_least_0");
    const std::string half = out_.add("Div", {total, out_.integers({2}, "two")}, "half_cropped");
    return facts_.auto_pad == "SAME_UPPER" ? half : out_.add("Sub", {total, half}, "crop_starts");
  }
  // Of x with zeros behind it.
  Type grown(const std::vector<std::int64_t>& at_least) const {
    Type out = facts_.x;
    for (std::size_t i = 0; i < facts_.axes(); ++i) {
      const Dim missing = may_grow() ? max(Dim(wanted_sizes()[i]) - natural_[i], 0) : Dim(0);
      const Dim stride(facts_.stride[i]);
      out.shape[static_cast<int>(i) + 2] += floor_div(missing + stride - 1, stride) + Dim(at_least[i]);
    }
    return out;
  }
  std::string ends(const std::string& starts) { return out_.add("Add", {starts, wanted_}, "crop_ends"); }
  // How many zeros behind x make the output large enough.
  std::string zeros_behind(const std::vector<std::int64_t>& at_least) {
    const std::string missing = clamped(out_.add("Sub", {wanted_, natural_sizes_}, "missing"), "missing_at_least_0");
    std::vector<std::int64_t> rounding;
    for (std::size_t i = 0; i < facts_.axes(); ++i)
      rounding.push_back(facts_.stride[i] - 1 + at_least[i] * facts_.stride[i]);
    const std::string rounded = out_.add("Add", {missing, out_.integers(rounding, "rounding")}, "missing_rounded");
    return out_.add("Div", {rounded, out_.integers(facts_.stride, "strides_of_missing")}, "zeros_behind");
  }

 private:
  std::vector<std::int64_t> wanted_sizes() const {
    return {facts_.output_shape.end() - static_cast<std::ptrdiff_t>(facts_.axes()), facts_.output_shape.end()};
  }
  std::string clamped(const std::string& sizes, const std::string& word) {
    if (!may_grow()) return sizes;
    const std::string zero = out_.integers({0}, word + "_zero");
    if (out_.model().opset() >= max_takes_integers) return out_.add("Max", {sizes, zero}, word);
    return out_.add("Where", {out_.add("Less", {sizes, zero}, word + "_below"), zero, sizes}, word);
  }

  const ConvTransposeFacts& facts_;
  Replacement& out_;
  std::vector<Dim> natural_;
  std::string natural_sizes_;
  std::string wanted_;
};

// x with what is missing behind it. `extra`: zeros that are needed whatever its size.
std::string grown_input(const ConvTransposeFacts& facts, SizeNodes& sizes, const std::vector<std::int64_t>& extra,
                        Replacement& out) {
  const std::size_t rank = facts.axes() + 2;
  const std::string& x = out.replaced().input(0);
  if (!sizes.may_grow()) {
    std::vector<std::int64_t> pads(2 * rank, 0);
    bool any = false;
    for (std::size_t i = 0; i < facts.axes(); ++i) {
      pads[rank + 2 + i] = extra[i];
      any = any || extra[i] > 0;
    }
    return any ? out.pad(x, pads, "with_zeros", sizes.grown(extra)) : x;
  }
  const std::string zeros = sizes.zeros_behind(extra);
  const std::string none = out.integers(std::vector<std::int64_t>(rank + 2, 0), "no_zeros");
  const std::string pads = out.add("Concat", {none, zeros}, "zeros");
  set_integer(out.latest(), "axis", 0);
  const Type type = sizes.grown(extra);
  const std::string grown = out.add("Pad", {x, pads}, "with_zeros", &type);
  if (!type.shape[1].is_constant()) return grown;
  // Whoever infers shapes without computing the pads has lost the number of channels.
  std::vector<std::int64_t> same(rank, 0);  // 0: as it is
  same[1] = type.shape[1].value();
  return out.add("Reshape", {grown, out.integers(same, "same_sizes")}, "with_zeros_and_channels", &type);
}

}  // namespace

Result<void> rewrite_computed_output_shape(const onnx::NodeProto& node, OutputPadding taken, Replacement& out) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, out.model()));
  if (out.model().opset() < slice_takes_operands) return needs_later_opset(out.model().opset());
  SizeNodes sizes(facts, out);
  std::vector<std::int64_t> left = facts.output_padding;  // that the convolution has
  std::vector<std::int64_t> extra(facts.axes(), 0);
  for (std::size_t i = 0; i < facts.axes(); ++i) {
    if (left[i] <= most_output_padding(taken, facts, i)) continue;
    extra[i] = ceil_div(left[i], facts.stride[i]);
    left[i] = 0;
  }
  std::vector<std::string> operands(node.input().begin(), node.input().end());
  operands[0] = grown_input(facts, sizes, extra, out);
  const std::string uncropped = out.add("ConvTranspose", operands, "uncropped");
  out.latest().mutable_attribute()->CopyFrom(node.attribute());
  for (const char* name : {"auto_pad", "output_shape", "output_padding", "pads"}) drop_attribute(out.latest(), name);
  if (std::any_of(left.begin(), left.end(), [](std::int64_t more) { return more > 0; }))
    set_integers(out.latest(), "output_padding", left);
  const std::string starts = sizes.starts();
  const std::string ends = sizes.ends(starts);
  out.add_last("Slice", {uncropped, starts, ends, out.integers(axes_from_two(facts.axes()), "crop_axes")});
  return {};
}

Result<void> rewrite_as_pads(const onnx::NodeProto& node, const CropForm& form, Replacement& out) {
  TRY(const ConvTransposeFacts facts, read_conv_transpose(node, out.model()));
  if (facts.fixed_crop()) return rewrite_crop(node, form, out);
  return rewrite_computed_output_shape(node, form.output_padding, out);
}

}  // namespace polyphase::legal

// layout_transform: the same tensor with its axes in another order, or one of them in blocks.
#include <array>
#include <cstring>

#include "base/layout_name.h"
#include "ops/families.h"

namespace polyphase {
namespace {

struct Layouts {
  LayoutName from;
  LayoutName to;
};

std::string both_of(const Attributes& attributes) {
  return "layout_transform: from '" + attributes.get<std::string>("from_layout") + "' to '" +
         attributes.get<std::string>("to_layout") + "'";
}

Result<LayoutName> layout_of(const Attributes& attributes, std::string_view name) {
  auto layout = LayoutName::parse(attributes.get<std::string>(name));
  if (layout.ok()) return layout;
  return Error{ErrorCode::invalid_model, both_of(attributes) + ": " + layout.error().message, layout.error().hint};
}

std::string layouts_of_rank(int rank) {
  constexpr std::array names = {"W", "NC", "NCW and NWC", "NCHW, NHWC and NCW16c", "NCDHW, NDHWC and NCHW16c"};
  const bool is_usual = rank >= 1 && rank <= static_cast<int>(names.size());
  return "Legal is a layout of " + std::to_string(rank) + (rank == 1 ? " axis" : " axes") +
         (is_usual ? std::string(", such as ") + names[static_cast<std::size_t>(rank) - 1] : std::string()) + ".";
}

std::string blocked_example(const std::string& axes) {
  const char divided = axes[axes.size() > 1 ? 1 : 0];
  return axes + "16" + static_cast<char>(divided - 'A' + 'a');
}

Result<Layouts> layouts_of(const Attributes& attributes) {
  TRY(LayoutName from, layout_of(attributes, "from_layout"));
  TRY(LayoutName to, layout_of(attributes, "to_layout"));
  if (!from.names_the_same_axes(to)) {
    return Error{ErrorCode::invalid_model, both_of(attributes) + " is not the same axes.",
                 "Legal is any order of the axes " + from.axes() + ", one of them in blocks or none: " + from.axes() +
                     ", " + blocked_example(from.axes()) + "."};
  }
  return Layouts{std::move(from), std::move(to)};
}

// The sizes of the axes that `from` names, in its order.
Result<std::vector<Dim>> sizes_of(const InferContext& context, const LayoutName& from) {
  const Type& x = context.input(0);
  const Dim& channels = context.attributes().get<Dim>("channels");
  if (x.shape.rank() != from.rank()) {
    return Error{ErrorCode::invalid_model,
                 both_of(context.attributes()) + " takes " + std::to_string(from.rank()) + " axes, the operand is " +
                     x.text() + ".",
                 layouts_of_rank(x.shape.rank())};
  }
  std::vector<Dim> sizes(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(from.axes().size()));
  if (!from.is_blocked()) {
    if (channels == 0) return sizes;
    return Error{ErrorCode::invalid_model, "layout_transform: channels is " + channels.text() + ", but layout '" +
                                               from.text() + "' has no blocks."};
  }
  const Dim block(from.block());
  TRY_VOID(context.require(x.shape[from.rank() - 1], DimCheck::Relation::equal, block,
                           "layout_transform: the innermost axis of layout '" + from.text() + "' must be a block of " +
                               block.text() + ", found " + x.text() + "."));
  Dim& whole = sizes[from.blocked_axis()];
  const Dim blocks = whole;
  whole = blocks * block;
  if (channels == 0) return sizes;
  TRY_VOID(context.require(ceil_div(channels, block), DimCheck::Relation::equal, blocks,
                           "layout_transform: " + channels.text() + " channels must fill all blocks but the last of " +
                               x.text() + " in layout '" + from.text() + "'."));
  whole = channels;
  return sizes;
}

Result<std::vector<Type>> infer_layout_transform(const InferContext& context) {
  TRY(const Layouts layouts, layouts_of(context.attributes()));
  TRY(const std::vector<Dim> sizes, sizes_of(context, layouts.from));
  Type out{context.input(0).dtype, {}};
  for (const char axis : layouts.to.axes()) out.shape.push_back(sizes[layouts.from.place_of(axis)]);
  if (layouts.to.is_blocked()) {
    const auto blocked = static_cast<int>(layouts.to.blocked_axis());
    out.shape[blocked] = ceil_div(out.shape[blocked], Dim(layouts.to.block()));
    out.shape.push_back(Dim(layouts.to.block()));
  }
  return std::vector<Type>{out};
}

// Where the elements of one axis lie, in elements.
std::vector<std::int64_t> offsets_along(const TensorView& view, const LayoutName& layout, std::size_t place) {
  std::vector<std::int64_t> out;
  const std::int64_t step = view.strides[place];
  if (!layout.is_blocked() || place != layout.blocked_axis()) {
    for (std::int64_t i = 0; i < view.sizes[place]; ++i) out.push_back(i * step);
    return out;
  }
  const std::int64_t inner = view.strides[static_cast<std::size_t>(layout.rank()) - 1];
  for (std::int64_t i = 0; i < view.sizes[place] * layout.block(); ++i)
    out.push_back(i / layout.block() * step + i % layout.block() * inner);
  return out;
}

Result<void> reference_layout_transform(const ReferenceContext& context) {
  TRY(const Layouts layouts, layouts_of(context.attributes));
  const TensorView& x = context.inputs[0];
  const TensorView& y = context.outputs[0];
  const std::size_t element = size_bytes(x.dtype);
  const std::size_t axes = layouts.to.axes().size();
  const std::int64_t channels = context.attributes.get<Dim>("channels").value();
  std::vector<std::vector<std::int64_t>> from;
  std::vector<std::vector<std::int64_t>> to;
  std::vector<std::int64_t> sizes;  // with what fills the last block
  for (std::size_t place = 0; place < axes; ++place) {
    const std::size_t source = layouts.from.place_of(layouts.to.axes()[place]);
    from.push_back(offsets_along(x, layouts.from, source));
    if (channels != 0 && source == layouts.from.blocked_axis()) from.back().resize(static_cast<std::size_t>(channels));
    to.push_back(offsets_along(y, layouts.to, place));
    sizes.push_back(static_cast<std::int64_t>(to.back().size()));
  }
  // Elements that fill a last block are zero.
  std::vector<std::int64_t> index(axes, 0);
  for (std::int64_t left = y.element_count(); left > 0; --left) {
    std::int64_t read = 0;
    std::int64_t write = 0;
    bool is_there = true;
    for (std::size_t i = 0; i < axes; ++i) {
      const auto at = static_cast<std::size_t>(index[i]);
      write += to[i][at];
      is_there = is_there && at < from[i].size();
      if (is_there) read += from[i][at];
    }
    std::byte* target = y.data + write * static_cast<std::int64_t>(element);
    if (is_there) {
      std::memcpy(target, x.data + read * static_cast<std::int64_t>(element), element);
    } else {
      std::memset(target, 0, element);
    }
    for (std::size_t i = axes; i-- > 0;) {
      if (++index[i] < sizes[i]) break;
      index[i] = 0;
    }
  }
  return {};
}

}  // namespace

std::vector<OpDef> layout_transform_operators() {
  return {OpDef{
      .name = "layout_transform",
      .doc = "The same tensor with its axes in another order, or with one of them in blocks. A layout has a capital "
             "letter for each axis,\noutermost first, and may end with a block of one axis, whose elements lie "
             "innermost: NCHW16c is (N, ceil(C/16), H, W, 16). Elements\nthat fill the last block are zero. The "
             "compiler writes it as transposes, which it moves to where they meet their inverse.\n"
             "Source: TVM's operator layout_transform; the blocked layouts nChw8c and nChw16c of oneDNN.",
      .inputs = {{"x", "as `from_layout` says; any dtype"}},
      .outputs = {{"y", "as `to_layout` says, the dtype of x"}},
      .attributes = {{"from_layout", AttributeKind::word, "the layout of x: NCHW, NHWC, NCHW16c, OIHW, …"},
                     {"to_layout", AttributeKind::word, "the layout of y: the same letters"},
                     {"channels", AttributeKind::dim,
                      "how many elements the axis has that `from_layout` has in blocks; 0: as many as fill them",
                      Attribute(Dim(0))}},
      .infer = infer_layout_transform,
      .reference = reference_layout_transform,
      .layout = LayoutRule::row_major}};
}

}  // namespace polyphase

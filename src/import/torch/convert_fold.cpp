// Windows as columns and back; elements back to where a pool found them.
#include "import/compose/composer.h"
#include "import/torch/aten_node.h"

namespace polyphase {
namespace {

using Integers = Composer::Integers;
using Sizes = Composer::Sizes;

// The columns of every window: (N, C, H, W) → (N, C·kh·kw, places).
Result<Values> convert_im2col(AtenNode& node) {
  Composer c(node);
  Value* x = node.tensor("self");
  const bool unbatched = c.rank(x) == 3;
  if (unbatched) x = c.unsqueeze(x, 0);
  if (c.rank(x) != 4) return broken_program("im2col expects an image of three or four axes.");
  const Integers kernel = node.integers("kernel_size", 2);
  const Integers dilation = node.integers("dilation", 2);
  const Integers padding = node.integers("padding", 2);
  const Integers stride = node.integers("stride", 2);
  Value* found = x;
  Sizes places;
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (kernel[at] <= 0 || dilation[at] <= 0 || stride[at] <= 0 || padding[at] < 0)
      return broken_program("im2col expects sizes greater than zero.");
    const int axis = 2 + 2 * i;  // behind the first turn rows lie on two axes
    if (padding[at] > 0) found = c.pad(found, axis, padding[at], padding[at]);
    const Dim count = floor_div(c.size(found, axis) - Dim(dilation[at]) * (kernel[at] - 1) - 1, stride[at]) + 1;
    places.push_back(count);
    const auto steps = [&](Dim of, std::int64_t step) {
      return c.op("range", {}, Attributes({{"start", Dim(0)}, {"count", std::move(of)}, {"step", step}}));
    };
    Value* const index = c.add(c.unsqueeze(steps(kernel[at], dilation[at]), 1), steps(count, stride[at]));
    found = c.gather(found, index, axis);
  }
  found = c.transpose(found, {0, 1, 2, 4, 3, 5});
  found = c.reshape(found, {c.size(x, 0), c.size(x, 1) * Dim(kernel[0] * kernel[1]), places[0] * places[1]});
  return c.results({unbatched ? c.squeeze(found, 0) : found});
}

// Columns back into images, added where they overlap: a transposed convolution that puts tap t of a column at place t
// of its window.
Result<Values> convert_col2im(AtenNode& node) {
  Composer c(node);
  Value* x = node.tensor("self");
  const bool alone = c.rank(x) == 2;
  if (alone) x = c.unsqueeze(x, 0);
  if (c.rank(x) != 3) return broken_program("Expected 2D or 3D input tensor for col2im, found " + x->type.text() + ".");
  const Sizes image = node.sizes("output_size", 2);
  const Integers kernel = node.integers("kernel_size", 2);
  const Integers dilation = node.integers("dilation", 2);
  const Integers padding = node.integers("padding", 2);
  const Integers stride = node.integers("stride", 2);
  Sizes columns{c.size(x, 0), c.size(x, 1)};
  Sizes pre;
  Sizes post;
  constexpr std::int64_t most = 4096;
  for (std::size_t i = 0; i < 2; ++i) {
    if (kernel[i] <= 0 || kernel[i] > most || dilation[i] <= 0 || stride[i] <= 0 || padding[i] < 0)
      return broken_program("col2im expects sizes greater than zero, and kernels of at most 4096 places.");
    const Dim span(dilation[i] * (kernel[i] - 1) + 1);
    const Dim count = floor_div(image[i] + Dim(2 * padding[i]) - span, stride[i]) + 1;
    columns.push_back(count);
    pre.emplace_back(padding[i]);
    post.push_back((count - 1) * Dim(stride[i]) + span - Dim(padding[i]) - image[i]);
  }
  const std::int64_t taps = kernel[0] * kernel[1];
  if (taps > most)
    return lacking("col2im with windows of " + std::to_string(taps) + " places; at most 4096.", "Use smaller windows.");
  const Dim channels = floor_div(c.size(x, 1), taps);
  c.require_equal(c.size(x, 1), channels * Dim(taps),
                  "col2im: axis 1 of the operand must be a multiple of the " + std::to_string(taps) +
                      " places of a window, found " + c.size(x, 1).text() + ".");
  c.require_equal(c.size(x, 2), columns[2] * columns[3],
                  "col2im: the operand must have one column for each of the " + (columns[2] * columns[3]).text() +
                      " windows, found " + c.size(x, 2).text() + ".");
  // Channels are groups; where there are too many, or nobody knows how many, they are images of their own.
  constexpr std::int64_t most_weights = std::int64_t{1} << 24;
  const bool grouped = channels.is_constant() && channels.value() > 0 && channels.value() <= most_weights / taps / taps;
  const std::int64_t groups = grouped ? channels.value() : 1;
  const std::int64_t rows = groups * taps;
  if (!grouped) columns[0] *= channels;
  columns[1] = rows;
  std::vector<double> ones(static_cast<std::size_t>(rows * taps));
  for (std::int64_t i = 0; i < rows; ++i) ones[static_cast<std::size_t>(i * taps + i % taps)] = 1;
  Value* const weights = node.constant(Tensor::from_values(c.dtype(x), Integers{rows, 1, kernel[0], kernel[1]}, ones));
  Value* const y =
      c.op("conv_transpose", {c.reshape(x, std::move(columns)), weights},
           Attributes({{"stride", stride}, {"dilation", dilation}, {"groups", groups}, {"pre", pre}, {"post", post}}));
  if (alone) return c.results({c.reshape(y, {channels, image[0], image[1]})});
  return c.results({c.reshape(y, {c.size(x, 0), channels, image[0], image[1]})});
}

// Zeros, and each element at its place within its plane.
template <int spatial>
Result<Values> convert_max_unpool(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  Value* const indices = node.tensor("indices");
  const Sizes plane = node.sizes("output_size");
  if (c.rank(x) < spatial + 1 || c.rank(x) > spatial + 2 || plane.size() != static_cast<std::size_t>(spatial) ||
      c.rank(indices) != c.rank(x))
    return broken_program("max_unpool over " + std::to_string(spatial) + " axes does not fit " + x->type.text() + ".");
  Sizes sizes = c.sizes(x);
  Dim given = 1;
  Dim wanted = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(spatial); ++i) {
    Dim& size = sizes[sizes.size() - static_cast<std::size_t>(spatial) + i];
    given *= size;
    size = plane[i];
    wanted *= size;
  }
  Dim planes = c.size(x, 0);
  if (c.rank(x) == spatial + 2) planes *= c.size(x, 1);
  Value* const zeros = c.expand(c.number(0, c.dtype(x)), {planes, wanted});
  Value* const y = c.op("scatter_elements",
                        {zeros, c.reshape(c.cast(indices, DType::i64), {planes, given}), c.reshape(x, {planes, given})},
                        Attributes({{"axis", std::int64_t{1}}}));
  return c.results({c.reshape(y, std::move(sizes))});
}

}  // namespace

std::vector<AtenEntry> aten_fold_entries() {
  return {
      {"col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) "
       "-> Tensor",
       convert_col2im},
      {"im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
       convert_im2col},
      {"max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor", convert_max_unpool<2>},
      {"max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
       convert_max_unpool<3>},
  };
}

}  // namespace polyphase

// The same elements in another shape, order or type.
#include <algorithm>
#include <numeric>

#include "import/compose/composer.h"
#include "import/compose/remaining_size.h"
#include "import/torch/aten_node.h"
#include "import/torch/names.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;
using Integers = Composer::Integers;

// What makes no difference to the numbers: copies, memory formats, gradients.
template <const char* parameter>
Result<Values> convert_same(AtenNode& node) {
  return Values{node.tensor(parameter)};
}

// The dtype is an argument; None leaves it.
Result<Values> convert_to(AtenNode& node) {
  const auto dtype = node.dtype("dtype");
  Composer c(node);
  Value* const x = node.tensor("self");
  return c.results({dtype.has_value() ? c.cast(x, *dtype) : x});
}

Result<Values> convert_to_other(AtenNode& node) {
  Composer c(node);
  return c.results({c.cast(node.tensor("self"), c.dtype(node.tensor("other")))});
}

// One size may be -1: the rest.
Result<Value*> reshaped(Composer& c, Value* x, Sizes sizes) {
  std::optional<std::size_t> open;
  Sizes known;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      if (open.has_value()) return broken_program("only one dimension can be inferred");
      open = i;
    } else {
      known.push_back(sizes[i]);
    }
  }
  if (open.has_value()) {
    sizes[*open] = remaining_size(c.sizes(x), known);
    if (sizes[*open].overflowed())
      return broken_program("the size for -1 cannot be inferred, because the other sizes multiply to 0.");
  }
  return c.result(c.reshape(x, std::move(sizes)));
}

template <const char* parameter>
Result<Values> convert_view(AtenNode& node) {
  Composer c(node);
  TRY(Value * y, reshaped(c, node.tensor("self"), node.sizes(parameter)));
  return Values{y};
}

Result<Values> convert_flatten(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  const int rank = c.rank(x);
  TRY(const std::int64_t first, node.axis("start_dim", rank));
  TRY(const std::int64_t last, node.axis("end_dim", rank));
  if (first > last) return broken_program("flatten() has invalid args: start_dim cannot come after end_dim");
  Sizes sizes;
  for (int i = 0; i < rank; ++i) {
    if (i > first && i <= last) {
      sizes.back() *= c.size(x, i);
    } else {
      sizes.push_back(c.size(x, i));
    }
  }
  if (rank == 0) sizes.emplace_back(1);
  return c.results({c.reshape(x, std::move(sizes))});
}

Result<Values> convert_unflatten(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x)));
  Sizes pieces = node.sizes("sizes");
  const auto open = std::find(pieces.begin(), pieces.end(), Dim(-1));
  if (open != pieces.end()) {
    Sizes known;
    for (const Dim& piece : pieces) {
      if (!(piece == -1)) known.push_back(piece);
    }
    *open = remaining_size({c.size(x, static_cast<int>(axis))}, known);
  }
  Sizes sizes = c.sizes(x);
  sizes.erase(sizes.begin() + axis);
  sizes.insert(sizes.begin() + axis, pieces.begin(), pieces.end());
  return c.results({c.reshape(x, std::move(sizes))});
}

// Leaves out those axes that have the size 1; a symbolic size counts as more, as torch.export takes it.
Value* without_units(Composer& c, Value* x, const Integers& axes) {
  Sizes sizes;
  for (int i = 0; i < c.rank(x); ++i) {
    const bool named = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!named || !(c.size(x, i) == 1)) sizes.push_back(c.size(x, i));
  }
  return c.reshape(x, std::move(sizes));
}

Result<Values> convert_squeeze(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  Integers axes(static_cast<std::size_t>(c.rank(x)));
  std::iota(axes.begin(), axes.end(), 0);
  return c.results({without_units(c, x, axes)});
}

Result<Values> convert_squeeze_axes(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const Integers axes, node.axes("dim", c.rank(x)));
  return c.results({without_units(c, x, axes)});
}

Result<Values> convert_unsqueeze(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const std::int64_t axis, node.axis("dim", c.rank(x) + 1));
  return c.results({c.unsqueeze(x, static_cast<int>(axis))});
}

Result<Values> convert_permute(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const Integers order, node.axes("dims", c.rank(x)));
  if (order.size() != static_cast<std::size_t>(c.rank(x)))
    return broken_program("permute names " + std::to_string(order.size()) + " axes of " + std::to_string(c.rank(x)) +
                          ".");
  return c.results({order.empty() ? x : c.transpose(x, order)});
}

Value* exchanged(Composer& c, Value* x, std::int64_t a, std::int64_t b) {
  Integers order(static_cast<std::size_t>(c.rank(x)));
  std::iota(order.begin(), order.end(), 0);
  if (a == b || order.empty()) return x;
  std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(b)]);
  return c.transpose(x, std::move(order));
}

template <const char* first, const char* second>
Result<Values> convert_transpose(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const std::int64_t a, node.axis(first, c.rank(x)));
  TRY(const std::int64_t b, node.axis(second, c.rank(x)));
  return c.results({exchanged(c, x, a, b)});
}

Result<Values> convert_t(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  if (c.rank(x) > 2)
    return broken_program("t() expects a tensor with <= 2 dimensions, but self is " + std::to_string(c.rank(x)) + "D");
  return c.results({c.rank(x) == 2 ? exchanged(c, x, 0, 1) : x});
}

template <const char* from_parameter, const char* to_parameter>
Result<Values> convert_movedim(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const Integers from, node.axes(from_parameter, c.rank(x)));
  TRY(const Integers to, node.axes(to_parameter, c.rank(x)));
  if (from.size() != to.size())
    return broken_program("movedim: source and destination name different numbers of axes.");
  Integers order(static_cast<std::size_t>(c.rank(x)), -1);
  for (std::size_t i = 0; i < from.size(); ++i) order[static_cast<std::size_t>(to[i])] = from[i];
  std::int64_t next = 0;
  for (std::int64_t& entry : order) {
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    if (entry < 0) entry = next++;
  }
  return c.results({c.transpose(x, std::move(order))});
}

Result<Values> convert_expand(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  Sizes sizes = node.sizes("size");
  const int more = static_cast<int>(sizes.size()) - c.rank(x);
  if (more < 0)
    return broken_program("expand: the number of sizes must be at least the number of dimensions in the tensor.");
  for (int i = more; i < static_cast<int>(sizes.size()); ++i) {
    Dim& size = sizes[static_cast<std::size_t>(i)];
    if (size == -1) size = c.size(x, i - more);
  }
  return c.results({c.expand(x, std::move(sizes))});
}

Result<Values> convert_expand_as(AtenNode& node) {
  Composer c(node);
  return c.results({c.expand(node.tensor("self"), c.sizes(node.tensor("other")))});
}

// Whole copies side by side; the shorter of shape and list gets leading ones.
template <const char* parameter>
Result<Values> convert_repeat(AtenNode& node) {
  Composer c(node);
  Value* x = node.tensor("self");
  Sizes repeats = node.sizes(parameter);
  Sizes sizes = c.sizes(x);
  while (sizes.size() < repeats.size()) sizes.insert(sizes.begin(), Dim(1));
  while (repeats.size() < sizes.size()) repeats.insert(repeats.begin(), Dim(1));
  if (sizes.empty()) return Values{x};
  x = c.reshape(x, std::move(sizes));
  return c.results({c.op("tile", {x}, Attributes({{"repeats", std::move(repeats)}}))});
}

Result<Values> convert_flip(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  TRY(const Integers axes, node.axes("dims", c.rank(x)));
  Sizes start(static_cast<std::size_t>(c.rank(x)), Dim(0));
  Integers step(start.size(), 1);
  for (const std::int64_t axis : axes) {
    start[static_cast<std::size_t>(axis)] = c.size(x, static_cast<int>(axis)) - 1;
    step[static_cast<std::size_t>(axis)] = -1;
  }
  if (axes.empty()) return Values{x};
  return c.results(
      {c.op("slice", {x}, Attributes({{"start", std::move(start)}, {"size", c.sizes(x)}, {"step", std::move(step)}}))});
}

Result<Values> convert_roll(AtenNode& node) {
  Composer c(node);
  Value* const given = node.tensor("self");
  Value* x = given;
  const Sizes shifts = node.sizes("shifts");
  TRY(Integers axes, node.axes("dims", c.rank(x)));
  if (axes.empty() && shifts.size() == 1) {  // over all elements in a row
    Dim count = 1;
    for (const Dim& size : c.sizes(x)) count *= size;
    x = c.reshape(x, {count});
    axes = {0};
  }
  if (axes.size() != shifts.size()) return broken_program("shifts and dimensions must align.");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = static_cast<int>(axes[i]);
    const Dim size = c.size(x, axis);
    if (size == 0) continue;
    const Dim shift = floor_mod(shifts[i], size);
    if (shift == 0) continue;
    x = c.concat({c.slice(x, axis, size - shift, shift), c.slice(x, axis, 0, size - shift)}, axis);
  }
  return c.results({c.reshape(x, c.sizes(given))});
}

// k quarter turns from the first axis towards the second.
Result<Values> convert_rot90(AtenNode& node) {
  Composer c(node);
  Value* x = node.tensor("self");
  TRY(const Integers axes, node.axes("dims", c.rank(x)));
  if (axes.size() != 2) return broken_program("expected total rotation dims == 2");
  const std::int64_t turns = ((node.integer("k") % 4) + 4) % 4;
  const auto flipped = [&](Value* value, std::int64_t axis) {
    const Dim size = c.size(value, static_cast<int>(axis));
    return c.slice(value, static_cast<int>(axis), size - 1, size, -1);
  };
  if (turns == 1) x = exchanged(c, flipped(x, axes[1]), axes[0], axes[1]);
  if (turns == 2) x = flipped(flipped(x, axes[0]), axes[1]);
  if (turns == 3) x = flipped(exchanged(c, x, axes[0], axes[1]), axes[1]);
  return c.results({x});
}

// Any number of leading axes; the images lie on the last three.
Result<Values> shuffled(AtenNode& node, std::int64_t factor, bool spread) {
  Composer c(node);
  Value* const x = node.tensor("self");
  const int rank = c.rank(x);
  if (rank < 3 || factor <= 0)
    return broken_program("pixel_shuffle expects input to have at least 3 dimensions and a positive factor.");
  Dim images = 1;
  for (int i = 0; i < rank - 3; ++i) images *= c.size(x, i);
  Value* y = c.reshape(x, {images, c.size(x, -3), c.size(x, -2), c.size(x, -1)});
  if (spread) {
    y = c.op("depth_to_space", {y}, Attributes({{"block", factor}, {"mode", "crd"}}));
  } else {
    const Dim rows = floor_div(c.size(x, -2), factor);
    const Dim columns = floor_div(c.size(x, -1), factor);
    y = c.reshape(y, {images, c.size(x, -3), rows, factor, columns, factor});
    y = c.transpose(y, {0, 1, 3, 5, 2, 4});
    y = c.reshape(y, {images, c.size(x, -3) * Dim(factor * factor), rows, columns});
  }
  Sizes sizes = c.sizes(x);
  for (int i = 1; i <= 3 && c.ok(); ++i) sizes[sizes.size() - static_cast<std::size_t>(i)] = c.size(y, -i);
  return c.results({c.reshape(y, std::move(sizes))});
}

Result<Values> convert_pixel_shuffle(AtenNode& node) { return shuffled(node, node.integer("upscale_factor"), true); }
Result<Values> convert_pixel_unshuffle(AtenNode& node) {
  return shuffled(node, node.integer("downscale_factor"), false);
}

}  // namespace

std::vector<AtenEntry> aten_shape_entries() {
  return {
      {"_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, "
       "bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
       convert_to},
      {"_unsafe_view(Tensor self, SymInt[] size) -> Tensor", convert_view<name_size>},
      {"alias(Tensor(a) self) -> Tensor(a)", convert_same<name_self>},
      {"clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", convert_same<name_self>},
      {"contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)", convert_same<name_self>},
      {"detach(Tensor(a) self) -> Tensor(a)", convert_same<name_self>, true},
      {"broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", convert_expand},
      {"expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", convert_expand},
      {"expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", convert_expand_as},
      {"flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", convert_flatten},
      {"flip(Tensor self, int[] dims) -> Tensor", convert_flip},
      {"lift_fresh_copy(Tensor self) -> Tensor", convert_same<name_self>},
      {"movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
       convert_movedim<name_source, name_destination>},
      {"movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
       convert_movedim<name_source, name_destination>},
      {"permute(Tensor(a) self, int[] dims) -> Tensor(a)", convert_permute},
      {"pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", convert_pixel_shuffle},
      {"pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", convert_pixel_unshuffle},
      {"repeat(Tensor self, SymInt[] repeats) -> Tensor", convert_repeat<name_repeats>},
      {"reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", convert_view<name_shape>},
      {"roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", convert_roll},
      {"rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor", convert_rot90},
      {"squeeze(Tensor(a) self) -> Tensor(a)", convert_squeeze},
      {"squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", convert_squeeze_axes},
      {"squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", convert_squeeze_axes},
      {"t(Tensor(a) self) -> Tensor(a)", convert_t},
      {"tile(Tensor self, SymInt[] dims) -> Tensor", convert_repeat<name_dims>},
      {"to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
       "MemoryFormat? "
       "memory_format=None) -> Tensor(a)",
       convert_to},
      {"to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
       "memory_format=None) -> Tensor(a)",
       convert_to},
      {"to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
       convert_to},
      {"to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? "
       "memory_format=None) "
       "-> Tensor(a)",
       convert_to_other},
      {"swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", convert_transpose<name_axis0, name_axis1>},
      {"swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", convert_transpose<name_dim0, name_dim1>},
      {"transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", convert_transpose<name_dim0, name_dim1>},
      {"type_as(Tensor self, Tensor other) -> Tensor", convert_to_other},
      {"unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", convert_unflatten},
      {"unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", convert_unsqueeze},
      {"view(Tensor(a) self, SymInt[] size) -> Tensor(a)", convert_view<name_size>},
  };
}

}  // namespace polyphase

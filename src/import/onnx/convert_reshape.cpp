// Operators that change the shape and keep the elements: Reshape and its relatives, Transpose, Expand, Tile, Concat,
// Split, DepthToSpace.
#include <algorithm>
#include <numeric>

#include "import/compose/remaining_size.h"
#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

using Sizes = std::vector<Dim>;
using Integers = std::vector<std::int64_t>;

Result<Values> input_reshaped(NodeContext& node, Sizes sizes) {
  return single(node.emit("reshape", Attributes({{"shape", std::move(sizes)}}), {node.input(0)}));
}

// A shape that only data tells, with its 0 (copy this size) and -1 (the rest) worked out by nodes.
Result<Value*> worked_out(NodeContext& node, bool allow_zero) {
  const auto length = node.shape(1).element_count().constant();
  Value* shape = node.input(1);
  if (!length.has_value() || node.rank(1) != 1) return shape;  // which sizes() refuses
  TRY(shape, node.emit("cast", Attributes({{"to", DType::i64}}), {shape}));
  Value* zero = node.scalar(DType::i64, 0);
  if (!allow_zero) {
    Sizes copies(static_cast<std::size_t>(*length), Dim(0));
    for (std::size_t i = 0; i < copies.size() && i < static_cast<std::size_t>(node.rank(0)); ++i)
      copies[i] = node.shape(0)[static_cast<int>(i)];
    TRY(Value * copied, node.emit("equal", {}, {shape, zero}));
    TRY(shape, node.emit("where", {}, {copied, node.sizes_as_data(std::move(copies), false), shape}));
  }
  // The product is minus that of the sizes that are given.
  TRY(Value * product, node.emit("reduce_prod", Attributes({{"axes", Integers{0}}, {"keep", true}}), {shape}));
  TRY(Value * given, node.emit("neg", {}, {product}));
  Value* total = node.sizes_as_data({node.shape(0).element_count()}, false);
  TRY(Value * rest, node.emit("div", {}, {total, given}));
  TRY(Value * open, node.emit("less", {}, {shape, zero}));
  return node.emit("where", {}, {open, rest, shape});
}

Result<Values> convert_reshape(NodeContext& node) {
  const bool allow_zero = node.flag("allowzero", false);
  if (!node.input(1)->contents.has_value() && !node.fixed(1).has_value() && is_integer(node.type(1).dtype)) {
    TRY(Value * shape, worked_out(node, allow_zero));
    TRY(Sizes found, node.sizes_of(shape, "operand 1"));
    return input_reshaped(node, std::move(found));
  }
  TRY(Sizes sizes, node.sizes(1));
  const Shape& shape = node.shape(0);
  std::optional<std::size_t> open;
  Sizes known;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Dim& size = sizes[i];
    if (size == 0 && !allow_zero) {
      if (i >= static_cast<std::size_t>(shape.rank())) {
        return broken_rule("the shape has a 0 (copy this size) at place " + std::to_string(i) +
                           ", but the operand is " + node.type(0).text() + ".");
      }
      size = shape[static_cast<int>(i)];
    }
    if (size == -1) {
      if (open.has_value()) return broken_rule("the shape has -1 twice; only one size can be inferred.");
      open = i;
      continue;
    }
    if (size.range().high < 0)
      return broken_rule("the shape has the size " + size.text() + "; only -1 may be negative.");
    known.push_back(size);
  }
  if (open.has_value()) {
    if (std::find(known.begin(), known.end(), Dim(0)) != known.end() && allow_zero)
      return broken_rule("with allowzero the shape cannot have both 0 and -1.");
    const Dim rest = remaining_size(shape.dims(), known);
    if (rest.overflowed()) return broken_rule("the size for -1 cannot be inferred: the other sizes multiply to 0.");
    sizes[*open] = rest;
  }
  return input_reshaped(node, std::move(sizes));
}

Result<Values> convert_flatten(NodeContext& node) {
  const std::int64_t rank = node.rank(0);
  const std::int64_t given = node.integer("axis", 1);
  if (given < -rank || given > rank)
    return broken_rule("axis is " + std::to_string(given) + "; for rank " + std::to_string(rank) +
                       " it must lie in [-" + std::to_string(rank) + ", " + std::to_string(rank) + "].");
  const std::int64_t axis = given < 0 ? given + rank : given;
  Dim rows(1);
  Dim columns(1);
  for (int i = 0; i < node.rank(0); ++i) (i < axis ? rows : columns) *= node.shape(0)[i];
  return input_reshaped(node, {rows, columns});
}

// The axes of Squeeze and Unsqueeze: an attribute, from opset 13 an operand. Nothing: not given.
Result<std::optional<Integers>> given_axes(NodeContext& node) {
  if (node.version() < 13) {
    if (node.has(1)) return broken_rule("axes is an operand from opset 13 on; here it is an attribute.");
    return node.integers("axes");
  }
  if (!node.has(1)) return std::optional<Integers>();
  TRY(Integers axes, node.fixed_integers(1, "axes"));
  return std::optional<Integers>(std::move(axes));
}

Result<Values> convert_squeeze(NodeContext& node) {
  TRY(const auto given, given_axes(node));
  const Shape& shape = node.shape(0);
  Integers axes;
  if (given.has_value()) {
    TRY(axes, node.axes(*given, shape.rank()));
  } else {
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] == 1) axes.push_back(i);
      if (!shape[i].is_constant()) {
        node.warn("Squeeze without axes keeps axis " + std::to_string(i) + ", whose size " + shape[i].text() +
                  " is not fixed at 1");
      }
    }
  }
  Sizes sizes;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool goes = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!goes) sizes.push_back(shape[i]);
    if (goes && surely_different(shape[i], Dim(1)))
      return broken_rule("axis " + std::to_string(i) + " has size " + shape[i].text() +
                         "; only axes of size 1 can be removed.");
  }
  return input_reshaped(node, std::move(sizes));
}

Result<Values> convert_unsqueeze(NodeContext& node) {
  TRY(const auto given, given_axes(node));
  if (!given.has_value()) return broken_rule("axes is missing.");
  const Shape& shape = node.shape(0);
  const std::int64_t rank = shape.rank() + static_cast<std::int64_t>(given->size());
  if (rank > max_rank)
    return lacking("the result would have rank " + std::to_string(rank) + "; the highest rank is " +
                       std::to_string(max_rank) + ".",
                   "Use fewer axes.");
  TRY(const Integers axes, node.axes(*given, rank));
  Sizes sizes;
  int next = 0;
  for (std::int64_t i = 0; i < rank; ++i)
    sizes.push_back(std::find(axes.begin(), axes.end(), i) != axes.end() ? Dim(1) : shape[next++]);
  return input_reshaped(node, std::move(sizes));
}

Result<Values> convert_transpose(NodeContext& node) {
  Integers order(static_cast<std::size_t>(node.rank(0)));
  std::iota(order.rbegin(), order.rend(), 0);
  if (auto given = node.integers("perm"); given.has_value()) {
    TRY(order, node.axes(*given, node.rank(0)));
    if (static_cast<int>(order.size()) != node.rank(0))
      return broken_rule("perm lists " + std::to_string(order.size()) + " axes of " + std::to_string(node.rank(0)) +
                         ".");
  }
  return single(node.emit("transpose", Attributes({{"order", std::move(order)}}), {node.input(0)}));
}

// Both ways: where the shape has 1, the operand's size stays.
Result<Values> convert_expand(NodeContext& node) {
  TRY(const Sizes wanted, node.sizes(1));
  const Sizes& own = node.shape(0).dims();
  Sizes sizes(std::max(wanted.size(), own.size()), Dim(1));
  for (std::size_t back = 1; back <= sizes.size(); ++back) {
    const Dim a = back <= own.size() ? own[own.size() - back] : Dim(1);
    const Dim b = back <= wanted.size() ? wanted[wanted.size() - back] : Dim(1);
    Dim& size = sizes[sizes.size() - back];
    if (b == 1 || a == b) {
      size = a;
    } else if (a == 1 || surely_different(b, Dim(1))) {
      size = b;
    } else {
      size = surely_different(a, Dim(1)) ? a : max(a, b);
    }
    if (a.is_constant() && b.is_constant() && !(size == a && b == 1) && !(size == b && (a == 1 || a == b))) {
      return broken_rule("the operand " + node.type(0).text() + " does not broadcast to the shape " +
                         Shape(wanted).text() + ".");
    }
  }
  return single(node.emit("expand", Attributes({{"shape", std::move(sizes)}}), {node.input(0)}));
}

Result<Values> convert_tile(NodeContext& node) {
  TRY(Sizes repeats, node.sizes(1));
  if (static_cast<int>(repeats.size()) != node.rank(0)) {
    return broken_rule("repeats has " + std::to_string(repeats.size()) + " entries; the operand " +
                       node.type(0).text() + " needs one per axis.");
  }
  return single(node.emit("tile", Attributes({{"repeats", std::move(repeats)}}), {node.input(0)}));
}

Result<Values> convert_concat(NodeContext& node) {
  if (!node.has_attribute("axis")) return broken_rule("attribute 'axis' is missing.");
  TRY(const std::int64_t axis, node.axis(node.integer("axis", 0), node.rank(0)));
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    if (!node.has(i)) return broken_rule("operand " + std::to_string(i) + " is missing.");
  }
  if (node.input_count() == 1) return Values{node.input(0)};
  return single(node.emit("concat", Attributes({{"axis", axis}}), node.inputs()));
}

// The sizes of the parts along the axis.
Result<Sizes> split_sizes(NodeContext& node, const Dim& total) {
  Sizes parts;
  if (node.version() < 13) {
    if (node.has(1)) return broken_rule("split is an operand from opset 13 on; here it is an attribute.");
    if (const auto given = node.integers("split"); given.has_value() && !given->empty())
      parts.assign(given->begin(), given->end());
  } else if (node.has(1)) {
    TRY(parts, node.sizes(1));
  }
  auto count = static_cast<std::int64_t>(node.output_count());
  const bool has_count = node.version() >= 18 && node.has_attribute("num_outputs");
  if (has_count) {
    const std::int64_t given = node.integer("num_outputs", count);
    if (!parts.empty()) return broken_rule("both split and num_outputs are given.");
    if (given < count || given > 65536)
      return broken_rule("num_outputs is " + std::to_string(given) + ", but the node has " + std::to_string(count) +
                         " results.");
    count = given;
  }
  if (!parts.empty()) {
    if (static_cast<std::int64_t>(parts.size()) < count)
      return broken_rule("split has " + std::to_string(parts.size()) + " entries, but the node has " +
                         std::to_string(count) + " results.");
    Dim sum(0);
    for (const Dim& part : parts) sum += part;
    if (surely_different(sum, total))
      return broken_rule("split adds up to " + sum.text() + ", but the axis has size " + total.text() + ".");
    return parts;
  }
  if (count == 0) return broken_rule("the node has no results.");
  if (!has_count && total.is_constant() && total.value() % count != 0) {
    return broken_rule("the axis of size " + total.text() + " does not divide into " + std::to_string(count) +
                       " equal parts.");
  }
  const Dim part = has_count ? ceil_div(total, Dim(count)) : floor_div(total, Dim(count));
  parts.assign(static_cast<std::size_t>(count), part);
  parts.back() = total - part * Dim(count - 1);  // smaller if it does not divide
  return parts;
}

Result<Values> convert_split(NodeContext& node) {
  const Shape& shape = node.shape(0);
  TRY(const std::int64_t axis, node.axis(node.integer("axis", 0), shape.rank()));
  TRY(const Sizes parts, split_sizes(node, shape[static_cast<int>(axis)]));
  Sizes start(static_cast<std::size_t>(shape.rank()), Dim(0));
  const Integers step(static_cast<std::size_t>(shape.rank()), 1);
  Dim& at = start[static_cast<std::size_t>(axis)];
  Values results;
  for (std::size_t i = 0; i < node.output_count(); ++i) {
    Sizes size = shape.dims();
    size[static_cast<std::size_t>(axis)] = parts[i];
    TRY(Value * part,
        node.emit("slice", Attributes({{"start", start}, {"size", std::move(size)}, {"step", step}}), {node.input(0)}));
    results.push_back(part);
    at += parts[i];
  }
  return results;
}

Result<std::int64_t> block_size(NodeContext& node) {
  const std::int64_t block = node.integer("blocksize", 0);
  if (block < 1 || block > 65536)
    return broken_rule("blocksize is " + std::to_string(block) + "; it must be at least 1.");
  if (node.rank(0) != 4) return broken_rule("the operand must be (N, C, H, W), found " + node.type(0).text() + ".");
  return block;
}

Result<std::string> block_mode(NodeContext& node) {
  const std::string mode = node.word("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return broken_rule("mode is '" + mode.substr(0, 40) + "'; it must be DCR or CRD.");
  return std::string(mode == "DCR" ? "dcr" : "crd");
}

Result<Values> convert_depth_to_space(NodeContext& node) {
  TRY(const std::int64_t block, block_size(node));
  std::string mode = "dcr";
  if (node.version() >= 11) {
    TRY(mode, block_mode(node));
  }
  return single(node.emit("depth_to_space", Attributes({{"block", block}, {"mode", mode}}), {node.input(0)}));
}

// Mode CRD puts the channel first: (N, C, H/b, b, W/b, b) → (N, C, b, b, H/b, W/b).
Result<Values> convert_space_to_depth(NodeContext& node) {
  TRY(const std::int64_t block, block_size(node));
  std::string mode = "dcr";
  if (node.version() >= 28) {
    TRY(mode, block_mode(node));
  }
  if (mode == "dcr") return single(node.emit("space_to_depth", Attributes({{"block", block}}), {node.input(0)}));
  const Shape shape = node.shape(0);
  const Dim b(block);
  const Dim height = floor_div(shape[2], b);
  const Dim width = floor_div(shape[3], b);
  TRY(Value * blocks,
      node.emit("reshape", Attributes({{"shape", Sizes{shape[0], shape[1], height, b, width, b}}}), {node.input(0)}));
  TRY(Value * moved, node.emit("transpose", Attributes({{"order", Integers{0, 1, 3, 5, 2, 4}}}), {blocks}));
  return single(
      node.emit("reshape", Attributes({{"shape", Sizes{shape[0], shape[1] * b * b, height, width}}}), {moved}));
}

}  // namespace

std::vector<Converter> reshape_converters() {
  return {
      {"Concat", {4, 11, 13}, 1, any_number, convert_concat},
      {"DepthToSpace", {1, 11, 13, 28}, 1, 1, convert_depth_to_space},
      {"Expand", {8, 13}, 2, 2, convert_expand},
      {"Flatten", {1, 9, 11, 13, 21, 23, 24, 25}, 1, 1, convert_flatten},
      {"Reshape", {5, 13, 14, 19, 21, 23, 24, 25}, 2, 2, convert_reshape},
      {"SpaceToDepth", {1, 13, 28}, 1, 1, convert_space_to_depth},
      {"Split", {2, 11, 13, 18}, 1, 2, convert_split},
      {"Squeeze", {1, 11, 13, 21, 23, 24, 25}, 1, 2, convert_squeeze},
      {"Tile", {6, 13}, 2, 2, convert_tile},
      {"Transpose", {1, 13, 21, 23, 24, 25}, 1, 1, convert_transpose},
      {"Unsqueeze", {1, 11, 13, 21, 23, 24, 25}, 1, 2, convert_unsqueeze},
  };
}

}  // namespace polyphase

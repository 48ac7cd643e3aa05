// GridSample and AffineGrid.
#include <algorithm>

#include "import/compose/composer.h"
#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;

Result<Values> convert_grid_sample(NodeContext& node) {
  const std::string mode = node.word("mode", node.version() < 20 ? "bilinear" : "linear");
  const std::string padding = node.word("padding_mode", "zeros");
  const bool align_corners = node.flag("align_corners", false);
  const bool is_linear = mode == "linear" || mode == "bilinear";
  const bool is_cubic = mode == "cubic" || mode == "bicubic";
  if (!is_linear && !is_cubic && mode != "nearest")
    return broken_rule("mode is '" + mode.substr(0, 40) + "'; it must be linear, nearest or cubic.");
  if (padding != "zeros" && padding != "border" && padding != "reflection") {
    return broken_rule("padding_mode is '" + padding.substr(0, 40) + "'; it must be zeros, border or reflection.");
  }
  Composer make(node);
  // Whole numbers as well, by way of FP64.
  const DType own = node.type(0).dtype;
  Value* image = make.cast(node.input(0), is_float(own) ? own : DType::f64);
  Value* sampled = make.op("grid_sample", {image, node.input(1)},
                           Attributes({{"mode", std::string(is_linear ? "linear" : (is_cubic ? "cubic" : "nearest"))},
                                       {"padding", padding},
                                       {"align_corners", align_corners}}));
  return make.results({make.cast(sampled, own)});
}

// The coordinates of one axis: -1 … 1 between the centres of the outer elements, or between their outer edges.
Value* coordinates(Composer& make, const Dim& count, bool align_corners, DType dtype) {
  Value* places = make.counting(count, DType::f64);
  Value* size = make.cast(make.dims({count}, true), DType::f64);
  if (align_corners) {  // an axis of one element has only -1
    Value* last = make.op("max", {make.add(size, -1.0), make.number(1, DType::f64)});
    return make.cast(make.add(make.div(make.mul(places, 2), last), -1.0), dtype);
  }
  return make.cast(make.add(make.div(make.add(make.mul(places, 2), 1.0), size), -1.0), dtype);
}

// grid[n, place…] = theta[n] · (coordinates of the place, last axis first; 1)
Result<Values> convert_affine_grid(NodeContext& node) {
  const bool align_corners = node.flag("align_corners", false);
  TRY(const Sizes sizes, node.sizes(1, {.low = 0}));
  const auto spatial = static_cast<int>(sizes.size()) - 2;
  if (spatial != 2 && spatial != 3)
    return broken_rule("size must be (N, C, H, W) or (N, C, D, H, W), found " + std::to_string(sizes.size()) +
                       " numbers.");
  const Shape& theta = node.shape(0);
  if (theta.rank() != 3 || !(theta[1] == spatial) || !(theta[2] == spatial + 1)) {
    return broken_rule("theta must be (N, " + std::to_string(spatial) + ", " + std::to_string(spatial + 1) +
                       ") for a size of " + std::to_string(sizes.size()) + " numbers, found " + node.type(0).text() +
                       ".");
  }
  Composer make(node);
  make.require_equal(
      theta[0], sizes[0],
      "AffineGrid: theta and size must have the same N, found " + theta[0].text() + " and " + sizes[0].text() + ".");
  const DType dtype = node.type(0).dtype;
  const Sizes places(sizes.begin() + 2, sizes.end());
  Sizes each = places;
  each.push_back(1);
  Values columns;
  for (int i = spatial; i-- > 0;) {
    Sizes column(static_cast<std::size_t>(spatial) + 1, Dim(1));
    column[static_cast<std::size_t>(i)] = places[static_cast<std::size_t>(i)];
    columns.push_back(make.expand(
        make.reshape(coordinates(make, places[static_cast<std::size_t>(i)], align_corners, dtype), column), each));
  }
  columns.push_back(make.expand(make.number(1, dtype), each));
  Dim points(1);
  for (const Dim& size : places) points = points * size;
  Value* rows = make.reshape(make.concat(std::move(columns), spatial), {points, Dim(spatial + 1)});
  Sizes shape{sizes[0]};
  shape.insert(shape.end(), places.begin(), places.end());
  shape.push_back(spatial);
  return make.results({make.reshape(make.matmul(rows, make.swap_last(node.input(0))), std::move(shape))});
}

}  // namespace

std::vector<Converter> grid_converters() {
  return {
      {"AffineGrid", {20}, 2, 2, convert_affine_grid},
      {"GridSample", {16, 20, 22}, 2, 2, convert_grid_sample},
  };
}

}  // namespace polyphase

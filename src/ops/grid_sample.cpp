// grid_sample: an image read at the places that a grid names.
#include "ops/dense.h"
#include "ops/families.h"
#include "ops/grid_rule.h"
#include "ops/rules.h"

namespace polyphase {

GridRule grid_rule(const Attributes& attributes) {
  const auto& mode = attributes.get<std::string>("mode");
  const auto& padding = attributes.get<std::string>("padding");
  GridRule rule;
  rule.mode = mode == "linear" ? GridMode::linear : (mode == "nearest" ? GridMode::nearest : GridMode::cubic);
  rule.padding =
      padding == "zeros" ? GridPadding::zeros : (padding == "border" ? GridPadding::border : GridPadding::reflection);
  rule.align_corners = attributes.get<bool>("align_corners");
  return rule;
}

namespace {

Result<std::vector<Type>> infer_grid_sample(const InferContext& context) {
  TRY_VOID(expect_dtype(context, 0, DTypeSet::floats));
  TRY_VOID(expect_dtype(context, 1, DTypeSet::floats));
  const Shape& x = context.shape(0);
  const Shape& grid = context.shape(1);
  const int spatial = x.rank() - 2;
  if (spatial < 1 || spatial > 3 || grid.rank() != x.rank() || !(grid[grid.rank() - 1] == spatial)) {
    return refuse(context,
                  "the operand must be (N, C, one to three spatial axes) and the grid (N, as many axes, one coordinate "
                  "for each), found " +
                      context.input(0).text() + " and " + context.input(1).text() + ".");
  }
  TRY(Dim batch, expect_equal(context, x[0], "'x' axis 0 (N)", grid[0], "'grid' axis 0"));
  Shape y;
  y.push_back(std::move(batch));
  y.push_back(x[1]);
  for (int i = 0; i < spatial; ++i) y.push_back(grid[i + 1]);
  return std::vector<Type>{{context.input(0).dtype, y}};
}

// One result place of one image: its sum over all combinations of the axes' places.
struct Point {
  GridTaps axis[3];
  std::int64_t strides[3];
  int spatial;

  double sum(const double* image) const {
    double total = 0;
    for (int i = 0; i < axis[0].count; ++i) {
      if (axis[0].place[i] < 0) continue;
      for (int j = 0; j < axis[1].count; ++j) {
        if (axis[1].place[j] < 0) continue;
        for (int k = 0; k < axis[2].count; ++k) {
          if (axis[2].place[k] < 0) continue;
          const std::int64_t at =
              axis[0].place[i] * strides[0] + axis[1].place[j] * strides[1] + axis[2].place[k] * strides[2];
          total += axis[0].weight[i] * axis[1].weight[j] * axis[2].weight[k] * image[at];
        }
      }
    }
    return total;
  }
};

Result<void> reference_grid_sample(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& y = context.outputs[0];
  const GridRule rule = grid_rule(context.attributes);
  const std::vector<double> images = dense_values<double>(x);
  const std::vector<double> grid = dense_values<double>(context.inputs[1]);
  std::vector<double> out(static_cast<std::size_t>(y.element_count()));
  const int spatial = x.rank - 2;
  std::int64_t pixels = 1;
  std::int64_t points = 1;
  for (int i = 2; i < x.rank; ++i) {
    pixels *= x.sizes[static_cast<std::size_t>(i)];
    points *= y.sizes[static_cast<std::size_t>(i)];
  }
  const std::int64_t channels = x.sizes[1];
  for (std::int64_t n = 0; n < x.sizes[0]; ++n) {
    for (std::int64_t p = 0; p < points; ++p) {
      Point point{};
      std::int64_t stride = 1;
      for (int i = 0; i < 3; ++i) {  // the grid's first number is along the last axis
        const int own = 2 - i;
        point.axis[own] = {{0}, {1.0}, 1};
        if (i >= spatial) continue;
        const std::int64_t size = x.sizes[static_cast<std::size_t>(x.rank - 1 - i)];
        point.axis[own] = grid_taps(grid[static_cast<std::size_t>((n * points + p) * spatial + i)], size, rule);
        point.strides[own] = stride;
        stride *= size;
      }
      for (std::int64_t c = 0; c < channels; ++c) {
        out[static_cast<std::size_t>((n * channels + c) * points + p)] =
            point.sum(images.data() + (n * channels + c) * pixels);
      }
    }
  }
  store_values(out, y);
  return {};
}

}  // namespace

std::vector<OpDef> grid_sample_operators() {
  return {OpDef{
      .name = "grid_sample",
      .doc =
          "Reads an image at given places: y[n, c, o] = x[n, c, grid[n, o]]. A place is one coordinate per spatial "
          "axis, the last axis first;\n"
          "-1 and 1 are the centres of the outer elements (align_corners) or their outer edges. linear weighs the two, "
          "cubic (a = -0.75) the four\n"
          "nearest elements of each axis. Beyond the operand lie zeros, or its outer elements (border), or its mirror "
          "images, mirrored where -1\n"
          "and 1 lie (reflection); cubic bounds each of its places, the others the coordinate.\n"
          "Source: torch.nn.functional.grid_sample; ONNX operator GridSample.",
      .inputs = {{"x", "(N, C, one to three spatial axes), float"},
                 {"grid", "(N, as many axes, coordinates), any float dtype"}},
      .outputs = {{"y", "(N, C, the grid's axes), the dtype of x"}},
      .attributes = {{"mode",
                      AttributeKind::word,
                      "the interpolation",
                      Attribute(std::string("linear")),
                      {"linear", "nearest", "cubic"}},
                     {"padding",
                      AttributeKind::word,
                      "what lies beyond the operand",
                      Attribute(std::string("zeros")),
                      {"zeros", "border", "reflection"}},
                     {"align_corners", AttributeKind::boolean, "-1 and 1 are the centres of the outer elements",
                      Attribute(false)}},
      .infer = infer_grid_sample,
      .reference = reference_grid_sample,
      .layout = LayoutRule::per_axis}};
}

}  // namespace polyphase

// roi_align, roi_max_pool: features of rectangles of an image, on a grid of fixed size.
#include <algorithm>
#include <cmath>

#include "ops/dense.h"
#include "ops/families.h"
#include "ops/region.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_regions(const InferContext& context, std::int64_t columns) {
  TRY_VOID(expect_dtype(context, 0, DTypeSet::floats));
  TRY_VOID(expect_same_dtype(context, 0, 1));
  const Type& x = context.input(0);
  const Shape& rois = context.shape(1);
  if (x.shape.rank() != 4) return refuse(context, "operand 'x' must be (N, C, H, W), found " + x.text() + ".");
  if (rois.rank() != 2)
    return refuse(context,
                  "operand 'rois' must be [regions, " + std::to_string(columns) + "], found " + rois.text() + ".");
  TRY_VOID(expect_equal(context, rois[1], "axis 1 of 'rois'", Dim(columns), "the numbers of one region"));
  const auto height = context.attributes().get<std::int64_t>("height");
  const auto width = context.attributes().get<std::int64_t>("width");
  if (height < 1 || width < 1 || height > 65536 || width > 65536) {
    return refuse(context, "'height' and 'width' of the result must be from 1 to 65536, found " +
                               std::to_string(height) + " and " + std::to_string(width) + ".");
  }
  if (!std::isfinite(context.attributes().get<double>("scale")))
    return refuse(context, "'scale' must be a finite number.");
  return std::vector<Type>{{x.dtype, Shape{rois[0], x.shape[1], Dim(height), Dim(width)}}};
}

Result<std::vector<Type>> infer_roi_align(const InferContext& context) {
  TRY(std::vector<Type> types, infer_regions(context, 4));
  const Type& images = context.input(2);
  if ((images.dtype != DType::i64 && images.dtype != DType::i32) || images.shape.rank() != 1)
    return refuse(context, "operand 'images' must be a list of i64 or i32, found " + images.text() + ".");
  TRY_VOID(
      expect_equal(context, images.shape[0], "the size of 'images'", context.shape(1)[0], "the regions of 'rois'"));
  const auto samples = context.attributes().get<std::int64_t>("samples");
  if (samples < 0 || samples > 1024)
    return refuse(context, "'samples' must be from 0 to 1024, found " + std::to_string(samples) + ".");
  return types;
}

Result<std::vector<Type>> infer_roi_max_pool(const InferContext& context) { return infer_regions(context, 5); }

// The number of the image, or an Error if there is none of that number.
Result<std::int64_t> image_of(double given, const TensorView& x) {
  if (given >= 0 && given < static_cast<double>(x.sizes[0])) return static_cast<std::int64_t>(given);
  return Error{ErrorCode::invalid_argument, "a region names image " + std::to_string(given) + "; there are " +
                                                std::to_string(x.sizes[0]) + ", counted from 0."};
}

Result<void> reference_roi_align(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& y = context.outputs[0];
  const std::vector<double> values = dense_values<double>(x);
  const std::vector<double> rois = dense_values<double>(context.inputs[1]);
  const std::vector<std::int64_t> images = dense_values<std::int64_t>(context.inputs[2]);
  const RegionSettings settings = region_settings(context.attributes, x.sizes[2], x.sizes[3]);
  std::vector<double> result(static_cast<std::size_t>(y.element_count()));
  const std::int64_t cells = y.sizes[2] * y.sizes[3];
  const std::int64_t plane = x.sizes[2] * x.sizes[3];
  std::vector<double> joined(static_cast<std::size_t>(y.sizes[1]));
  for (std::int64_t roi = 0; roi < y.sizes[0]; ++roi) {
    TRY(const std::int64_t image, image_of(static_cast<double>(images[static_cast<std::size_t>(roi)]), x));
    const RegionGrid grid = region_grid(settings, rois.data() + roi * 4);
    if (!grid.is_usable) return Error{ErrorCode::invalid_argument, "a region is not finite, or far too large."};
    for (std::int64_t cell = 0; cell < cells; ++cell) {
      join_samples(settings, grid, cell / y.sizes[3], cell % y.sizes[3], values.data() + image * x.sizes[1] * plane,
                   plane, x.sizes[1], joined.data());
      for (std::int64_t c = 0; c < x.sizes[1]; ++c)
        result[static_cast<std::size_t>((roi * x.sizes[1] + c) * cells + cell)] = joined[static_cast<std::size_t>(c)];
    }
  }
  store_values(result, y);
  return {};
}

// Half away from 0, as C's round; far values are cut, so that sums stay inside int64.
std::int64_t rounded(double x) { return static_cast<std::int64_t>(std::round(std::clamp(x, -1e9, 1e9))); }

struct Cells {
  std::int64_t begin;
  std::int64_t end;
};

// What cell i of `count` covers of [first, first + extent), cut at the image.
Cells cells_of(std::int64_t i, std::int64_t count, std::int64_t first, std::int64_t extent, std::int64_t size) {
  const double bin = static_cast<double>(extent) / static_cast<double>(count);
  const auto begin = static_cast<std::int64_t>(std::floor(static_cast<double>(i) * bin)) + first;
  const auto end = static_cast<std::int64_t>(std::ceil(static_cast<double>(i + 1) * bin)) + first;
  return {std::clamp<std::int64_t>(begin, 0, size), std::clamp<std::int64_t>(end, 0, size)};
}

double greatest(const double* plane, std::int64_t width, const Cells& rows, const Cells& columns) {
  if (rows.begin >= rows.end || columns.begin >= columns.end) return 0;
  double best = -INFINITY;
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    for (std::int64_t j = columns.begin; j < columns.end; ++j) best = std::max(best, plane[i * width + j]);
  }
  return best;
}

Result<void> reference_roi_max_pool(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& y = context.outputs[0];
  const std::vector<double> values = dense_values<double>(x);
  const std::vector<double> rois = dense_values<double>(context.inputs[1]);
  const double scale = context.attributes.get<double>("scale");
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(y.element_count()));
  for (std::int64_t roi = 0; roi < y.sizes[0]; ++roi) {
    const double* region = rois.data() + roi * 5;
    TRY(const std::int64_t image, image_of(region[0], x));
    if (!std::isfinite(region[1] + region[2] + region[3] + region[4]))
      return Error{ErrorCode::invalid_argument, "a region is not finite."};
    const std::int64_t left = rounded(region[1] * scale);
    const std::int64_t top = rounded(region[2] * scale);
    const std::int64_t width = std::max<std::int64_t>(1, rounded(region[3] * scale) - left + 1);
    const std::int64_t height = std::max<std::int64_t>(1, rounded(region[4] * scale) - top + 1);
    for (std::int64_t c = 0; c < y.sizes[1]; ++c) {
      const double* plane = values.data() + (image * x.sizes[1] + c) * x.sizes[2] * x.sizes[3];
      for (std::int64_t i = 0; i < y.sizes[2]; ++i) {
        const Cells rows = cells_of(i, y.sizes[2], top, height, x.sizes[2]);
        for (std::int64_t j = 0; j < y.sizes[3]; ++j)
          result.push_back(greatest(plane, x.sizes[3], rows, cells_of(j, y.sizes[3], left, width, x.sizes[3])));
      }
    }
  }
  store_values(result, y);
  return {};
}

}  // namespace

RegionSettings region_settings(const Attributes& attributes, std::int64_t image_height, std::int64_t image_width) {
  return {attributes.get<std::int64_t>("height"),
          attributes.get<std::int64_t>("width"),
          attributes.get<std::int64_t>("samples"),
          image_height,
          image_width,
          attributes.get<double>("scale"),
          attributes.get<bool>("half_pixel"),
          attributes.get<std::string>("mode") == "max"};
}

RegionGrid region_grid(const RegionSettings& settings, const double* region) {
  const double offset = settings.half_pixel ? 0.5 : 0.0;
  const double left = region[0] * settings.scale - offset;
  const double top = region[1] * settings.scale - offset;
  double width = region[2] * settings.scale - offset - left;
  double height = region[3] * settings.scale - offset - top;
  if (!settings.half_pixel) {
    width = std::max(width, 1.0);
    height = std::max(height, 1.0);
  }
  RegionGrid grid;
  grid.left = left;
  grid.top = top;
  grid.cell_width = width / static_cast<double>(settings.width);
  grid.cell_height = height / static_cast<double>(settings.height);
  constexpr double most = 4096;
  grid.is_usable = std::isfinite(left + top + width + height) && grid.cell_width <= most && grid.cell_height <= most;
  if (!grid.is_usable) return grid;
  const auto adaptive = [](double size) { return static_cast<std::int64_t>(std::ceil(std::max(size, 0.0))); };
  grid.rows = settings.samples > 0 ? settings.samples : adaptive(grid.cell_height);
  grid.columns = settings.samples > 0 ? settings.samples : adaptive(grid.cell_width);
  return grid;
}

namespace {

// The two neighbours of a place along an axis and how near the second is; false: outside of the image.
struct Neighbours {
  std::int64_t low = 0;
  std::int64_t high = 0;
  double part = 0;
};

bool place(double at, std::int64_t size, Neighbours& out) {
  if (!(at >= -1.0 && at <= static_cast<double>(size))) return false;
  at = std::max(at, 0.0);
  out.low = static_cast<std::int64_t>(at);
  if (out.low >= size - 1) {
    out = {size - 1, size - 1, 0};
  } else {
    out.high = out.low + 1;
    out.part = at - static_cast<double>(out.low);
  }
  return true;
}

}  // namespace

RegionSample region_sample(const RegionSettings& settings, const RegionGrid& grid, std::int64_t row,
                           std::int64_t column, std::int64_t i, std::int64_t j) {
  const auto at = [](std::int64_t cell, std::int64_t sample, std::int64_t samples) {
    return static_cast<double>(cell) + (static_cast<double>(sample) + 0.5) / static_cast<double>(samples);
  };
  RegionSample out;
  Neighbours v;
  Neighbours h;
  if (!place(grid.top + at(row, i, grid.rows) * grid.cell_height, settings.image_height, v) ||
      !place(grid.left + at(column, j, grid.columns) * grid.cell_width, settings.image_width, h)) {
    return out;
  }
  const std::int64_t width = settings.image_width;
  out.place[0] = v.low * width + h.low;
  out.place[1] = v.low * width + h.high;
  out.place[2] = v.high * width + h.low;
  out.place[3] = v.high * width + h.high;
  out.weight[0] = (1 - v.part) * (1 - h.part);
  out.weight[1] = (1 - v.part) * h.part;
  out.weight[2] = v.part * (1 - h.part);
  out.weight[3] = v.part * h.part;
  return out;
}

std::vector<OpDef> region_operators() {
  const AttributeSpec height{"height", AttributeKind::integer, "rows of the result"};
  const AttributeSpec width{"width", AttributeKind::integer, "columns of the result"};
  const AttributeSpec scale{"scale", AttributeKind::real, "from the regions' coordinates to pixels of x",
                            Attribute(1.0)};
  return {
      OpDef{
          .name = "roi_align",
          .doc = "The mean (or greatest product) of bilinear samples in each cell of each region; a cell without "
                 "samples is 0. mode `max` takes the greatest of the four weighted neighbours, as ONNX has it. "
                 "Source: ONNX operator RoiAlign; torchvision.ops.roi_align.",
          .inputs = {{"x", "(N, C, H, W), float"},
                     {"rois", "[regions, 4], the dtype of x: left, top, right, bottom"},
                     {"images", "[regions], i64 or i32: which image of x each region is of"}},
          .outputs = {{"y", "(regions, C, height, width)"}},
          .attributes =
              {height,
               width,
               scale,
               {"samples", AttributeKind::integer,
                "samples per cell and axis; 0: as many as the cell has pixels, rounded up", Attribute(std::int64_t{0})},
               {"half_pixel", AttributeKind::boolean,
                "coordinates are of corners, so pixel centres lie at halves; else regions are at least one "
                "pixel in size",
                Attribute(true)},
               {"mode", AttributeKind::word, "how samples are joined", Attribute(std::string("avg")), {"avg", "max"}}},
          .infer = infer_roi_align,
          .reference = reference_roi_align,
          .one_dtype = 0b11},
      OpDef{.name = "roi_max_pool",
            .doc = "The greatest element in each cell of each region, whose corners are rounded to pixels; a cell "
                   "without elements is 0. Source: ONNX operator MaxRoiPool; torchvision.ops.roi_pool.",
            .inputs = {{"x", "(N, C, H, W), float"},
                       {"rois", "[regions, 5], the dtype of x: the image's number, left, top, right, bottom"}},
            .outputs = {{"y", "(regions, C, height, width)"}},
            .attributes = {height, width, scale},
            .infer = infer_roi_max_pool,
            .reference = reference_roi_max_pool,
            .one_dtype = 0b11},
  };
}

}  // namespace polyphase

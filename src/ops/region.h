// Where roi_align samples an image: shared by its definition and its kernel, so that both take the same places.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/attributes.h"

namespace polyphase {

struct RegionSettings {
  std::int64_t height;  // cells of the result
  std::int64_t width;
  std::int64_t samples;  // per cell and axis; 0: adaptive
  std::int64_t image_height;
  std::int64_t image_width;
  double scale;
  bool half_pixel;
  bool takes_max;
};
RegionSettings region_settings(const Attributes& attributes, std::int64_t image_height, std::int64_t image_width);

// One region in pixels, and the samples of each of its cells: rows × columns.
struct RegionGrid {
  double left = 0;
  double top = 0;
  double cell_width = 0;
  double cell_height = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool is_usable = false;  // finite, and of no absurd number of samples
};
// `region`: left, top, right, bottom.
RegionGrid region_grid(const RegionSettings& settings, const double* region);

// A sample is the weighted sum of four pixels, numbered in row-major order. Outside of the image all weights are 0.
struct RegionSample {
  std::int64_t place[4] = {};
  double weight[4] = {};
};
// Sample (i, j) of the cell (row, column).
RegionSample region_sample(const RegionSettings& settings, const RegionGrid& grid, std::int64_t row,
                           std::int64_t column, std::int64_t i, std::int64_t j);

// What the samples of a cell make of several channels, whose planes are `plane` elements apart.
template <typename T>
void join_samples(const RegionSettings& settings, const RegionGrid& grid, std::int64_t row, std::int64_t column,
                  const T* first, std::int64_t plane, std::int64_t channels, double* out) {
  std::fill_n(out, channels, 0.0);
  const std::int64_t count = plane == 0 ? 0 : grid.rows * grid.columns;  // an image without pixels has no samples
  for (std::int64_t at = 0; at < count; ++at) {
    const RegionSample sample = region_sample(settings, grid, row, column, at / grid.columns, at % grid.columns);
    const T* pixels = first;
    for (std::int64_t c = 0; c < channels; ++c, pixels += plane) {
      double part[4];
      for (int k = 0; k < 4; ++k) part[k] = sample.weight[k] * static_cast<double>(pixels[sample.place[k]]);
      const double best = std::max(std::max(part[0], part[1]), std::max(part[2], part[3]));
      const double sum = part[0] + part[1] + part[2] + part[3];
      out[c] = settings.takes_max ? (at == 0 ? best : std::max(out[c], best)) : out[c] + sum;
    }
  }
  if (settings.takes_max || count == 0) return;
  for (std::int64_t c = 0; c < channels; ++c) out[c] /= static_cast<double>(count);
}

}  // namespace polyphase

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

// One sample of several channels, whose planes are `plane` elements apart, joined with those before it.
template <bool takes_max, typename T>
void join_sample(const RegionSample& sample, bool is_first, const T* first, std::int64_t plane, std::int64_t channels,
                 double* out) {
  const T* corner[4];
  for (int k = 0; k < 4; ++k) corner[k] = first + sample.place[k];
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::int64_t at = c * plane;
    const double a = sample.weight[0] * static_cast<double>(corner[0][at]);
    const double b = sample.weight[1] * static_cast<double>(corner[1][at]);
    const double d = sample.weight[2] * static_cast<double>(corner[2][at]);
    const double e = sample.weight[3] * static_cast<double>(corner[3][at]);
    if constexpr (takes_max) {
      const double best = std::max(std::max(a, b), std::max(d, e));
      out[c] = is_first ? best : std::max(out[c], best);
    } else {
      out[c] += (a + b) + (d + e);
    }
  }
}

// What the samples of a cell make of the channels.
template <typename T>
void join_samples(const RegionSettings& settings, const RegionGrid& grid, std::int64_t row, std::int64_t column,
                  const T* first, std::int64_t plane, std::int64_t channels, double* out) {
  std::fill_n(out, channels, 0.0);
  const std::int64_t count = plane == 0 ? 0 : grid.rows * grid.columns;  // an image without pixels has no samples
  for (std::int64_t at = 0; at < count; ++at) {
    const RegionSample sample = region_sample(settings, grid, row, column, at / grid.columns, at % grid.columns);
    if (settings.takes_max) {
      join_sample<true>(sample, at == 0, first, plane, channels, out);
    } else {
      join_sample<false>(sample, at == 0, first, plane, channels, out);
    }
  }
  if (settings.takes_max || count == 0) return;
  for (std::int64_t c = 0; c < channels; ++c) out[c] /= static_cast<double>(count);
}

}  // namespace polyphase

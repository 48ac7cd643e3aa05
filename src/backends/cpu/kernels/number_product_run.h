// Runs one tile of a matrix product or convolution in FP64 or 64-bit integers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/cpu/kernels/number_product.h"
#include "backends/cpu/kernels/numbers.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

inline constexpr int product_rows = 4;
inline constexpr int64_t product_run = 128;  // factors of one row that are at hand as numbers

// Eight numbers; the compiler makes them as many registers as the cluster needs. Integers wrap as unsigned ones do.
template <class Number>
struct ProductLanes;
template <>
struct ProductLanes<double> {
  typedef double type __attribute__((vector_size(64)));
  using Element = double;
};
template <>
struct ProductLanes<int64_t> {
  typedef uint64_t type __attribute__((vector_size(64)));
  using Element = uint64_t;
};

template <class Number>
using Lanes = typename ProductLanes<Number>::type;
template <class Number>
using Lane = typename ProductLanes<Number>::Element;

// Sums of one row: its 16 columns.
template <class Number>
struct alignas(64) ProductRow {
  Lane<Number> sums[product_columns];
};

// sums[i] += Σ_k factors[i][k] · columns[k]
template <int rows, class Number>
inline void multiply_columns(ProductRow<Number>* sums, const Number (*factors)[product_run], const Number* columns,
                             int64_t count) {
  Lanes<Number> low[rows];
  Lanes<Number> high[rows];
  for (int i = 0; i < rows; ++i) {
    std::memcpy(&low[i], sums[i].sums, 64);
    std::memcpy(&high[i], sums[i].sums + 8, 64);
  }
  for (int64_t k = 0; k < count; ++k) {
    Lanes<Number> left;
    Lanes<Number> right;
    std::memcpy(&left, columns + k * product_columns, 64);
    std::memcpy(&right, columns + k * product_columns + 8, 64);
    for (int i = 0; i < rows; ++i) {
      const auto factor = static_cast<Lane<Number>>(factors[i][k]);
      low[i] += left * factor;
      high[i] += right * factor;
    }
  }
  for (int i = 0; i < rows; ++i) {
    std::memcpy(sums[i].sums, &low[i], 64);
    std::memcpy(sums[i].sums + 8, &high[i], 64);
  }
}

// Rows that are wanted, all of them at once where possible.
template <class Number>
inline void multiply_rows_of(ProductRow<Number>* sums, const Number (*factors)[product_run], const Number* columns,
                             int64_t count, unsigned wanted) {
  if (wanted == (1U << product_rows) - 1) {
    multiply_columns<product_rows>(sums, factors, columns, count);
    return;
  }
  for (int i = 0; i < product_rows; ++i) {
    if ((wanted >> i & 1U) != 0) multiply_columns<1>(sums + i, factors + i, columns, count);
  }
}

template <class Number>
inline void store_product(DType dtype, const ProductRow<Number>& row, int64_t columns, std::byte* to, int64_t stride) {
  Number numbers[product_columns];
  std::memcpy(numbers, row.sums, sizeof numbers);
  store_numbers(dtype, numbers, columns, to, stride);
}

// f(Number{}) for double or int64, which stands for uint64 as well.
template <class F>
POLYPHASE_INLINE void with_product_number(DType dtype, F&& f) {
  if (is_real(dtype)) return f(double{});
  f(int64_t{});
}

// ---------------------------------------------------------------- matmul

template <class Number>
inline void number_matmul_tile(const NumberMatmulPlan& plan, const std::byte* a, const std::byte* b, std::byte* y,
                               int64_t rows, int64_t columns) {
  const MatmulPlan& p = plan.walk;
  const int64_t bytes = bytes_of(plan.dtype);
  alignas(64) Number block[product_run * product_columns] = {};
  Number factors[product_rows][product_run];
  ProductRow<Number> sums[product_rows * 8] = {};
  for (int64_t k = 0; k < p.inner; k += product_run) {
    const int64_t inner = std::min(product_run, p.inner - k);
    for (int64_t i = 0; i < inner; ++i)
      load_numbers(plan.dtype, b + (k + i) * p.b_row * bytes, 1, columns, block + i * product_columns);
    for (int64_t row = 0; row < rows; row += product_rows) {
      const int64_t some = std::min<int64_t>(product_rows, rows - row);
      for (int64_t i = 0; i < some; ++i)
        load_numbers(plan.dtype, a + ((row + i) * p.a_row + k) * bytes, 1, inner, factors[i]);
      multiply_rows_of(sums + row, factors, block, inner, (1U << some) - 1);
    }
  }
  for (int64_t row = 0; row < rows; ++row) store_product(plan.dtype, sums[row], columns, y + row * p.y_row * bytes, 1);
}

inline void run_number_matmul(const NumberMatmulPlan& plan, const std::byte* a, const std::byte* b, std::byte* y,
                              int64_t tile) {
  const MatmulPlan& p = plan.walk;
  const int64_t bytes = bytes_of(plan.dtype);
  const int64_t column = tile % p.column_tiles * product_columns;
  const int64_t row = tile / p.column_tiles % p.row_tiles * p.tile_rows;
  int64_t batch = tile / p.column_tiles / p.row_tiles;
  for (int axis = p.batch_rank - 1; axis >= 0; --axis) {
    const int64_t at = batch % p.batch_sizes[axis];
    batch /= p.batch_sizes[axis];
    a += at * p.a_batch[axis] * bytes;
    b += at * p.b_batch[axis] * bytes;
    y += at * p.y_batch[axis] * bytes;
  }
  with_product_number(plan.dtype, [&]<class Number>(Number) {
    number_matmul_tile<Number>(plan, a + row * p.a_row * bytes, b + column * bytes,
                               y + (row * p.y_row + column) * bytes, std::min(p.tile_rows, p.rows - row),
                               std::min(product_columns, p.columns - column));
  });
}

// ---------------------------------------------------------------- convolution

// A tile: result pixels [first, end) of a row, 16 output channels of them.
template <class Number>
struct NumberConvTile {
  const NumberConvPlan& p;
  const std::byte* image;  // the group's first channel of the batch's first pixel
  const std::byte* bias;   // the first of the output channels
  const Number* packed;
  std::byte* out;
  int64_t columns;
  int64_t z;
  int64_t y;
  int64_t first;
  int64_t end;

  // Pixels x, x + step, … of one phase, `count` of them.
  void pixels(int64_t x, int64_t step, int64_t count) const {
    const ConvShape& s = p.shape;
    ProductRow<Number> sums[product_rows] = {};
    if (bias != nullptr) {
      Number start[product_columns] = {};
      load_numbers(p.dtype, bias, p.bias_stride, columns, start);
      for (auto& row : sums) std::memcpy(row.sums, start, sizeof start);
    }
    for (int64_t tap = 0; tap < s.kernel_points(); ++tap) {
      const int64_t at[3] = {tap / s.kernel[2] / s.kernel[1], tap / s.kernel[2] % s.kernel[1], tap % s.kernel[2]};
      int64_t from[3];
      if (!tap_position(s, 0, z, at[0], from[0]) || from[0] < 0 || from[0] >= s.in[0]) continue;
      if (!tap_position(s, 1, y, at[1], from[1]) || from[1] < 0 || from[1] >= s.in[1]) continue;
      if (!tap_position(s, 2, x, at[2], from[2])) continue;
      add_tap(sums, tap, from, s.transposed ? 1 : s.stride[2], count);
    }
    for (int64_t i = 0; i < count; ++i) {
      store_product(p.dtype, sums[i], columns, out + (x + i * step) * p.out.axis[2] * bytes_of(p.dtype), p.out.channel);
    }
  }

  void add_tap(ProductRow<Number>* sums, int64_t tap, const int64_t* from, int64_t x_step, int64_t count) const {
    const ConvShape& s = p.shape;
    Number factors[product_rows][product_run];
    const int64_t line = from[0] * p.in.axis[0] + from[1] * p.in.axis[1];
    for (int64_t c = 0; c < s.in_channels; c += product_run) {
      const int64_t channels = std::min(product_run, s.in_channels - c);
      unsigned wanted = 0;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = from[2] + i * x_step;
        if (at < 0 || at >= s.in[2]) continue;
        wanted |= 1U << i;
        const int64_t element = line + at * p.in.axis[2] + c * p.in.channel;
        load_numbers(p.dtype, image + element * bytes_of(p.dtype), p.in.channel, channels, factors[i]);
      }
      if (wanted == 0) return;
      multiply_rows_of(sums, factors, packed + (tap * s.in_channels + c) * product_columns, channels, wanted);
    }
  }

  void run() const {
    const ConvShape& s = p.shape;
    const int64_t step = s.transposed ? s.stride[2] : 1;
    for (int64_t phase = first; phase < std::min(first + step, end); ++phase) {
      for (int64_t x = phase; x < end; x += step * product_rows)
        pixels(x, step, std::min<int64_t>(product_rows, (end - x + step - 1) / step));
    }
  }
};

inline void run_number_conv(const NumberConvPlan& p, const std::byte* data, const std::byte* bias,
                            const std::byte* packed, std::byte* result, int64_t tile) {
  const ConvShape& s = p.shape;
  const int64_t bytes = bytes_of(p.dtype);
  const int64_t first = tile % p.x_chunks * p.x_chunk;
  tile /= p.x_chunks;
  const int64_t y = tile % s.out[1];
  tile /= s.out[1];
  const int64_t z = tile % s.out[0];
  tile /= s.out[0];
  const int64_t block = tile % p.column_blocks;
  tile /= p.column_blocks;
  const int64_t group = tile % s.groups;
  const int64_t n = tile / s.groups;
  const int64_t channel = group * s.out_channels + block * product_columns;
  const int64_t to = n * p.out.batch + channel * p.out.channel + z * p.out.axis[0] + y * p.out.axis[1];
  const int64_t panel = s.kernel_points() * s.in_channels * product_columns;
  with_product_number(p.dtype, [&]<class Number>(Number) {
    NumberConvTile<Number>{p,
                           data + (n * p.in.batch + group * s.in_channels * p.in.channel) * bytes,
                           bias == nullptr ? nullptr : bias + channel * p.bias_stride * bytes,
                           reinterpret_cast<const Number*>(packed) + (group * p.column_blocks + block) * panel,
                           result + to * bytes,
                           std::min(product_columns, s.out_channels - block * product_columns),
                           z,
                           y,
                           first,
                           std::min(first + p.x_chunk, s.out[2])}
        .run();
  });
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

// What conv_pairs, conv_disjoint, conv_pixels and conv_winograd multiply pairs with in one cluster: registers, or the
// matrix unit.
#include "backends/cpu/kernels/pair_unit.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/kernels/brief_results.h"
#include "backends/cpu/simd/pairs.h"
#include "backends/cpu/simd/unrolled.h"
#if POLYPHASE_PAIRS_ID == 1
#include "backends/cpu/kernels/pixels_tile.h"
#include "backends/cpu/kernels/product_tile.h"
#include "backends/cpu/kernels/winograd_unit.h"
#endif

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

#if POLYPHASE_PAIRS_ID == 2

// Eight tile registers: four of sums, a whole and a short step of rows, a whole and a short step of columns.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

constexpr int64_t matrix_depth = 32;  // bf16 numbers of one step
static_assert(pair_row_block == 2 * matrix_rows);

// Registers 4 to 7 hold whole steps; where segments leave a rest behind those, 6 and 7 hold it.
void prepare(int64_t depth) {
  const int64_t rest = depth % matrix_depth;
  TileConfig config;
  for (int i = 0; i < 8; ++i) {
    config.row_bytes[i] = 64;
    config.rows[i] = matrix_rows;
  }
  if (rest != 0) {
    config.row_bytes[6] = static_cast<uint16_t>(rest * 2);
    config.rows[7] = static_cast<uint8_t>(rest / 2);
  }
  // g++ takes the intrinsic to read a pointer's bytes only, and would leave the rest of the configuration unwritten.
  __asm__ volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

// Some segments, and of each the elements [begin, end), with which its sums begin or go on.
struct Part {
  int64_t first, last;
  int64_t begin, end;
};

constexpr int64_t part_steps = 24;  // of a part: its rows and the weights beside them fit into the first level
constexpr int64_t streamed_bytes = 24 << 10;  // of weights that pass by it

constexpr int64_t panel_row = 4 * pair_columns;  // bytes

// The intrinsics take no register but one that is written there.
template <bool streams>
POLYPHASE_INLINE void load_weights5(const uint16_t* from) {
  if constexpr (streams) {
    _tile_stream_loadd(5, from, panel_row);
  } else {
    _tile_loadd(5, from, panel_row);
  }
}

template <bool streams>
POLYPHASE_INLINE void load_weights6(const uint16_t* from) {
  if constexpr (streams) {
    _tile_stream_loadd(6, from, panel_row);
  } else {
    _tile_loadd(6, from, panel_row);
  }
}

template <bool streams>
POLYPHASE_INLINE void load_weights7(const uint16_t* from) {
  if constexpr (streams) {
    _tile_stream_loadd(7, from, panel_row);
  } else {
    _tile_loadd(7, from, panel_row);
  }
}

// Sums: 0 | 1    for columns beside each other,
//       2 | 3    for rows below each other.
template <bool two_rows, bool two_columns, bool streams>
void multiply_block(const PairTile& t, const Part& part, int64_t row, int64_t column) {
  constexpr int64_t panel_block = matrix_depth * pair_columns;
  float* const out = t.out + row * t.out_step + column;
  float* const out_below = out + matrix_rows * t.out_step;
  const int64_t out_bytes = t.out_step * 4;
  if (part.first == 0 && part.begin == 0) {
    _tile_zero(0);
    if (two_columns) _tile_zero(1);
    if (two_rows) _tile_zero(2);
    if (two_rows && two_columns) _tile_zero(3);
  } else {
    _tile_loadd(0, out, out_bytes);
    if (two_columns) _tile_loadd(1, out + pair_columns, out_bytes);
    if (two_rows) _tile_loadd(2, out_below, out_bytes);
    if (two_rows && two_columns) _tile_loadd(3, out_below + pair_columns, out_bytes);
  }
  const int64_t row_bytes = t.row_step * 2;
  const int64_t rest = t.depth % matrix_depth;
  const int64_t whole = part.end / matrix_depth * matrix_depth;
  const uint16_t* const panel = t.panels + column / pair_columns * t.panel_step + part.begin * pair_columns;
  for (int64_t s = part.first; s < part.last; ++s) {
    const uint16_t* a = t.rows + t.segments[s] + row * t.row_step;
    const uint16_t* below = a + matrix_rows * t.row_step;
    const uint16_t* b = panel + t.weights_at[s];
    const uint16_t* beside = b + t.panel_step;
    if (rest == 0) {
      for (int64_t k = part.begin; k < whole; k += matrix_depth, b += panel_block, beside += panel_block) {
        _tile_loadd(4, a + k, row_bytes);
        load_weights6<streams>(b);
        _tile_dpbf16ps(0, 4, 6);
        if (two_columns) {
          load_weights7<streams>(beside);
          _tile_dpbf16ps(1, 4, 7);
        }
        if (two_rows) {
          _tile_loadd(5, below + k, row_bytes);
          _tile_dpbf16ps(2, 5, 6);
          if (two_columns) _tile_dpbf16ps(3, 5, 7);
        }
      }
      continue;
    }
    for (int64_t k = part.begin; k < whole; k += matrix_depth, b += panel_block, beside += panel_block) {
      _tile_loadd(4, a + k, row_bytes);
      load_weights5<false>(b);
      _tile_dpbf16ps(0, 4, 5);
      if (two_columns) {
        load_weights5<streams>(beside);
        _tile_dpbf16ps(1, 4, 5);
      }
      if (two_rows) {
        _tile_loadd(4, below + k, row_bytes);
        if (two_columns) {
          _tile_dpbf16ps(3, 4, 5);
          load_weights5<streams>(b);
        }
        _tile_dpbf16ps(2, 4, 5);
      }
    }
    if (part.end != t.depth) continue;
    _tile_loadd(6, a + whole, row_bytes);
    load_weights7<false>(b);
    _tile_dpbf16ps(0, 6, 7);
    if (two_columns) {
      load_weights7<streams>(beside);
      _tile_dpbf16ps(1, 6, 7);
    }
    if (two_rows) {
      _tile_loadd(6, below + whole, row_bytes);
      if (two_columns) {
        _tile_dpbf16ps(3, 6, 7);
        load_weights7<streams>(b);
      }
      _tile_dpbf16ps(2, 6, 7);
    }
  }
  _tile_stored(0, out, out_bytes);
  if (two_columns) _tile_stored(1, out + pair_columns, out_bytes);
  if (two_rows) _tile_stored(2, out_below, out_bytes);
  if (two_rows && two_columns) _tile_stored(3, out_below + pair_columns, out_bytes);
}

// A part of a block of rows stays in the first-level cache for all columns, whose weights pass by.
template <bool streams>
void multiply_part(const PairTile& t, const Part& part, int64_t row) {
  const bool two_rows = t.row_count - row > matrix_rows;
  int64_t column = 0;
  // What streams is worth code of its own where most of the weights pass.
  for (; column + 2 * pair_columns <= t.columns; column += 2 * pair_columns) {
    two_rows ? multiply_block<true, true, streams>(t, part, row, column)
             : multiply_block<false, true, false>(t, part, row, column);
  }
  if (column == t.columns) return;
  two_rows ? multiply_block<true, false, false>(t, part, row, column)
           : multiply_block<false, false, false>(t, part, row, column);
}

void multiply(const PairTile& t) {
  const int64_t steps = ceil_div(t.depth, matrix_depth);  // of a segment
  const bool streams = steps * t.segment_count * matrix_depth * t.columns * 2 > streamed_bytes;
  const int64_t pieces = ceil_div(steps, part_steps);
  const int64_t piece = ceil_div(steps, pieces) * matrix_depth;
  const int64_t groups = ceil_div(t.segment_count, std::max<int64_t>(1, part_steps / steps));
  const int64_t group = ceil_div(t.segment_count, groups);
  for (int64_t row = 0; row < t.row_count; row += 2 * matrix_rows) {
    for (int64_t s = 0; s < t.segment_count; s += group) {
      for (int64_t k = 0; k < t.depth; k += piece) {
        const Part part = {s, std::min(s + group, t.segment_count), k, std::min(k + piece, t.depth)};
        streams ? multiply_part<true>(t, part, row) : multiply_part<false>(t, part, row);
      }
    }
  }
}

void release() { _tile_release(); }

#else

// Vectors of columns that one pass holds, and rows.
constexpr int panel_vectors = static_cast<int>(pair_columns / vec_width);
constexpr int pair_vectors = (POLYPHASE_PAIRS_ID > 0 ? 2 : 1) * panel_vectors;
constexpr int pair_rows = vec_width == 16 ? (POLYPHASE_PAIRS_ID > 0 ? 12 : 8) : vec_width == 8 ? 4 : 1;

template <int M, int V>
void run_pair_rows(const PairTile& t, int64_t row, int64_t column) {
  VecF acc[M * V];
  unrolled<M * V>([&](int i) POLYPHASE_INLINE_LAMBDA { acc[i] = broadcast(0.0F); });
  for (int64_t s = 0; s < t.segment_count; ++s) {
    const uint16_t* a = t.rows + t.segments[s] + row * t.row_step;
    const uint16_t* b = t.panels + column / pair_columns * t.panel_step + t.weights_at[s];
    for (int64_t k = 0; k < t.depth; k += 2, b += 2 * pair_columns) {
      VecI weights[V];
      unrolled<V>([&](int v) POLYPHASE_INLINE_LAMBDA {
        weights[v] = load(reinterpret_cast<const int32_t*>(b + v / panel_vectors * t.panel_step) +
                          v % panel_vectors * vec_width);
      });
      unrolled<M>([&](int i) POLYPHASE_INLINE_LAMBDA {
        int32_t pair;
        __builtin_memcpy(&pair, a + i * t.row_step + k, sizeof pair);
        const VecI pairs = broadcast(pair);
        unrolled<V>([&](int v)
                        POLYPHASE_INLINE_LAMBDA { acc[i * V + v] = dot_pairs(acc[i * V + v], pairs, weights[v]); });
      });
    }
  }
  unrolled<M * V>([&](int i) POLYPHASE_INLINE_LAMBDA {
    store(t.out + (row + i / V) * t.out_step + column + i % V * vec_width, acc[i]);
  });
}

using PairRowsFunction = void (*)(const PairTile&, int64_t row, int64_t column);

template <int V, int... Rows>
PairRowsFunction pick_pair_rows(int64_t rows, std::integer_sequence<int, Rows...>) {
  static constexpr PairRowsFunction table[] = {run_pair_rows<Rows + 1, V>...};
  return table[rows - 1];
}

void multiply(const PairTile& t) {
  constexpr auto all = std::make_integer_sequence<int, pair_rows>();
  const int64_t blocks = ceil_div(t.row_count, pair_rows);
  for (int64_t column = 0; column < t.columns;) {
    const bool whole = (t.columns - column) / vec_width >= pair_vectors;
    int64_t row = 0;
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t rows = (t.row_count - row) / (blocks - i);
      (whole ? pick_pair_rows<pair_vectors>(rows, all) : pick_pair_rows<panel_vectors>(rows, all))(t, row, column);
      row += rows;
    }
    column += whole ? pair_vectors * vec_width : pair_columns;
  }
}

void prepare(int64_t) {}
void release() {}

#endif

// Two pixels' channels are a vector of pairs; a square of those is turned in registers.
void turn(const PairResults& r) {
  for (int64_t c = 0; c < pair_columns; c += vec_width) {
    const VecF bias = load(r.bias + c);
    for (int64_t i = 0; i < r.count; i += 2 * vec_width) {
      const auto row = [&](int64_t k) POLYPHASE_INLINE_LAMBDA {
        return load(r.sums + std::min(i + k, r.count - 1) * r.pitch + c) + bias;
      };
      VecF pairs[vec_width];
      unrolled<vec_width>([&](int k)
                              POLYPHASE_INLINE_LAMBDA { pairs[k] = as_float(pair_sums(row(2 * k), row(2 * k + 1))); });
      transpose_lanes(pairs);
      unrolled<vec_width>([&](int k) POLYPHASE_INLINE_LAMBDA {
        store(reinterpret_cast<int32_t*>(r.to + (c + k) * r.to_pitch + i), as_int(pairs[k]));
      });
    }
  }
}

}  // namespace

#if POLYPHASE_PAIRS_ID == 1
constexpr WinogradUnit winograd_pairs = winograd_unit<Products::pairs>();
constexpr PairUnit pair_unit = {prepare,
                                multiply,
                                release,
                                turn,
                                store_brief_rows<false>,
                                store_brief_rows<true>,
                                multiply_panel<Products::pairs>,
                                &winograd_pairs,
                                pixels_tiles<Products::pairs>};
#else
constexpr PairUnit pair_unit = {prepare, multiply, release, turn, store_brief_rows<false>, store_brief_rows<true>,
                                nullptr, nullptr,  nullptr};
#endif

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

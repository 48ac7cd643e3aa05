// Runs one tile of attention: some queries of one head against all keys.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/simd/math.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/unrolled.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Rows of one register tile, two vectors wide; the last rows go in groups of a third.
inline constexpr int attention_rows = vec_width == 16 ? 12 : 6;
inline constexpr int attention_columns = 2 * vec_width;

// ---------------------------------------------------------------- products

struct AttentionProduct {
  const float* a;
  int64_t a_pitch;
  const float* b;  // panels of columns: [inner][panel width]
  int64_t inner;
  float* y;
  int64_t y_pitch;
  const float* factors;  // y = y * factor + a · b, one for each row; null: y = a · b
};

template <int rows, int vectors>
inline void multiply_panel(const AttentionProduct& p, int64_t row, int64_t column) {
  const float* a = p.a + row * p.a_pitch;
  const float* b = p.b + column * p.inner;
  float* y = p.y + row * p.y_pitch + column;
  constexpr int count = rows * vectors;
  VecF sums[count];  // [row][vector]
  unrolled<count>([&](int i) POLYPHASE_INLINE_LAMBDA { sums[i] = broadcast(0.0F); });
  for (int64_t k = 0; k < p.inner; ++k) {
    VecF columns[vectors];
    unrolled<vectors>([&](int j) POLYPHASE_INLINE_LAMBDA { columns[j] = load(b + (k * vectors + j) * vec_width); });
    unrolled<rows>([&](int i) POLYPHASE_INLINE_LAMBDA {
      const VecF factor = broadcast(a[i * p.a_pitch + k]);
      unrolled<vectors>([&](int j) POLYPHASE_INLINE_LAMBDA {
        sums[i * vectors + j] = fma(factor, columns[j], sums[i * vectors + j]);
      });
    });
  }
  const float* const factors = p.factors == nullptr ? nullptr : p.factors + row;
  unrolled<count>([&](int i) POLYPHASE_INLINE_LAMBDA {
    float* const to = y + i / vectors * p.y_pitch + i % vectors * vec_width;
    store(to, factors == nullptr ? sums[i] : fma(load(to), broadcast(factors[i / vectors]), sums[i]));
  });
}

template <int vectors>
inline void multiply_rows_of_panel(const AttentionProduct& p, int64_t rows, int64_t column) {
  constexpr int third = attention_rows / 3;
  for (int64_t row = 0; row < rows; row += attention_rows) {
    if (rows - row > 2 * third) {
      multiply_panel<attention_rows, vectors>(p, row, column);
    } else if (rows - row > third) {
      multiply_panel<2 * third, vectors>(p, row, column);
    } else {
      multiply_panel<third, vectors>(p, row, column);
    }
  }
}

// The last panel is one vector wide where that is enough.
inline void multiply(const AttentionProduct& p, int64_t rows, int64_t columns) {
  for (int64_t column = 0; column < columns; column += attention_columns) {
    if (columns - column > vec_width) {
      multiply_rows_of_panel<2>(p, rows, column);
    } else {
      multiply_rows_of_panel<1>(p, rows, column);
    }
  }
}

// Element (k, j) of `from` lies at k * inner_step + j * column_step. Panels are filled up with zeros.
struct AttentionOperand {
  const float* from;
  int64_t inner;
  int64_t inner_step;
  int64_t columns;
  int64_t column_step;
};

// One vector of columns, `count` of them real, `pitch` elements from row to row of the panel.
inline void pack_vector(const AttentionOperand& o, int64_t column, float* panel, int64_t pitch) {
  const int count = lanes_of(o.columns - column);
  const float* from = o.from + column * o.column_step;
  if (o.column_step == 1) {
    for (int64_t k = 0; k < o.inner; ++k) store(panel + k * pitch, load_first(from + k * o.inner_step, count));
    return;
  }
  if (o.inner_step == 1) {
    for (int64_t k = 0; k < o.inner; k += vec_width) {
      const int n = lanes_of(o.inner - k);
      VecF lanes[vec_width];
      for (int j = 0; j < vec_width; ++j)
        lanes[j] = j < count ? load_first(from + j * o.column_step + k, n) : broadcast(0.0F);
      transpose_lanes(lanes);
      for (int i = 0; i < n; ++i) store(panel + (k + i) * pitch, lanes[i]);
    }
    return;
  }
  for (int64_t k = 0; k < o.inner; ++k) {
    for (int j = 0; j < vec_width; ++j)
      panel[k * pitch + j] = j < count ? from[k * o.inner_step + j * o.column_step] : 0.0F;
  }
}

inline void pack_panels(const AttentionOperand& o, float* to) {
  for (int64_t column = 0; column < o.columns; column += attention_columns) {
    float* panel = to + column * o.inner;
    const bool wide = o.columns - column > vec_width;
    pack_vector(o, column, panel, wide ? attention_columns : vec_width);
    if (wide) pack_vector(o, column + vec_width, panel + vec_width, attention_columns);
  }
}

// ---------------------------------------------------------------- weights

// exp(x) = 2^t for x <= 0, t = x / ln(2) = n + r, |r| <= 1/2: 0 where the result would be subnormal. Adding 1.5 · 2^23
// rounds t, and leaves n + 127 where a shift makes it the exponent of 2^n; of n = -127 that is 0. NaN stays NaN.
POLYPHASE_INLINE VecF exp_of_nonpositive(VecF x) {
  const VecF rounding = broadcast(12582912.0F + 127.0F);
  const VecF t = max(broadcast(-127.0F), x * broadcast(1.44269504F));
  const VecF biased = t + rounding;
  const VecF r = t - (biased - rounding);
  constexpr float series[] = {1.0F,           0.693147203F,   0.240226479F,   0.0555033247F,
                              0.00961843738F, 0.00133988757F, 0.000153533585F};
  return polynomial(r, series) * as_float(shift_left<23>(as_int(biased)));
}

// The operands and the result, or those of one tile; biases that are absent are null.
struct AttentionPointers {
  const float* q;
  const float* k;
  const float* v;
  const float* bias[AttentionPlan::biases];
  float* y;
};

// Where the tile's queries lie and what hides keys from them.
struct AttentionRows {
  const float* const* bias;  // [AttentionPlan::biases], each of the tile's first query, or null
  int64_t first_query;
  int64_t rows;
};

// What is added to the scores of one row: elements beside each other of some biases, and one sum of those that are the
// same for all keys.
struct AddedScores {
  const float* rows[AttentionPlan::biases] = {};
  int count = 0;
  float same = 0;
};

// The biases of a row from a key on. One whose keys lie apart is added at once.
inline AddedScores added_scores(const AttentionPlan& p, const float* const* biases, int64_t row, int64_t key,
                                int64_t visible, float* scores) {
  AddedScores added;
  for (int b = 0; b < AttentionPlan::biases; ++b) {
    if (biases[b] == nullptr || visible <= 0) continue;
    const int64_t* by = p.bias[b].strides;
    const float* const from = biases[b] + row * by[2] + key * by[3];
    if (by[3] == 1) {
      added.rows[added.count++] = from;
    } else if (by[3] == 0) {
      added.same += *from;
    } else {
      for (int64_t j = 0; j < visible; ++j) scores[j] += from[j * by[3]];
    }
  }
  return added;
}

// Adds the biases to the scores of a row, hides what lies beyond `visible` keys, and gives the largest score.
inline float finish_scores(float* scores, const AddedScores& added, int64_t visible, int64_t padded) {
  const VecF hidden = broadcast(-std::numeric_limits<float>::infinity());
  const VecF same = broadcast(added.same);
  VecF largest = hidden;
  for (int64_t j = 0; j < padded; j += vec_width) {
    const int n = static_cast<int>(std::clamp<int64_t>(visible - j, 0, vec_width));
    VecF x = load(scores + j) + same;
    for (int b = 0; b < added.count; ++b) x = x + load_some(added.rows[b] + j, n);
    x = first_lanes(x, n, hidden);
    store(scores + j, x);
    largest = max(x, largest);
  }
  return max_lane(largest);
}

// Scores of one block become weights; m, l and the factor of each row follow.
inline void weigh_block(const AttentionPlan& p, const AttentionRows& at, int64_t first_key, int64_t count,
                        float* scratch) {
  const int64_t padded = (count + vec_width - 1) / vec_width * vec_width;
  float* m = scratch + p.state_at;
  float* l = m + p.rows;
  float* factors = l + p.rows;
  for (int64_t i = 0; i < at.rows; ++i) {
    float* scores = scratch + p.score_at + i * p.score_pitch;
    const int64_t visible = p.causal != 0 ? std::min(count, at.first_query + i + 1 - first_key) : count;
    const AddedScores added = added_scores(p, at.bias, i, first_key, visible, scores);
    const float before = m[i];
    m[i] = std::max(before, finish_scores(scores, added, visible, padded));
    const float top = m[i] == -std::numeric_limits<float>::infinity() ? 0.0F : m[i];
    VecF total = broadcast(0.0F);
    for (int64_t j = 0; j < padded; j += vec_width) {
      const VecF e = exp_of_nonpositive(load(scores + j) - broadcast(top));
      store(scores + j, e);
      total = total + e;
    }
    float lanes[vec_width];
    store(lanes, exp_of_nonpositive(broadcast(before - top)));
    factors[i] = lanes[0];
    l[i] = l[i] * factors[i] + sum(total);
  }
}

// ---------------------------------------------------------------- a tile

inline void load_queries(const AttentionPlan& p, const float* q, int64_t rows, float* to) {
  const VecF scale = broadcast(p.scale);
  for (int64_t i = 0; i < p.rows; ++i) {
    float* row = to + i * p.q_pitch;
    const float* from = q + i * p.q[2];
    if (i >= rows) {
      std::fill(row, row + p.width, 0.0F);
    } else if (p.q[3] == 1) {
      for (int64_t c = 0; c < p.width; c += vec_width)
        store(row + c, load_first(from + c, lanes_of(p.width - c)) * scale);
    } else {
      for (int64_t c = 0; c < p.width; ++c) row[c] = from[c * p.q[3]] * p.scale;
    }
  }
}

inline void store_results(const AttentionPlan& p, const float* scratch, int64_t rows, float* y) {
  const float* l = scratch + p.state_at + p.rows;
  for (int64_t i = 0; i < rows; ++i) {
    const float* from = scratch + p.o_at + i * p.o_pitch;
    float* to = y + i * p.y[2];
    const bool zeros = p.keys == 0 || (p.guarded != 0 && !(l[i] > 0.0F));
    const VecF sum = broadcast(l[i]);
    for (int64_t c = 0; c < p.value_width; c += vec_width) {
      const int n = lanes_of(p.value_width - c);
      const VecF result = zeros ? broadcast(0.0F) : load(from + c) / sum;
      if (p.y[3] == 1) {
        store_first(to + c, result, n);
        continue;
      }
      float lanes[vec_width];
      store(lanes, result);
      for (int lane = 0; lane < n; ++lane) to[(c + lane) * p.y[3]] = lanes[lane];
    }
  }
}

// scores = q · kᵀ of one block; long heads in pieces.
inline void score_block(const AttentionPlan& p, const float* k, int64_t count, int64_t rows, float* scratch) {
  const float* ones = scratch + p.state_at + 3 * p.rows;
  for (int64_t c = 0; c == 0 || c < p.width; c += AttentionPlan::inner_block) {
    const int64_t inner = std::min(AttentionPlan::inner_block, p.width - c);
    pack_panels({k + c * p.k[3], inner, p.k[3], count, p.k[2]}, scratch + p.k_at);
    multiply(
        {scratch + c, p.q_pitch, scratch + p.k_at, inner, scratch + p.score_at, p.score_pitch, c == 0 ? nullptr : ones},
        rows, count);
  }
}

inline void run_attention(const AttentionPlan& p, AttentionPointers at, int64_t tile, float* scratch) {
  const int64_t first = tile % p.query_tiles * p.tile_queries;
  const int64_t head = tile / p.query_tiles % p.heads;
  const int64_t batch = tile / p.query_tiles / p.heads;
  const int64_t shared = head / p.heads_per_key;
  const int64_t rows = std::min(p.tile_queries, p.queries - first);
  at.q += batch * p.q[0] + head * p.q[1] + first * p.q[2];
  at.k += batch * p.k[0] + shared * p.k[1];
  at.v += batch * p.v[0] + shared * p.v[1];
  at.y += batch * p.y[0] + head * p.y[1] + first * p.y[2];
  for (int b = 0; b < AttentionPlan::biases; ++b) {
    const int64_t* by = p.bias[b].strides;
    if (at.bias[b] != nullptr) at.bias[b] += batch * by[0] + head * by[1] + first * by[2];
  }
  const AttentionRows seen = {at.bias, first, rows};
  float* m = scratch + p.state_at;
  std::fill(m, m + p.rows, -std::numeric_limits<float>::infinity());
  std::fill(m + p.rows, m + 2 * p.rows, 0.0F);
  std::fill(m + 2 * p.rows, m + 4 * p.rows, 1.0F);  // the factors, and the ones of score_block
  load_queries(p, at.q, rows, scratch);
  const int64_t keys = p.causal != 0 ? std::min(p.keys, first + rows) : p.keys;
  for (int64_t key = 0; key < keys; key += p.block_keys) {
    const int64_t count = std::min(p.block_keys, keys - key);
    score_block(p, at.k + key * p.k[2], count, rows, scratch);
    weigh_block(p, seen, key, count, scratch);
    pack_panels({at.v + key * p.v[2], count, p.v[2], p.value_width, p.v[3]}, scratch + p.v_at);
    multiply({scratch + p.score_at, p.score_pitch, scratch + p.v_at, count, scratch + p.o_at, p.o_pitch,
              key == 0 ? nullptr : m + 2 * p.rows},
             rows, p.value_width);
  }
  store_results(p, scratch, rows, at.y);
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

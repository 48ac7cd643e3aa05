// Runs one tile of one time step of a recurrence.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/cpu/kernels/blocked_sum.h"
#include "backends/cpu/kernels/recurrence.h"
#include "backends/cpu/simd/math.h"
#include "backends/cpu/simd/unrolled.h"
#include "kernel/row.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

inline constexpr int recurrence_rows = vec_width == 16 ? 4 : 2;  // of the batch, in registers

// sums[i][g] = Σ_k row[i][k] · panel[k][g]: one row alone is added up in two chains, to wait less for each sum, and its
// weights, which are one stream from the outer caches, are fetched. Its own function, so that the registers are for the
// products.
template <int rows, int gates>
__attribute__((noinline)) void recurrent_products(const float* const* row, const float* panel, int64_t count,
                                                  VecF (&sums)[rows][gates]) {
  constexpr int chains = rows == 1 ? 2 : 1;
  constexpr int64_t ahead = 512;  // floats
  constexpr int all = rows * gates;
  VecF total[all];  // [row][gate]
  unrolled<all>([&](int i) POLYPHASE_INLINE_LAMBDA { total[i] = broadcast(0.0F); });
  for (int64_t first = 0; first < count; first += sum_piece) {
    const int64_t end = std::min(first + sum_piece, count);
    VecF piece[chains * all];  // [chain][row][gate]
    unrolled<chains * all>([&](int i) POLYPHASE_INLINE_LAMBDA { piece[i] = broadcast(0.0F); });
    const auto add = [&](int64_t k, int chain) POLYPHASE_INLINE_LAMBDA {
      VecF column[gates];
      unrolled<gates>([&](int g) POLYPHASE_INLINE_LAMBDA {
        const float* const at = panel + (k * gates + g) * vec_width;
        if (rows == 1 && (g % 2 == 0 || vec_width == 16)) __builtin_prefetch(at + ahead, 0, 3);
        column[g] = load(at);
      });
      unrolled<rows>([&](int i) POLYPHASE_INLINE_LAMBDA {
        const VecF h = broadcast(row[i][k]);
        unrolled<gates>([&](int g) POLYPHASE_INLINE_LAMBDA {
          VecF& sum = piece[(chain * rows + i) * gates + g];
          sum = fma(h, column[g], sum);
        });
      });
    };
    int64_t k = first;
    for (; k + chains <= end; k += chains)
      unrolled<chains>([&](int chain) POLYPHASE_INLINE_LAMBDA { add(k + chain, chain); });
    for (; k < end; ++k) add(k, 0);
    unrolled<all>([&](int i) POLYPHASE_INLINE_LAMBDA {
      if constexpr (chains == 2) piece[i] = piece[i] + piece[all + i];
      total[i] = total[i] + piece[i];
    });
  }
  unrolled<all>([&](int i) POLYPHASE_INLINE_LAMBDA { sums[i / gates][i % gates] = total[i]; });
}

class RecurrenceRun {
 public:
  RecurrenceRun(const RecurrencePlan& plan, const Pointers& pointers)
      : p_(plan),
        memory_(plan),
        x_(reinterpret_cast<const float*>(pointers.inputs[0])),
        packed_(reinterpret_cast<const float*>(pointers.packed)),
        bias_(floats(pointers, plan.bias)),
        peephole_(floats(pointers, plan.peephole)),
        initial_h_(floats(pointers, plan.initial_h)),
        initial_c_(floats(pointers, plan.initial_c)),
        lengths_(plan.lengths < 0 ? nullptr : reinterpret_cast<const int32_t*>(pointers.inputs[plan.lengths])),
        y_(reinterpret_cast<float*>(pointers.outputs[0])),
        h_(reinterpret_cast<float*>(pointers.outputs[1])),
        c_(plan.cell == Cell::lstm ? reinterpret_cast<float*>(pointers.outputs[2]) : nullptr),
        shared_(reinterpret_cast<float*>(pointers.shared)) {}

  Fault prepare() const {
    for (int64_t b = 0; lengths_ != nullptr && b < p_.batch; ++b) {
      if (lengths_[b] < 0 || lengths_[b] > p_.steps) return "a length lies outside 0 to the number of steps";
    }
    std::memset(shared_, 0, static_cast<size_t>(memory_.first) * sizeof(float));
    if (bias_ != nullptr) {
      for (int64_t d = 0; d < p_.directions; ++d) lay_out_biases(d);
    }
    if (p_.cell == Cell::lstm) {
      for (int64_t row = 0; row < p_.directions * p_.batch; ++row) {
        float* to = shared_ + memory_.first + row * padded();
        std::memset(to, 0, static_cast<size_t>(padded()) * sizeof(float));
        if (initial_c_ != nullptr)
          std::memcpy(to, initial_c_ + row * p_.hidden, static_cast<size_t>(p_.hidden) * sizeof(float));
      }
    }
    return nullptr;
  }

  void hand_over() const {
    for (int64_t d = 0; d < p_.directions; ++d) {
      for (int64_t b = 0; b < p_.batch; ++b) {
        const int64_t row = d * p_.batch + b;
        const auto bytes = static_cast<size_t>(p_.hidden) * sizeof(float);
        std::memcpy(h_ + row * p_.hidden, state_before(d, b, length(b)), bytes);
        if (c_ != nullptr) std::memcpy(c_ + row * p_.hidden, shared_ + memory_.first + row * padded(), bytes);
      }
    }
  }

  void step(int64_t s, int part, int64_t tile) const {
    const int64_t units = tile % p_.unit_tiles;
    const int64_t rows = tile / p_.unit_tiles % p_.row_tiles;
    const int64_t d = tile / p_.unit_tiles / p_.row_tiles;
    const int64_t end_block = std::min((units + 1) * p_.tile_blocks, p_.blocks);
    const int64_t end_row = std::min((rows + 1) * p_.tile_rows, p_.batch);
    for (int64_t block = units * p_.tile_blocks; block < end_block; ++block) {
      for (int64_t b = rows * p_.tile_rows; b < end_row;) {
        const Place at = {s, d, block, b};
        const int64_t left = end_row - b;
        if (left >= recurrence_rows) {
          cell<recurrence_rows>(at, part);
          b += recurrence_rows;
        } else if (left >= 2) {
          cell<2>(at, part);
          b += 2;
        } else {
          cell<1>(at, part);
          b += 1;
        }
      }
    }
  }

 private:
  struct Place {
    int64_t s;
    int64_t d;
    int64_t block;
    int64_t b;
  };

  static const float* floats(const Pointers& pointers, int32_t operand) {
    return operand < 0 ? nullptr : reinterpret_cast<const float*>(pointers.inputs[operand]);
  }
  int64_t padded() const { return p_.blocks * vec_width; }
  int64_t length(int64_t b) const { return lengths_ == nullptr ? p_.steps : lengths_[b]; }
  // The time of step s; beyond a sequence's length both directions meet the times that are left, in order.
  int64_t time(int64_t d, int64_t b, int64_t s) const {
    return p_.reversed[d] != 0 && s < length(b) ? length(b) - 1 - s : s;
  }
  float* y_row(int64_t d, int64_t b, int64_t t) const {
    return y_ + ((t * p_.directions + d) * p_.batch + b) * p_.hidden;
  }
  const float* state_before(int64_t d, int64_t b, int64_t s) const {
    if (s > length(b)) return shared_;  // not used: zeros
    if (s > 0) return y_row(d, b, time(d, b, s - 1));
    return initial_h_ == nullptr ? shared_ : initial_h_ + (d * p_.batch + b) * p_.hidden;
  }
  int lanes(int64_t block) const { return lanes_of(p_.hidden - block * vec_width); }
  float* state(int64_t base, const Place& at, int row) const {
    return shared_ + base + (at.d * p_.batch + at.b + row) * padded() + at.block * vec_width;
  }

  // [direction][block][vector][lane]; a gru's hidden gate keeps its two apart.
  void lay_out_biases(int64_t d) const {
    const int kinds = recurrence_biases(p_.cell);
    const float* w = bias_ + d * 2 * p_.gates * p_.hidden;
    const float* r = w + p_.gates * p_.hidden;
    for (int64_t i = 0; i < p_.hidden; ++i) {
      float* to = shared_ + memory_.biases + ((d * p_.blocks + i / vec_width) * kinds) * vec_width + i % vec_width;
      for (int g = 0; g < p_.gates; ++g) {
        const int64_t at = g * p_.hidden + i;
        const bool apart = p_.cell == Cell::gru && g == 2 && p_.linear_before_reset != 0;
        to[g * vec_width] = apart ? w[at] : w[at] + r[at];
        if (apart) to[3 * vec_width] = r[at];
      }
    }
  }

  VecF clipped(VecF x) const {
    if (p_.clip == 0.0F) return x;
    return min(broadcast(p_.clip), max(broadcast(-p_.clip), x));
  }
  VecF sigmoid_of(VecF x) const { return sigmoid(clipped(x)); }
  VecF tanh_of(VecF x) const { return tanh(clipped(x)); }

  template <int rows>
  void cell(const Place& at, int part) const {
    if (p_.cell == Cell::lstm) return lstm<rows>(at);
    if (p_.cell == Cell::rnn) return rnn<rows>(at);
    if (p_.linear_before_reset != 0) return gru_after<rows>(at);
    if (part == 0) return gru_gates<rows>(at);
    gru_hidden<rows>(at);
  }

  template <int rows>
  void states_before(const Place& at, const float* (&row)[rows]) const {
    for (int i = 0; i < rows; ++i) row[i] = state_before(at.d, at.b + i, at.s);
  }
  const float* panel(const Place& at) const {
    return packed_ + (at.d * p_.blocks + at.block) * p_.hidden * p_.gates * vec_width;
  }
  const float* biases(const Place& at) const {
    return shared_ + memory_.biases + (at.d * p_.blocks + at.block) * recurrence_biases(p_.cell) * vec_width;
  }
  // x of a gate, and its bias.
  VecF entering(const Place& at, int row, int gate) const {
    const int64_t t = time(at.d, at.b + row, at.s);
    const float* x = x_ + ((t * p_.batch + at.b + row) * p_.directions + at.d) * p_.gates * p_.hidden;
    return load_first(x + gate * p_.hidden + at.block * vec_width, lanes(at.block)) +
           load(biases(at) + gate * vec_width);
  }
  bool ended(const Place& at, int row) const { return at.s >= length(at.b + row); }
  void store_h(const Place& at, int row, VecF h) const {
    float* to = y_row(at.d, at.b + row, time(at.d, at.b + row, at.s)) + at.block * vec_width;
    store_first(to, ended(at, row) ? broadcast(0.0F) : h, lanes(at.block));
  }

  template <int rows>
  void rnn(const Place& at) const {
    const float* row[rows];
    VecF sums[rows][1];
    states_before(at, row);
    recurrent_products<rows, 1>(row, panel(at), p_.hidden, sums);
    for (int i = 0; i < rows; ++i) {
      const VecF x = clipped(entering(at, i, 0) + sums[i][0]);
      store_h(at, i, p_.relu[at.d] != 0 ? max(broadcast(0.0F), x) : tanh(x));
    }
  }

  template <int rows>
  void lstm(const Place& at) const {
    const float* row[rows];
    VecF sums[rows][4];
    states_before(at, row);
    recurrent_products<rows, 4>(row, panel(at), p_.hidden, sums);
    VecF peep[3];
    for (int g = 0; g < 3; ++g) {
      peep[g] = peephole_ == nullptr
                    ? broadcast(0.0F)
                    : load_first(peephole_ + (at.d * 3 + g) * p_.hidden + at.block * vec_width, lanes(at.block));
    }
    for (int i = 0; i < rows; ++i) {
      float* state_c = state(memory_.first, at, i);
      const VecF before = load(state_c);
      const VecF in = sigmoid_of(fma(peep[0], before, entering(at, i, 0) + sums[i][0]));
      const VecF forget = p_.input_forget != 0 ? broadcast(1.0F) - in
                                               : sigmoid_of(fma(peep[2], before, entering(at, i, 2) + sums[i][2]));
      const VecF c = fma(forget, before, in * tanh_of(entering(at, i, 3) + sums[i][3]));
      const VecF out = sigmoid_of(fma(peep[1], c, entering(at, i, 1) + sums[i][1]));
      store_h(at, i, out * tanh_of(c));
      if (!ended(at, i)) store(state_c, c);
    }
  }

  VecF lanes_of_state(const Place& at, const float* row) const {
    return load_first(row + at.block * vec_width, lanes(at.block));
  }
  static VecF mixed(VecF z, VecF fresh, VecF before) { return fma(z, before - fresh, fresh); }

  template <int rows>
  void gru_after(const Place& at) const {
    const float* row[rows];
    VecF sums[rows][3];
    states_before(at, row);
    recurrent_products<rows, 3>(row, panel(at), p_.hidden, sums);
    const VecF own_bias = load(biases(at) + 3 * vec_width);
    for (int i = 0; i < rows; ++i) {
      const VecF z = sigmoid_of(entering(at, i, 0) + sums[i][0]);
      const VecF r = sigmoid_of(entering(at, i, 1) + sums[i][1]);
      const VecF fresh = tanh_of(fma(r, sums[i][2] + own_bias, entering(at, i, 2)));
      store_h(at, i, mixed(z, fresh, lanes_of_state(at, row[i])));
    }
  }

  template <int rows>
  void gru_gates(const Place& at) const {
    const float* row[rows];
    VecF sums[rows][2];
    states_before(at, row);
    recurrent_products<rows, 2>(row, panel(at), p_.hidden, sums);
    for (int i = 0; i < rows; ++i) {
      store(state(memory_.first, at, i), sigmoid_of(entering(at, i, 0) + sums[i][0]));
      const VecF r = sigmoid_of(entering(at, i, 1) + sums[i][1]);
      store(state(memory_.second, at, i), r * lanes_of_state(at, row[i]));
    }
  }

  template <int rows>
  void gru_hidden(const Place& at) const {
    const float* row[rows];
    VecF sums[rows][1];
    for (int i = 0; i < rows; ++i) row[i] = shared_ + memory_.second + (at.d * p_.batch + at.b + i) * padded();
    recurrent_products<rows, 1>(row, panel(at) + p_.hidden * 2 * vec_width, p_.hidden, sums);
    for (int i = 0; i < rows; ++i) {
      const VecF fresh = tanh_of(entering(at, i, 2) + sums[i][0]);
      const VecF before = lanes_of_state(at, state_before(at.d, at.b + i, at.s));
      store_h(at, i, mixed(load(state(memory_.first, at, i)), fresh, before));
    }
  }

  const RecurrencePlan& p_;
  RecurrenceMemory memory_;
  const float* x_;
  const float* packed_;
  const float* bias_;
  const float* peephole_;
  const float* initial_h_;
  const float* initial_c_;
  const int32_t* lengths_;
  float* y_;
  float* h_;
  float* c_;
  float* shared_;
};

inline Fault run_recurrence(const RecurrencePlan& p, const Pointers& pointers, int phase, int64_t tile) {
  const RecurrenceRun run(p, pointers);
  if (phase == 0) return run.prepare();
  const int64_t at = phase - 1;
  if (phase == recurrence_phases(p) - 1) {
    run.hand_over();
  } else if (p.unit_tiles > 1) {
    run.step(at / p.parts, static_cast<int>(at % p.parts), tile);
  } else {
    const int64_t end = std::min((at + 1) * p.steps_per_phase, p.steps);
    for (int64_t s = at * p.steps_per_phase; s < end; ++s) {
      for (int part = 0; part < p.parts; ++part) run.step(s, part, tile);
    }
  }
  return nullptr;
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

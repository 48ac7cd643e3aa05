// Runs one tile of a reduction in any dtype: up to 64 results along the innermost kept axis, summed in FP64 or in
// 64-bit integers that wrap.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "backends/cpu/kernels/numbers.h"
#include "backends/cpu/kernels/reduce_run.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

inline constexpr int64_t number_block = 512;

template <ReduceKind kind, class Number>
POLYPHASE_INLINE Number number_start(const ReducePlan& p) {
  if constexpr (std::is_same_v<Number, double>)
    return reduce_start<kind>();
  else
    return static_cast<Number>(p.integer_start);
}

// Additions and products of integers wrap: those of uint64 do, with the same bits.
template <ReduceKind kind, class Number>
POLYPHASE_INLINE Number number_step(Number sum, Number x) {
  if constexpr (std::is_same_v<Number, double>) {
    return (kind == ReduceKind::max || kind == ReduceKind::min) && is_nan(sum) ? sum : reduce_step<kind>(sum, x);
  } else {
    const auto a = static_cast<uint64_t>(sum);
    const auto b = static_cast<uint64_t>(x);
    if constexpr (kind == ReduceKind::max) return x > sum ? x : sum;
    if constexpr (kind == ReduceKind::min) return x < sum ? x : sum;
    if constexpr (kind == ReduceKind::prod) return static_cast<Number>(a * b);
    if constexpr (kind == ReduceKind::sum_square) return static_cast<Number>(a + b * b);
    if constexpr (kind == ReduceKind::l1) return static_cast<Number>(a + (x < Number{0} ? 0 - b : b));
    return static_cast<Number>(a + b);
  }
}

template <ReduceKind kind, class Number>
POLYPHASE_INLINE Number number_join(Number a, Number b) {
  if constexpr (std::is_same_v<Number, double>)
    return reduce_join<kind>(a, b);
  else if constexpr (kind == ReduceKind::l1 || kind == ReduceKind::sum_square)
    return number_step<ReduceKind::sum>(a, b);
  else
    return number_step<kind>(a, b);
}

template <class Number>
POLYPHASE_INLINE Number number_finish(ReduceKind kind, Number sum, int64_t count) {
  if constexpr (std::is_same_v<Number, double>) {
    return reduce_finish(kind, sum, count);
  } else {
    if (kind != ReduceKind::mean) return sum;
    return count == 0 ? Number{0} : static_cast<Number>(static_cast<int64_t>(sum) / count);
  }
}

// f(block of at most 512 numbers, how many) for all elements that make one result.
template <class Number, class F>
POLYPHASE_INLINE void for_each_number_block(const ReducePlan& p, const std::byte* x, F&& f) {
  const int64_t n = p.reduced_sizes[p.reduced_rank - 1];
  const int64_t stride = p.from_reduced[p.reduced_rank - 1];
  const int64_t bytes = bytes_of(p.dtype);
  Number block[number_block];
  for_each_reduced_row(p, [&](int64_t offset) {
    for (int64_t i = 0; i < n; i += number_block) {
      const int64_t count = std::min(number_block, n - i);
      load_numbers(p.dtype, x + (offset + i * stride) * bytes, stride, count, block);
      f(block, count);
    }
  });
}

// What a kind does to a block of the numbers of one result, and to a row of those of as many results: all that differs
// between kinds, so that the loops around it exist once.
template <class Number>
struct NumberSteps {
  static constexpr int parts = 8;
  void (*add_block)(const Number* block, int64_t count, Number* sums);  // to `parts` chains
  void (*add_row)(const Number* row, int64_t count, Number* sums);
  Number (*join)(Number a, Number b);
  Number start;
};

template <class Number, class Step>
POLYPHASE_INLINE void add_number_block(const Number* block, int64_t count, Number* sums, Step step) {
  constexpr int parts = NumberSteps<Number>::parts;
  Number chains[parts];
  std::copy_n(sums, parts, chains);
  int64_t i = 0;
  for (; i + parts <= count; i += parts) {
    for (int k = 0; k < parts; ++k) chains[k] = step(chains[k], block[i + k]);
  }
  for (; i < count; ++i) chains[i % parts] = step(chains[i % parts], block[i]);
  std::copy_n(chains, parts, sums);
}

template <ReduceKind kind, class Number>
NumberSteps<Number> number_steps(const ReducePlan& p) {
  return {[](const Number* block, int64_t count, Number* sums) {
            add_number_block(block, count, sums, number_step<kind, Number>);
          },
          [](const Number* row, int64_t count, Number* sums) {
            for (int64_t i = 0; i < count; ++i) sums[i] = number_step<kind>(sums[i], row[i]);
          },
          [](Number a, Number b) { return number_join<kind>(a, b); }, number_start<kind, Number>(p)};
}

// Eight independent chains, joined in order.
template <class Number, class AddBlock, class Join>
POLYPHASE_INLINE Number number_reduce_one(const ReducePlan& p, const std::byte* x, Number start, AddBlock&& add_block,
                                          Join&& join) {
  constexpr int parts = NumberSteps<Number>::parts;
  Number sums[parts];
  std::fill(sums, sums + parts, start);
  for_each_number_block<Number>(p, x, [&](const Number* block, int64_t count) { add_block(block, count, sums); });
  Number sum = sums[0];
  for (int k = 1; k < parts; ++k) sum = join(sum, sums[k]);
  return sum;
}

inline double log_sum_exp_of(const ReducePlan& p, const std::byte* x) {
  const auto most = number_steps<ReduceKind::max, double>(p);
  const double largest = number_reduce_one<double>(p, x, most.start, most.add_block, most.join);
  if (std::isinf(largest)) return largest;
  const double total = number_reduce_one<double>(
      p, x, 0.0,
      [largest](const double* block, int64_t count, double* sums) {
        add_number_block(block, count, sums, [largest](double s, double v) { return s + std::exp(v - largest); });
      },
      [](double a, double b) { return a + b; });
  return largest + std::log(total);
}

// Of log_sum_exp there are no steps.
template <class Number>
inline void number_reduce_results(const ReducePlan& p, const NumberSteps<Number>* steps, const std::byte* x,
                                  std::byte* y, int64_t n, int64_t from_stride, int64_t to_stride) {
  const int64_t bytes = bytes_of(p.dtype);
  Number sums[reduce_block];
  if (steps == nullptr) {
    for (int64_t i = 0; i < n; ++i) sums[i] = static_cast<Number>(log_sum_exp_of(p, x + i * from_stride * bytes));
  } else if (p.from_reduced[p.reduced_rank - 1] != 1) {
    std::fill(sums, sums + n, steps->start);
    const int64_t rows = p.reduced_sizes[p.reduced_rank - 1];
    const int64_t stride = p.from_reduced[p.reduced_rank - 1];
    Number row[reduce_block];
    for_each_reduced_row(p, [&](int64_t offset) {
      for (int64_t r = 0; r < rows; ++r) {
        load_numbers(p.dtype, x + (offset + r * stride) * bytes, from_stride, n, row);
        steps->add_row(row, n, sums);
      }
    });
  } else {
    for (int64_t i = 0; i < n; ++i)
      sums[i] = number_reduce_one<Number>(p, x + i * from_stride * bytes, steps->start, steps->add_block, steps->join);
  }
  for (int64_t i = 0; i < n; ++i) sums[i] = number_finish(p.kind, sums[i], p.count);
  store_numbers(p.dtype, sums, n, y, to_stride);
}

// ---------------------------------------------------------------- arg_max, arg_min

// NaN beats everything; of equals the first wins, or the last. No branches: lanes of vectors are compared at once.
template <bool maximum, bool last, class Number>
POLYPHASE_INLINE bool beats(Number x, Number best) {
  const bool better = maximum ? x > best : x < best;
  bool wins = last ? better | (x == best) : better;
  if constexpr (std::is_same_v<Number, double>) {
    const bool was_nan = is_nan(best);
    wins = (wins & !was_nan) | (is_nan(x) & (last ? true : !was_nan));
  }
  return wins;
}

template <bool maximum, bool last, class Number>
inline void arg_results(const ReducePlan& p, const std::byte* x, std::byte* y, int64_t n, int64_t from_stride,
                        int64_t to_stride) {
  const int64_t bytes = bytes_of(p.dtype);
  int64_t places[reduce_block] = {};
  if (p.from_reduced[0] == 1 && p.reduced_sizes[0] > reduce_block) {  // shorter ones stay in the innermost cache
    for (int64_t i = 0; i < n; ++i) {
      int64_t at = 0;
      Number best{};
      for_each_number_block<Number>(p, x + i * from_stride * bytes, [&](const Number* block, int64_t count) {
        if (at == 0) best = block[0];
        for (int64_t k = 0; k < count; ++k) {
          if (!beats<maximum, last>(block[k], best)) continue;
          best = block[k];
          places[i] = at + k;
        }
        at += count;
      });
    }
  } else {
    Number best[reduce_block];
    Number row[reduce_block];
    load_numbers(p.dtype, x, from_stride, n, best);
    for (int64_t r = 1; r < p.reduced_sizes[0]; ++r) {
      load_numbers(p.dtype, x + r * p.from_reduced[0] * bytes, from_stride, n, row);
      for (int64_t i = 0; i < n; ++i) {
        const bool better = beats<maximum, last>(row[i], best[i]);
        best[i] = better ? row[i] : best[i];
        places[i] = better ? r : places[i];
      }
    }
  }
  store_numbers(DType::i64, places, n, y, to_stride);
}

// ---------------------------------------------------------------- tiles

template <class Number>
inline void number_reduce_tile(const ReducePlan& p, const std::byte* x, std::byte* y, int64_t n) {
  const int64_t from = p.from_kept[p.kept_rank - 1];
  const int64_t to = p.to_kept[p.kept_rank - 1];
  const auto run = [&](const NumberSteps<Number>& steps) { number_reduce_results(p, &steps, x, y, n, from, to); };
  switch (p.kind) {
    case ReduceKind::max:
      return run(number_steps<ReduceKind::max, Number>(p));
    case ReduceKind::min:
      return run(number_steps<ReduceKind::min, Number>(p));
    case ReduceKind::prod:
      return run(number_steps<ReduceKind::prod, Number>(p));
    case ReduceKind::l1:
      return run(number_steps<ReduceKind::l1, Number>(p));
    case ReduceKind::l2:
    case ReduceKind::sum_square:
      return run(number_steps<ReduceKind::sum_square, Number>(p));
    case ReduceKind::arg_max:
      return p.last != 0 ? arg_results<true, true, Number>(p, x, y, n, from, to)
                         : arg_results<true, false, Number>(p, x, y, n, from, to);
    case ReduceKind::arg_min:
      return p.last != 0 ? arg_results<false, true, Number>(p, x, y, n, from, to)
                         : arg_results<false, false, Number>(p, x, y, n, from, to);
    case ReduceKind::log_sum_exp:
      if constexpr (std::is_same_v<Number, double>) return number_reduce_results<double>(p, nullptr, x, y, n, from, to);
      [[fallthrough]];
    default:  // sum, mean and log_sum
      return run(number_steps<ReduceKind::sum, Number>(p));
  }
}

inline void run_number_reduce(const ReducePlan& p, const std::byte* x, std::byte* y, int64_t tile) {
  const ReduceTile at = reduce_tile(p, tile);
  const bool places = p.kind == ReduceKind::arg_max || p.kind == ReduceKind::arg_min;
  const DType result = places ? DType::i64 : p.dtype;
  with_number(p.dtype, [&]<class Number>(Number) {
    number_reduce_tile<Number>(p, x + at.from * bytes_of(p.dtype), y + at.to * bytes_of(result), at.count);
  });
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

// Runs one tile of a Fourier transform: up to fourier_lanes signals through all stages, in FP64.
//
// Stage with factor r, `done` points combined so far (l) and s = n / (l·r) sub-signals left:
//
//   Y[q + s·(p + l·k)] = Σ_{j<r} exp(∓2πi · j·(p + l·k) / (l·r)) · X[q + s·(j + r·p)],   p < l, k < r, q < s
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/fourier.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

struct FourierNumber {
  double real[fourier_lanes];
  double imaginary[fourier_lanes];
};

POLYPHASE_INLINE void add_turned(FourierNumber& sum, const FourierNumber& x, double c, double s) {
  for (int i = 0; i < fourier_lanes; ++i) {
    sum.real[i] += x.real[i] * c - x.imaginary[i] * s;
    sum.imaginary[i] += x.real[i] * s + x.imaginary[i] * c;
  }
}

POLYPHASE_INLINE FourierNumber turned(const FourierNumber& x, double c, double s) {
  FourierNumber out;
  for (int i = 0; i < fourier_lanes; ++i) {
    out.real[i] = x.real[i] * c - x.imaginary[i] * s;
    out.imaginary[i] = x.real[i] * s + x.imaginary[i] * c;
  }
  return out;
}

// Two numbers become their sum and difference.
POLYPHASE_INLINE void sum_and_difference(const FourierNumber& a, const FourierNumber& b, FourierNumber& sum,
                                         FourierNumber& difference) {
  for (int i = 0; i < fourier_lanes; ++i) {
    const double real = a.real[i];
    const double imaginary = a.imaginary[i];
    sum.real[i] = real + b.real[i];
    sum.imaginary[i] = imaginary + b.imaginary[i];
    difference.real[i] = real - b.real[i];
    difference.imaginary[i] = imaginary - b.imaginary[i];
  }
}

// by ±i
POLYPHASE_INLINE FourierNumber quarter_turned(const FourierNumber& x, double sign) {
  FourierNumber out;
  for (int i = 0; i < fourier_lanes; ++i) {
    out.real[i] = -sign * x.imaginary[i];
    out.imaginary[i] = sign * x.real[i];
  }
  return out;
}

struct FourierStage {
  const double* turns;  // cos, sin of 2π·i/n
  int64_t length;
  int64_t done;  // l
  int64_t left;  // s
  int64_t factor;
  double sign;

  double cosine(int64_t turn) const { return turns[2 * turn]; }
  double sine(int64_t turn) const { return sign * turns[2 * turn + 1]; }
};

inline void run_fourier_stage(const FourierStage& stage, const FourierNumber* from, FourierNumber* to) {
  const int64_t s = stage.left;
  const int64_t l = stage.done;
  const int64_t r = stage.factor;
  for (int64_t p = 0; p < l; ++p) {
    for (int64_t q = 0; q < s; ++q) {
      const FourierNumber* x = from + q + s * r * p;
      FourierNumber* y = to + q + s * p;
      // exp(∓2πi · j·p / (l·r)) is turn j·p·s of n.
      if (r == 2) {
        const FourierNumber b = turned(x[s], stage.cosine(p * s), stage.sine(p * s));
        sum_and_difference(x[0], b, y[0], y[s * l]);
      } else if (r == 4) {
        const FourierNumber b = turned(x[s], stage.cosine(p * s), stage.sine(p * s));
        const FourierNumber c = turned(x[2 * s], stage.cosine(2 * p * s), stage.sine(2 * p * s));
        const FourierNumber d = turned(x[3 * s], stage.cosine(3 * p * s), stage.sine(3 * p * s));
        FourierNumber even_sum;
        FourierNumber even_difference;
        FourierNumber odd_sum;
        FourierNumber odd_difference;
        sum_and_difference(x[0], c, even_sum, even_difference);
        sum_and_difference(b, d, odd_sum, odd_difference);
        odd_difference = quarter_turned(odd_difference, stage.sign);
        sum_and_difference(even_sum, odd_sum, y[0], y[2 * s * l]);
        sum_and_difference(even_difference, odd_difference, y[s * l], y[3 * s * l]);
      } else {
        for (int64_t k = 0; k < r; ++k) {
          FourierNumber sum = x[0];
          const int64_t step = (p + l * k) * s;  // below n: one turn of j = 1
          int64_t turn = 0;
          for (int64_t j = 1; j < r; ++j) {
            turn += step;
            if (turn >= stage.length) turn -= stage.length;
            add_turned(sum, x[j * s], stage.cosine(turn), stage.sine(turn));
          }
          y[s * l * k] = sum;
        }
      }
    }
  }
}

template <typename T>
void load_signals(const FourierPlan& p, const T* from, int64_t first, int count, FourierNumber* to) {
  for (int64_t j = 0; j < p.length; ++j) to[j] = FourierNumber{};
  for (int lane = 0; lane < count; ++lane) {
    const int64_t signal = first + lane;
    const T* start = from + signal / p.inner * p.from_steps[0] + signal % p.inner * p.from_steps[2];
    for (int64_t j = 0; j < p.given; ++j) {
      const T* x = start + j * p.from_steps[1];
      const double real = static_cast<double>(x[0]);
      double imaginary = p.is_complex != 0 ? static_cast<double>(x[1]) : 0.0;
      if (p.mirrored != 0) {
        const bool alone = j == 0 || 2 * j == p.length;
        if (alone) imaginary = 0;
        if (!alone) {
          to[p.length - j].real[lane] = real;
          to[p.length - j].imaginary[lane] = -imaginary;
        }
      }
      to[j].real[lane] = real;
      to[j].imaginary[lane] = imaginary;
    }
  }
}

template <typename T>
void store_signals(const FourierPlan& p, const FourierNumber* from, int64_t first, int count, T* to) {
  const double factor = p.inverse != 0 ? 1.0 / static_cast<double>(p.length) : 1.0;
  for (int lane = 0; lane < count; ++lane) {
    const int64_t signal = first + lane;
    T* start = to + signal / p.inner * p.to_steps[0] + signal % p.inner * p.to_steps[2];
    for (int64_t k = 0; k < p.bins; ++k) {
      T* y = start + k * p.to_steps[1];
      y[0] = static_cast<T>(from[k].real[lane] * factor);
      if (p.mirrored == 0) y[1] = static_cast<T>(from[k].imaginary[lane] * factor);
    }
  }
}

// `scratch` holds two signals of n numbers.
inline void run_fourier(const FourierPlan& p, const std::byte* from, std::byte* to, int64_t tile, std::byte* scratch) {
  auto* here = reinterpret_cast<FourierNumber*>(scratch);
  FourierNumber* there = here + p.length;
  const int64_t first = tile * fourier_lanes;
  const int count = static_cast<int>(std::min<int64_t>(fourier_lanes, p.outer * p.inner - first));
  if (p.dtype == DType::f64) {
    load_signals(p, reinterpret_cast<const double*>(from), first, count, here);
  } else {
    load_signals(p, reinterpret_cast<const float*>(from), first, count, here);
  }
  FourierStage stage{};
  stage.turns = reinterpret_cast<const double*>(reinterpret_cast<const std::byte*>(&p) + p.turns_at);
  stage.length = p.length;
  stage.done = 1;
  stage.sign = p.inverse != 0 ? 1.0 : -1.0;
  for (int i = 0; i < p.factor_count; ++i) {
    stage.factor = p.factors[i];
    stage.left = p.length / stage.done / stage.factor;
    run_fourier_stage(stage, here, there);
    stage.done *= stage.factor;
    std::swap(here, there);
  }
  if (p.dtype == DType::f64) {
    store_signals(p, here, first, count, reinterpret_cast<double*>(to));
  } else {
    store_signals(p, here, first, count, reinterpret_cast<float*>(to));
  }
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

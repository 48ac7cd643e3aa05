// Runs loops on every thread for a moment and adds up their rates.
#include "backends/cpu/peak/measured_peak.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double measured_seconds = 0.1;
constexpr double measured_moving_seconds = 0.01;
constexpr std::int64_t rounds_at_once = 100'000;

double median(std::vector<double>& rates) {
  std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2), rates.end());
  return rates[rates.size() / 2];
}

template <typename F>
double seconds_of(F&& run) {
  const auto start = Clock::now();
  run();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The median rate over short pieces, so that a moment in which the thread was not scheduled does not count.
double rate_of_one(const ClusterKernels& kernels) {
  std::vector<double> rates;
  volatile float kept = 0;  // the loop must be run for its result
  const auto begin = Clock::now();
  do {
    const double seconds = seconds_of([&] { kept = kept + kernels.fma_loop(rounds_at_once); });
    rates.push_back(static_cast<double>(rounds_at_once) * kernels.fma_flops_per_round / seconds);
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < measured_seconds);
  return median(rates);
}

// A piece is long enough for the clock, a few bytes too.
constexpr double piece_seconds = 50e-6;

// What `once` moves per second, `bytes` each time: the median over pieces.
template <typename F>
double rate_of_moving(std::size_t bytes, F&& once) {
  std::vector<double> rates;
  std::size_t times = 1;
  once();  // the pages are there from now on
  const auto begin = Clock::now();
  do {
    const double seconds = seconds_of([&] {
      for (std::size_t i = 0; i < times; ++i) once();
    });
    rates.push_back(static_cast<double>(bytes) * static_cast<double>(times) / seconds);
    if (seconds < piece_seconds) times *= 2;
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < measured_moving_seconds);
  return median(rates);
}

double moving_rate_of_one(std::size_t bytes) {
  const std::size_t half = std::max<std::size_t>(bytes / 2 / sizeof(std::uint64_t), 1);
  const std::unique_ptr<std::uint64_t[]> memory(new (std::nothrow) std::uint64_t[2 * half]());
  if (memory == nullptr) return 0;
  volatile std::uint64_t kept = 0;
  const auto read = [&] { kept = kept + std::accumulate(memory.get(), memory.get() + 2 * half, std::uint64_t{0}); };
  const auto copy = [&] {
    std::memcpy(memory.get() + half, memory.get(), half * sizeof(std::uint64_t));
    kept = kept + memory[half + static_cast<std::size_t>(kept % half)];
  };
  const std::size_t touched = 2 * half * sizeof(std::uint64_t);
  return std::max(rate_of_moving(touched, read), rate_of_moving(touched, copy));
}

// Of `threads` threads at once, together.
template <typename F>
double sum_of_rates(int threads, F&& rate) {
  std::vector<double> rates(static_cast<std::size_t>(std::max(threads, 1)));
  std::vector<std::thread> workers;
  for (std::size_t i = 1; i < rates.size(); ++i) workers.emplace_back([&, i] { rates[i] = rate(); });
  rates[0] = rate();
  for (std::thread& worker : workers) worker.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace

double measured_peak_flops(Cluster cluster, int threads) {
  const ClusterKernels& kernels = kernels_of(cluster);
  return sum_of_rates(threads, [&] { return rate_of_one(kernels); });
}

bool multiplies_pairs_faster(Cluster cluster) {
  const ClusterKernels& kernels = kernels_of(cluster);
  constexpr int64_t rows = 12;  // as many sums as the registers hold
  constexpr int64_t columns = 2 * pair_columns;
  constexpr int64_t depth = 128;
  constexpr int64_t panel = depth * pair_columns;
  constexpr int times = 16;  // at once, for the clock
  constexpr int64_t rounds = 2000;
  constexpr double flops = 2.0 * times * rows * columns * depth;
  alignas(64) const std::array<uint16_t, 2 * panel> zeros = {};  // the image too
  alignas(64) std::array<float, rows* columns> sums = {};
  const int64_t at = 0;
  const PairTile tile = {zeros.data(), &at,     &at, zeros.data(), sums.data(), depth,
                         panel,        columns, 1,   depth,        rows,        columns};
  volatile float kept = 0;
  double of_pairs = 1;
  double of_floats = 1;
  for (int i = 0; i < 6; ++i) {  // the least of each: what else runs here only adds
    of_floats = std::min(of_floats, seconds_of([&] { kept = kept + kernels.fma_loop(rounds); }));
    of_pairs = std::min(of_pairs, seconds_of([&] {
                          for (int k = 0; k < times; ++k) kernels.pair_unit->multiply(tile);
                          kept = kept + sums[0];
                        }));
  }
  return of_pairs / flops < of_floats / (static_cast<double>(rounds) * kernels.fma_flops_per_round);
}

double measured_bandwidth(int threads, std::uint64_t bytes) {
  const auto share = static_cast<std::size_t>(bytes / static_cast<std::uint64_t>(std::max(threads, 1)));
  return sum_of_rates(threads, [&] { return moving_rate_of_one(share); });
}

}  // namespace polyphase::cpu

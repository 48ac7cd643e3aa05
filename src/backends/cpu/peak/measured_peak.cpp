// Runs the loop on every thread for a moment and adds up their rates.
#include "backends/cpu/peak/measured_peak.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double measured_seconds = 0.1;
constexpr std::int64_t rounds_at_once = 100'000;

// The median rate over short pieces, so that a moment in which the thread was not scheduled does not count.
double rate_of_one(const ClusterKernels& kernels) {
  std::vector<double> rates;
  volatile float kept = 0;  // the loop must be run for its result
  const auto begin = Clock::now();
  do {
    const auto start = Clock::now();
    kept = kept + kernels.fma_loop(rounds_at_once);
    const std::chrono::duration<double> seconds = Clock::now() - start;
    rates.push_back(static_cast<double>(rounds_at_once) * kernels.fma_flops_per_round / seconds.count());
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < measured_seconds);
  std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2), rates.end());
  return rates[rates.size() / 2];
}

}  // namespace

double measured_peak_flops(Cluster cluster, int threads) {
  const ClusterKernels& kernels = kernels_of(cluster);
  std::vector<double> rates(static_cast<std::size_t>(std::max(threads, 1)));
  std::vector<std::thread> workers;
  for (std::size_t i = 1; i < rates.size(); ++i) workers.emplace_back([&, i] { rates[i] = rate_of_one(kernels); });
  rates[0] = rate_of_one(kernels);
  for (std::thread& worker : workers) worker.join();
  double total = 0;
  for (const double rate : rates) total += rate;
  return total;
}

}  // namespace polyphase::cpu

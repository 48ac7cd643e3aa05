// Median, percentiles, noise.
#include "cli/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace polyphase::cli {
namespace {

constexpr double max_drift = 0.10;
constexpr double max_variation = 0.25;
constexpr std::size_t batches = 10;

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double drift_of(const std::vector<double>& seconds, double median) {
  const std::size_t count = std::min(batches, seconds.size());
  double low = median;
  double high = median;
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = seconds.begin() + static_cast<std::ptrdiff_t>(i * seconds.size() / count);
    const auto last = seconds.begin() + static_cast<std::ptrdiff_t>((i + 1) * seconds.size() / count);
    const double batch = median_of({first, last});
    low = std::min(low, batch);
    high = std::max(high, batch);
  }
  return median > 0 ? (high - low) / median : 0;
}

}  // namespace

double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

Statistics statistics_of(const std::vector<double>& seconds) {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  Statistics out;
  out.runs = sorted.size();
  out.median = median_of(sorted);
  out.minimum = sorted.front();
  out.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  out.p90 = percentile(sorted, 0.90);
  out.p99 = percentile(sorted, 0.99);
  double squares = 0;
  for (const double value : sorted) squares += (value - out.mean) * (value - out.mean);
  out.variation = out.mean > 0 ? std::sqrt(squares / static_cast<double>(sorted.size())) / out.mean : 0;
  out.drift = drift_of(seconds, out.median);
  if (out.drift > max_drift) {
    out.reason =
        fmt::format("the medians of batches of runs differ by {:.0f} % (believable: up to 10 %)", out.drift * 100);
  } else if (out.variation > max_variation) {
    out.reason = fmt::format("the runs vary by {:.0f} % (believable: up to 25 %)", out.variation * 100);
  }
  out.believable = out.reason.empty();
  return out;
}

}  // namespace polyphase::cli

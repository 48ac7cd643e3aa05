// What a list of run times says, and whether to believe it.
#pragma once

#include <string>
#include <vector>

namespace polyphase::cli {

struct Statistics {
  std::size_t runs = 0;
  double median = 0;
  double minimum = 0;
  double mean = 0;
  double p90 = 0;
  double p99 = 0;
  // Standard deviation over mean.
  double variation = 0;
  // The runs in order, cut into up to 10 batches: (largest - smallest batch median) over the median.
  double drift = 0;
  bool believable = true;
  std::string reason;  // why not
};

// Seconds in, seconds out; at least one. Too noisy to believe: drift above 10 % or variation above 25 %.
Statistics statistics_of(const std::vector<double>& seconds);

// The value below which `share` of the sorted values lie, by the nearest rank.
double percentile(const std::vector<double>& sorted, double share);

}  // namespace polyphase::cli

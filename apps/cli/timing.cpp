// Runs with a clock around each step.
#include "cli/timing.h"

#include <algorithm>

#include "cli/clock.h"
#include "cli/data.h"
#include "cli/statistics.h"
#include "cli/terminal.h"
#include "io/try.h"

namespace polyphase::cli {
namespace {

constexpr std::size_t least_runs = 5;
constexpr std::size_t most_runs = 1000;
constexpr double least_seconds = 1;
// From what fits into a first-level cache to what fits into few last-level ones.
constexpr std::uint64_t touched_bytes[] = {32U << 10, 128U << 10, 512U << 10, 2U << 20,
                                           8U << 20,  32U << 20,  128U << 20};

struct Samples {
  std::vector<std::vector<double>> by_step;
  std::vector<double> whole;
  std::vector<std::uint64_t> runs;  // of the last run
};

Result<void> run_once(const api::Session& session, const std::vector<api::TensorView>& views, api::Report* report,
                      Samples& samples) {
  std::vector<double> seconds(samples.by_step.size(), 0.0);
  samples.runs.assign(samples.by_step.size(), 0);
  api::RunOptions options;
  options.step_seconds = &seconds;
  options.step_runs = &samples.runs;
  options.report = report;
  const auto start = Clock::now();
  IO_TRY_VOID(session.run(views, options));
  samples.whole.push_back(seconds_since(start));
  for (std::size_t i = 0; i < seconds.size(); ++i) samples.by_step[i].push_back(seconds[i]);
  return {};
}

}  // namespace

Result<StepTimes> time_steps(const api::Session& session, const std::vector<api::Tensor>& inputs, double budget_seconds,
                             api::Report& report) {
  const std::vector<api::StepInfo> steps = session.engine().info().steps;
  const std::vector<api::TensorView> views = views_of(inputs);
  Samples samples;
  samples.by_step.resize(steps.size());
  const auto start = Clock::now();
  IO_TRY_VOID(run_once(session, views, &report, samples));
  // The first run plans and touches memory for the first time: it counts only where there is no time for others.
  if (2 * samples.whole.front() < budget_seconds) {
    samples.whole.clear();
    for (auto& times : samples.by_step) times.clear();
  }
  Progress progress;
  const auto measured_from = Clock::now();
  while (samples.whole.empty() || seconds_since(start) < budget_seconds) {
    const double elapsed = seconds_since(measured_from);
    const std::size_t count = samples.whole.size();
    if (count >= most_runs || (count >= least_runs && elapsed >= least_seconds)) break;
    IO_TRY_VOID(run_once(session, views, nullptr, samples));
    progress.show("timing steps", std::min(elapsed, static_cast<double>(count) / static_cast<double>(least_runs)));
  }
  StepTimes out;
  for (const auto& times : samples.by_step) out.seconds.push_back(statistics_of(times).median);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].block == 0) out.steps_seconds += out.seconds[i];
  }
  out.runs = std::move(samples.runs);
  const Statistics whole = statistics_of(samples.whole);
  out.run_seconds = whole.median;
  out.fastest_seconds = whole.minimum;
  if (!whole.believable) out.noise = whole.reason;
  out.run_count = samples.whole.size();
  return out;
}

Roof measure_roof(int threads) {
  Roof out;
  out.peak_flops = api::measured_peak_flops(threads);
  for (const std::uint64_t bytes : touched_bytes) {
    const double rate = api::measured_bandwidth(threads, bytes);
    if (rate > 0) out.bandwidths.emplace_back(bytes, rate);
  }
  return out;
}

}  // namespace polyphase::cli

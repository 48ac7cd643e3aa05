// The measuring loop.
#include "cli/measure.h"

#include <atomic>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cli/clock.h"
#include "cli/data.h"
#include "io/try.h"

namespace polyphase::cli {
namespace {

// Runs one session into memory of its own, so that a run measures the network and not the allocator.
class Runner {
 public:
  static Result<Runner> create(const api::Session& session, const std::vector<api::Tensor>& inputs) {
    Runner out(session, views_of(inputs));
    IO_TRY(const auto sizes, session.output_sizes(sizes_of(inputs)));
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!sizes[i].has_value()) return Runner(session, views_of(inputs));  // born from data: run() allocates
      IO_TRY(api::Tensor tensor, api::Tensor::allocate(session.engine().outputs()[i].dtype, *sizes[i]));
      out.outputs_.push_back(std::move(tensor));
    }
    return out;
  }

  Result<double> run() {
    const auto start = Clock::now();
    if (outputs_.empty()) {
      IO_TRY_VOID(session_.run(inputs_));
    } else {
      IO_TRY_VOID(session_.run_into(inputs_, views_of(outputs_)));
    }
    return seconds_since(start);
  }

 private:
  Runner(const api::Session& session, std::vector<api::TensorView> inputs)
      : session_(session), inputs_(std::move(inputs)) {}

  api::Session session_;
  std::vector<api::TensorView> inputs_;
  std::vector<api::Tensor> outputs_;
};

// What the threads share.
struct Meeting {
  std::mutex mutex;
  std::optional<Error> error;
  std::atomic<bool> failed{false};

  void fail(Error first) {
    const std::lock_guard lock(mutex);
    if (!error.has_value()) error = std::move(first);
    failed = true;
  }
};

void warm_up(Runner& runner, const MeasureOptions& options, Meeting& meeting) {
  const auto start = Clock::now();
  do {
    auto seconds = runner.run();
    if (!seconds.ok()) return meeting.fail(std::move(seconds).error());
  } while (seconds_since(start) < options.warm_up_seconds && !meeting.failed);
}

void repeat(Runner& runner, const MeasureOptions& options, bool reports, Meeting& meeting, std::vector<double>& times) {
  const auto start = Clock::now();
  for (;;) {
    const double elapsed = seconds_since(start);
    const double by_time = options.least_seconds > 0 ? elapsed / options.least_seconds : 1;
    const double by_runs =
        static_cast<double>(times.size()) / static_cast<double>(std::max<std::size_t>(options.least_runs, 1));
    if (std::min(by_time, by_runs) >= 1 || meeting.failed) return;
    if (reports && options.progress) options.progress(std::min(by_time, by_runs));
    auto seconds = runner.run();
    if (!seconds.ok()) return meeting.fail(std::move(seconds).error());
    times.push_back(*seconds);
  }
}

}  // namespace

std::size_t Measured::runs() const {
  std::size_t count = 0;
  for (const auto& times : seconds) count += times.size();
  return count;
}

Result<Measured> measure(const std::vector<api::Session>& sessions, const std::vector<api::Tensor>& inputs,
                         const MeasureOptions& options) {
  std::vector<Runner> runners;
  for (const api::Session& session : sessions) {
    IO_TRY(Runner runner, Runner::create(session, inputs));
    runners.push_back(std::move(runner));
  }
  Measured out;
  out.seconds.resize(runners.size());
  Meeting meeting;
  const auto on_all = [&](const auto& work) {
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < runners.size(); ++i) threads.emplace_back([&, i] { work(i); });
    work(0);
    for (std::thread& thread : threads) thread.join();
  };
  on_all([&](std::size_t i) { warm_up(runners[i], options, meeting); });
  const auto start = Clock::now();
  on_all([&](std::size_t i) { repeat(runners[i], options, i == 0, meeting, out.seconds[i]); });
  out.wall_seconds = seconds_since(start);
  if (meeting.error.has_value()) return *meeting.error;
  return out;
}

std::uint64_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  }
  return 0;
}

}  // namespace polyphase::cli

// Options to a tuner, and its report.
#include "api/tuning.h"

#include <filesystem>

#include "api/machine.h"
#include "backends/cpu/catalogue.h"

namespace polyphase::api {
namespace {

constexpr int max_tune_threads = 4096;  // as the command line allows a session

Result<void> check_target(const Target& target) {
  if (target.portable) {
    return Error{ErrorCode::invalid_argument, "tune is given with the target portable, whose kernels every CPU shares.",
                 "Leave tune out, or compile for native."};
  }
  if (!cpu::runs_here(target.cluster)) {
    return Error{ErrorCode::invalid_argument,
                 "tune is given with the target " + std::string(name_of(target.cluster)) +
                     ", which this CPU cannot run and so not measure.",
                 "Tune on a CPU of the target, or leave tune out."};
  }
  return {};
}

// The user's own file, in a folder that is made for it; empty where there is none.
std::string own_cache() {
  std::string path = default_timing_cache();
  if (path.empty()) return path;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code failed;
  if (std::filesystem::create_directories(folder, failed))
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, failed);
  return path;
}

Result<void> check_folder(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder, failed)) return {};
  return Error{ErrorCode::io, "the folder of the timing cache '" + path + "' does not exist.",
               "Make the folder, or choose another file."};
}

}  // namespace

Result<std::shared_ptr<Tuner>> tuner_of(const CompileOptions& options, const Target& target) {
  if (!options.tune) return std::shared_ptr<Tuner>();
  TRY_VOID(check_target(target));
  if (options.tune_threads < 0 || options.tune_threads > max_tune_threads) {
    return Error{ErrorCode::invalid_argument,
                 "tune_threads is " + std::to_string(options.tune_threads) + "; expected 0 to " +
                     std::to_string(max_tune_threads) + ".",
                 "Give the number of threads of the sessions to come, or 0 for one per core."};
  }
  if (!options.timing_cache.empty()) TRY_VOID(check_folder(options.timing_cache));
  TRY(TimingCache cache, TimingCache::open(options.timing_cache.empty() ? own_cache() : options.timing_cache));
  TuneOptions tuning;
  tuning.processor = cpu::processor_name();
  tuning.threads = options.tune_threads == 0 ? usable_cores() : options.tune_threads;
  tuning.limits.memory_bytes = memory_bytes() / 2;
  tuning.limits.cancelled = options.cancelled;
  if (options.progress) {
    tuning.tell = [&options](std::string_view node, std::size_t count) {
      // How many steps will be asked about is not known before: the bar stands where the passes end.
      options.progress("measure " + std::to_string(count) + ": " + std::string(node), 0.7);
    };
  }
  return std::make_shared<Tuner>(std::move(cache), std::move(tuning));
}

void finish_tuning(Tuner& tuner, const CompileOptions& options) {
  const auto saved = tuner.finish();
  if (options.tuned == nullptr) return;
  TuneReport& report = *options.tuned;
  report = {};
  report.measured_steps = tuner.measured_steps();
  report.cached_steps = tuner.cached_steps();
  report.timing_cache = tuner.cache().path();
  report.skipped = tuner.skipped();
  if (const std::size_t damaged = tuner.cache().damaged_lines(); damaged > 0) {
    report.warnings.push_back(
        "the timing cache '" + report.timing_cache + "' has " + std::to_string(damaged) +
        (damaged == 1 ? " damaged line, which is left out." : " damaged lines, which are left out."));
  }
  if (!saved.ok()) report.warnings.push_back("the measured times are not kept: " + saved.error().message);
  if (report.timing_cache.empty())
    report.warnings.emplace_back("the measured times are not kept: no folder for them is known, as HOME is not set.");
}

}  // namespace polyphase::api

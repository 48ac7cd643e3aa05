// polyphase bench: how fast, how much memory, and whether to believe it.
#include <fmt/format.h>
#include <CLI/App.hpp>

#include <chrono>

#include "cli/commands.h"
#include "cli/data.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/measure.h"
#include "cli/network.h"
#include "cli/statistics.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/try.h"
#include "polyphase/diagnose.h"

namespace polyphase::cli {
namespace {

constexpr const char* bench_examples = R"(
Examples:
  polyphase bench model.ppe --threads 1
  polyphase bench unet.ppe --shape x=1x3x512x512 --json
  polyphase bench model.onnx --sessions 4 --threads 1 --least-seconds 10

Inputs are random (seed 1) unless --inputs or --input give them. Sizes that nobody gives become 1 on the first axis and 256
elsewhere (64 in volumes). Times are of whole runs, from inputs in the caller's memory to outputs there. throughput is runs per
second of all sessions together. load_ms is the time to load the engine and open the session; a model is compiled before, in
compile_ms. peak_memory_bytes is the most the process held, compiling included where a model was compiled.)";

struct BenchFlags {
  NetworkFlags network;
  InputFlags inputs;
  MeasureOptions measure;
  int threads = 0;
  int sessions = 1;
};

struct Bench {
  Statistics statistics;
  double throughput = 0;
  double load_seconds = 0;
  double compile_seconds = 0;
  std::uint64_t peak_bytes = 0;
  int threads = 0;
  std::vector<std::vector<std::int64_t>> sizes;
  std::vector<std::string> chosen;
};

Result<std::vector<api::Tensor>> bench_inputs(const BenchFlags& flags, const Network& network,
                                              const api::Session& session, Bench& bench) {
  if (!flags.inputs.archive.empty() || !flags.inputs.files.empty()) {
    IO_TRY_VOID(refuse_sizes_of_engine(network, flags.network));
    IO_TRY(const Inputs inputs, read_inputs(network.engine, flags.inputs));
    return inputs.tensors;
  }
  IO_TRY(const RunSizes sizes, run_sizes(session, network.sizes));
  bench.chosen = sizes.chosen;
  return api::random_inputs(network.engine.inputs(), sizes.inputs);
}

Result<Bench> bench_network(const BenchFlags& flags) {
  Bench out;
  IO_TRY(const Network network, open_network(flags.network, flags.threads));
  const auto start = std::chrono::steady_clock::now();
  std::vector<api::Session> sessions;
  IO_TRY(api::Session first, open_session(network.engine, flags.threads));
  const double session_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  out.threads = first.threads();
  sessions.push_back(std::move(first));
  for (int i = 1; i < flags.sessions; ++i) {
    IO_TRY(api::Session session, open_session(network.engine, flags.threads));
    sessions.push_back(std::move(session));
  }
  out.load_seconds = session_seconds + (network.was_engine ? network.open_seconds : 0);
  out.compile_seconds = network.was_engine ? 0 : network.open_seconds;
  IO_TRY(const std::vector<api::Tensor> inputs, bench_inputs(flags, network, sessions.front(), out));
  out.sizes = sizes_of(inputs);
  if (!out.chosen.empty()) say("sizes nobody gave: " + join(out.chosen, " ") + " (choose with --shape or --dim)");

  MeasureOptions options = flags.measure;
  Progress progress;
  options.progress = [&](double done) { progress.show("running", done); };
  IO_TRY(const Measured measured, measure(sessions, inputs, options));
  std::vector<double> all;
  for (const auto& times : measured.seconds) all.insert(all.end(), times.begin(), times.end());
  out.statistics = statistics_of(all);
  out.throughput = static_cast<double>(measured.runs()) / measured.wall_seconds;
  out.peak_bytes = peak_memory_bytes();
  return out;
}

void report_json(const BenchFlags& flags, const Bench& bench) {
  const Statistics& s = bench.statistics;
  Json out = json_result("bench");
  out["model"] = flags.network.path;
  out["median_ms"] = s.median * 1e3;
  out["min_ms"] = s.minimum * 1e3;
  out["mean_ms"] = s.mean * 1e3;
  out["p90_ms"] = s.p90 * 1e3;
  out["p99_ms"] = s.p99 * 1e3;
  out["runs"] = s.runs;
  out["throughput"] = bench.throughput;
  out["peak_memory_bytes"] = bench.peak_bytes;
  out["load_ms"] = bench.load_seconds * 1e3;
  out["compile_ms"] = bench.compile_seconds * 1e3;
  out["threads"] = bench.threads;
  out["sessions"] = flags.sessions;
  out["input_sizes"] = bench.sizes;
  out["believable"] = s.believable;
  out["noise"] = {{"variation", s.variation}, {"drift", s.drift}, {"reason", s.reason}};
  put_json(out);
}

void report_text(const BenchFlags& flags, const Bench& bench) {
  const Statistics& s = bench.statistics;
  std::string threads = fmt::format("{} thread{}", bench.threads, bench.threads == 1 ? "" : "s");
  if (flags.sessions > 1) threads += fmt::format(" in each of {} sessions", flags.sessions);
  put(
      fmt::format("median      {}\nmin         {}\np90         {}\np99         {}\nruns        {} on {}\nthroughput  "
                  "{:.4g} runs/s\n",
                  human_time(s.median), human_time(s.minimum), human_time(s.p90), human_time(s.p99), s.runs, threads,
                  bench.throughput));
  put(fmt::format("load        {}\n", human_time(bench.load_seconds)));
  if (bench.compile_seconds > 0) put(fmt::format("compile     {}\n", human_time(bench.compile_seconds)));
  put(fmt::format("memory      {} at most\nnoise       {}\n", human_bytes(bench.peak_bytes),
                  s.believable
                      ? fmt::format("low: runs vary by {:.1f} %, batches by {:.1f} %", s.variation * 100, s.drift * 100)
                      : "too high to believe"));
}

int bench(const BenchFlags& flags) {
  const auto result = bench_network(flags);
  if (!result.ok()) {
    report_error(result.error());
    return exit_user;
  }
  if (flags.network.json) {
    report_json(flags, *result);
  } else {
    report_text(flags, *result);
  }
  if (!result->statistics.believable)
    warn("the machine was too noisy to believe these figures: " + result->statistics.reason + ".");
  return exit_ok;
}

}  // namespace

void add_bench(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("bench", "Measure an engine or a model");
  const auto flags = std::make_shared<BenchFlags>();
  add_network_flags(*command, flags->network);
  add_input_flags(*command, flags->inputs);
  add_threads_flag(*command, flags->threads);
  command
      ->add_option("--sessions", flags->sessions,
                   "Sessions that run side by side, each with its own threads (default 1)")
      ->check(CLI::Range(1, 256));
  command->add_option("--warm-up", flags->measure.warm_up_seconds, "Seconds before measuring (default 0.5)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--least-seconds", flags->measure.least_seconds, "Measure at least so long (default 2)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--least-runs", flags->measure.least_runs, "Measure at least so many runs (default 10)")
      ->check(CLI::Range(1, 1'000'000'000));
  command->footer(bench_examples);
  command->callback([flags, &run] { run = [flags] { return bench(*flags); }; });
}

}  // namespace polyphase::cli

// Times single layers on one kernel cluster: each result is checked against the double reference before it is timed.
//
//   kernels_bench suite.cases [--threads N] [--cluster avx512] [--filter TEXT] [--layout planar|last] [--seconds S]
//                [--kernel NAME] [--images f16|bf16] [--no-check] [--processor-time]
// Without --kernel all kernels that can are timed, or with --no-check the one of the least estimate.
// Prints one line per layer and kernel: name kernel median_ms min_ms GFLOP/s percent-of-measured-peak
// relative-RMS-error estimated_ms (of one core, by which kernels are chosen).
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "backends/cpu/conv_run.h"
#include "runtime/thread_pool.h"

namespace polyphase::cpu::testing {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds that this process computed: for one thread on a machine that others use too.
double processor_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Runs kernels as sessions do.
class Team {
 public:
  explicit Team(int size) : pool_(size), desk_(pool_.take_desk()) {}
  ~Team() { pool_.return_desk(desk_); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  void run(BoundKernel& kernel) {
    for (int phase = 0; phase < kernel.phases(); ++phase) {
      Phase state = {kernel, phase, workers_};
      pool_.run(desk_, {run_tile, &state, kernel.tiles(phase), 0}, nullptr);
    }
  }

 private:
  struct Phase {
    BoundKernel& kernel;
    int number;
    std::atomic<int>& workers;  // that have computed tiles so far: a kernel has scratch for each
  };
  static bool run_tile(void* state, int64_t tile, std::byte* /*scratch*/) {
    const Phase& phase = *static_cast<Phase*>(state);
    thread_local const int worker = phase.workers.fetch_add(1);
    phase.kernel.run(phase.number, tile, worker);
    return true;
  }

  ThreadPool pool_;
  ThreadPool::Desk* desk_;
  std::atomic<int> workers_{0};
};

struct Options {
  std::string file;
  std::string filter;
  std::string cluster = runnable_clusters().back();
  std::string kernel;
  DType images = DType::f32;
  int threads = 1;
  double seconds = 0.5;
  bool planar = true;
  bool check = true;
  bool processor_time = false;
};

double relative_rms_error(const std::vector<float>& got, const std::vector<double>& want) {
  double error = 0;
  double size = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    error += (static_cast<double>(got[i]) - want[i]) * (static_cast<double>(got[i]) - want[i]);
    size += want[i] * want[i];
  }
  return size == 0 ? std::sqrt(error) : std::sqrt(error / size);
}

void bench(const ConvCase& c, const Options& options, Team& team, double peak) {
  const ConvShape& s = c.shape;
  const int64_t points = s.transposed ? s.in_points() : s.out_points();
  const double flops = 2.0 * static_cast<double>(s.batch * s.groups * s.in_channels * s.out_channels) *
                       static_cast<double>(s.kernel_points() * points);
  const ConvData data = make_data(c, 1, false);
  const std::vector<double> want = options.check ? reference(c, data) : std::vector<double>{};
  const Layouts layouts = {.in_planar = options.planar,
                           .out_planar = options.planar,
                           .types = {options.images, options.images},
                           .extra = 0,
                           .narrow_past = 0,
                           .scratch = subnormal_word};  // as a network's steps may leave it
  const bool in_pairs = options.images == DType::bf16 || options.kernel.ends_with("pairs");
  const double most_error = is_narrow(options.images) || in_pairs ? 1e-2 : 2e-6;
  std::vector<std::string> names = kernels_for(c, layouts);
  if (in_pairs) {
    const std::vector<std::string> pairs = pair_kernels_for(c, options.cluster);
    names.insert(names.end(), pairs.begin(), pairs.end());
  }
  if (options.kernel == "winograd_fours" && runs_in_fours(c)) names.push_back(options.kernel);
  if (!options.kernel.empty()) std::erase_if(names, [&](const std::string& name) { return name != options.kernel; });
  const auto bind = [&](const std::string& name) {
    return bind_kernel(name, c, data, layouts, options.cluster, options.threads);
  };
  if (options.kernel.empty() && !options.check && !names.empty()) {
    std::vector<double> estimates;
    for (const std::string& name : names) estimates.push_back(bind(name)->estimated_seconds());
    names = {names[static_cast<size_t>(std::min_element(estimates.begin(), estimates.end()) - estimates.begin())]};
  }
  for (const std::string& name : names) {
    const auto kernel = bind(name);
    team.run(*kernel);
    const double error = options.check ? relative_rms_error(kernel->result(), want) : 0;
    if (!(error < most_error)) {
      std::printf("%s %s WRONG: relative RMS error %.3g\n", c.name.c_str(), name.c_str(), error);
      std::exit(1);
    }
    std::vector<double> times;
    const auto start = Clock::now();
    while (times.size() < 5 || (seconds_since(start) < options.seconds && times.size() < 2000)) {
      const auto t = Clock::now();
      const double before = processor_seconds();
      team.run(*kernel);
      times.push_back(options.processor_time ? processor_seconds() - before : seconds_since(t));
    }
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2];
    std::printf("%-30s %-12s %9.4f %9.4f %8.1f %5.1f %-8.2g %9.4f\n", c.name.c_str(), name.c_str(), median * 1e3,
                times.front() * 1e3, flops / median / 1e9, 100 * flops / median / 1e9 / peak, error,
                kernel->estimated_seconds() * 1e3);
    std::fflush(stdout);
  }
}

// A product that lives in the innermost caches: what the cluster reaches at best.
double measured_peak(const Options& options, Team& team) {
  const auto c = parse_conv_case("peak conv n1 g1 c256:64 in1x2304 k1x1 s1x1");
  const ConvData data = make_data(*c, 1, false);
  const auto kernel = bind_kernel("gemm", *c, data,
                                  {.in_planar = false, .out_planar = false, .types = {}, .extra = 0, .narrow_past = 0},
                                  options.cluster, options.threads);
  double best = 1e9;
  for (int i = 0; i < 200; ++i) {
    const auto t = Clock::now();
    team.run(*kernel);
    best = std::min(best, seconds_since(t));
  }
  return 2.0 * 256 * 64 * 2304 / best / 1e9;
}

int run(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool last = i + 1 >= argc;
    if (word == "--processor-time")
      options.processor_time = true;
    else if (word == "--no-check")
      options.check = false;
    else if (word.rfind("--", 0) != 0)
      options.file = word;
    else if (last)
      return std::fprintf(stderr, "%s needs a value\n", word.c_str()), 2;
    else if (word == "--threads")
      options.threads = std::atoi(argv[++i]);
    else if (word == "--cluster")
      options.cluster = argv[++i];
    else if (word == "--filter")
      options.filter = argv[++i];
    else if (word == "--kernel")
      options.kernel = argv[++i];
    else if (word == "--images" && is_narrow(dtype_from_name(argv[i + 1]).value_or(DType::f32)))
      options.images = *dtype_from_name(argv[++i]);
    else if (word == "--images")
      return std::fprintf(stderr, "--images takes f16 or bf16, not '%s'\n", argv[i + 1]), 2;
    else if (word == "--seconds")
      options.seconds = std::atof(argv[++i]);
    else if (word == "--layout")
      options.planar = std::strcmp(argv[++i], "last") != 0;
    else
      return std::fprintf(stderr, "unknown option %s\n", word.c_str()), 2;
  }
  std::ifstream in(options.file);
  if (!in) return std::fprintf(stderr, "cannot read the cases file '%s'\n", options.file.c_str()), 2;
  Team team(options.threads);
  const double peak = measured_peak(options, team);
  std::printf("# cluster %s, threads %d, measured peak %.1f GFLOP/s\n", options.cluster.c_str(), options.threads, peak);
  for (std::string line; std::getline(in, line);) {
    const auto c = parse_conv_case(line);
    if (c && c->name.find(options.filter) != std::string::npos) bench(*c, options, team, peak);
  }
  return 0;
}

}  // namespace
}  // namespace polyphase::cpu::testing

int main(int argc, char** argv) { return polyphase::cpu::testing::run(argc, argv); }

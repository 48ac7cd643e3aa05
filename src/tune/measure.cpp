// A step alone: operands, packs, scratch, and runs by turns.
#include "tune/measure.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <memory>
#include <random>

#include "runtime/level_plan.h"

namespace polyphase {
namespace {

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double thread_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

TensorDesc desc_of(const OperandDesc& operand) {
  return operand.present ? TensorDesc(operand.type.dtype, *operand.type.shape.evaluate({}), operand.layout)
                         : TensorDesc();
}

// Of an operand that may be larger than any memory; then more than any limit.
std::uint64_t bytes_of(const OperandDesc& operand) {
  if (!operand.present) return 0;
  constexpr std::int64_t beyond = std::int64_t{1} << 60;
  auto bytes = static_cast<std::int64_t>(size_bytes(operand.type.dtype));
  for (const Dim& size : operand.type.shape) {
    if (__builtin_mul_overflow(bytes, size.value(), &bytes) || bytes > beyond) return beyond;
  }
  return static_cast<std::uint64_t>(bytes);
}

// A few thousand numbers, over and over: cheap, and no pattern that a branch could learn.
void fill_normal(const TensorView& to) {
  std::mt19937 random(20240229);
  std::normal_distribution<double> normal;
  constexpr std::int64_t period = 4093;
  const std::size_t size = size_bytes(to.dtype);
  const std::int64_t count = to.extent();
  for (std::int64_t i = 0; i < std::min(count, period); ++i)
    store_double(to.data + i * static_cast<std::int64_t>(size), to.dtype, normal(random));
  for (std::int64_t i = period; i < count; i += period) {
    const auto length = static_cast<std::size_t>(std::min(period, count - i)) * size;
    std::copy_n(to.data, length, to.data + i * static_cast<std::int64_t>(size));
  }
}

// One row ready to run: its plan, its pack, its scratch.
struct Ready {
  const Row* row = nullptr;
  Plan plan;
  bool shared_out = false;  // among the pool's workers
  std::vector<std::int64_t> tiles;
  std::vector<const std::byte*> inputs;
  std::shared_ptr<Buffer> packed;
  std::shared_ptr<Buffer> shared;
  std::shared_ptr<Buffer> scratch;
  std::size_t scratch_bytes = 0;
  int repeats = 1;  // that one measurement lasts for
  double best = std::numeric_limits<double>::infinity();
  double spent = 0;
  int rounds = 0;
  bool out = false;
};

struct Running {
  const Ready* ready;
  Pointers pointers;
  int phase = 0;
  std::atomic<Fault> fault{nullptr};
};

bool run_tile(void* state, std::int64_t tile, std::byte* scratch) {
  auto& running = *static_cast<Running*>(state);
  const Fault fault = running.ready->row->run(running.ready->plan, running.pointers, running.phase, tile, scratch);
  if (fault == nullptr) return true;
  running.fault.store(fault);
  return false;
}

class Measuring {
 public:
  Measuring(const StepDesc& desc, const Target& target, ThreadPool& pool, const MeasureLimits& limits)
      : desc_(desc), target_(target), pool_(pool), desk_(pool.take_desk()), limits_(limits) {}
  ~Measuring() { pool_.return_desk(desk_); }
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;

  Measured run(const std::vector<const Row*>& rows) {
    Measured out;
    const bool done = make_operands() &&
                      std::all_of(rows.begin(), rows.end(), [&](const Row* row) { return make_ready(*row); }) &&
                      take_turns();
    out.problem = std::move(problem_);
    if (!done) return out;
    for (const auto& ready : ready_) out.seconds.push_back(ready->best);
    return out;
  }

 private:
  // All of these: false where it cannot go on, with the reason in problem_ unless it was cancelled.

  bool fits(std::uint64_t bytes) {
    if (bytes <= limits_.memory_bytes) return true;
    problem_ = "measuring it needs " + std::to_string(bytes) + " bytes, and " + std::to_string(limits_.memory_bytes) +
               " are allowed.";
    return false;
  }

  bool take(std::uint64_t bytes, std::shared_ptr<Buffer>& out) {
    used_ += bytes;
    if (!fits(used_)) return false;
    auto buffer = Buffer::allocate(bytes);
    if (buffer.ok()) {
      out = std::move(*buffer);
    } else {
      problem_ = buffer.error().message;
    }
    return buffer.ok();
  }

  bool make_operand(const OperandDesc& operand) {
    std::shared_ptr<Buffer> buffer;
    if (!take(bytes_of(operand), buffer)) return false;
    const TensorDesc desc = desc_of(operand);
    const TensorView view(desc, operand.present ? buffer->data() : nullptr);
    if (operand.present && !desc.empty()) {
      if (operand.value != nullptr && std::ranges::equal(operand.value->size_span(), desc.size_span())) {
        copy_elements(*operand.value, view);
      } else if (is_float(desc.dtype)) {
        fill_normal(view);
      }
    }
    memory_.push_back(std::move(buffer));
    views_.push_back(view);
    return true;
  }

  bool make_operands() {
    for (const OperandDesc& input : desc_.inputs) {
      if (!make_operand(input)) return false;
    }
    for (const OperandDesc& output : desc_.outputs) {
      std::shared_ptr<Buffer> buffer;
      if (!take(bytes_of(output), buffer)) return false;
      results_.push_back(desc_of(output));
      result_data_.push_back(buffer->data());
      memory_.push_back(std::move(buffer));
    }
    return true;
  }

  bool make_pack(const Row& row, Ready& out) {
    if (row.packing.format.empty()) return true;
    const std::vector<int> operands = row.packing.inputs(desc_);
    if (!take(row.packing.size_bytes(desc_, target_), out.packed)) return false;
    std::vector<TensorView> views;
    for (const int operand : operands) views.push_back(views_[static_cast<std::size_t>(operand)]);
    row.packing.pack(desc_, target_, views, {}, out.packed->data());
    for (const int operand : operands) out.inputs[static_cast<std::size_t>(operand)] = nullptr;
    return true;
  }

  bool make_ready(const Row& row) {
    auto out = std::make_unique<Ready>();
    out->row = &row;
    for (const TensorView& view : views_) out->inputs.push_back(view.data);
    if (!make_pack(row, *out)) return false;
    const std::vector<TensorDesc> inputs(views_.begin(), views_.end());
    out->plan = row.plan({desc_, inputs, results_}, target_);
    const int phases = row.phases == nullptr ? 1 : row.phases(out->plan);
    out->shared_out = worth_sharing(row.cost(desc_, target_), phases);
    for (int phase = 0; phase < phases; ++phase) out->tiles.push_back(row.tiles(out->plan, phase));
    const Workspace workspace = row.workspace == nullptr ? Workspace() : row.workspace(out->plan);
    out->scratch_bytes = workspace.per_worker_bytes;
    // The pool's workers make scratch of their own.
    const std::uint64_t of_others = workspace.per_worker_bytes * static_cast<std::uint64_t>(pool_.threads() - 1);
    if (!take(workspace.shared_bytes, out->shared) || !take(workspace.per_worker_bytes, out->scratch)) return false;
    ready_.push_back(std::move(out));
    return fits(used_ + of_others);
  }

  bool run_once(const Ready& ready) {
    Running running{
        .ready = &ready,
        .pointers = {ready.inputs.data(), result_data_.data(), ready.packed == nullptr ? nullptr : ready.packed->data(),
                     ready.shared->data(), nullptr}};
    for (std::size_t phase = 0; phase < ready.tiles.size(); ++phase) {
      running.phase = static_cast<int>(phase);
      pool_.run(ready.shared_out ? desk_ : nullptr, {run_tile, &running, ready.tiles[phase], ready.scratch_bytes},
                ready.scratch->data());
      if (const Fault fault = running.fault.load(); fault != nullptr) {
        problem_ = "it refuses zeros for integers: " + std::string(fault) + ".";
        return false;
      }
    }
    return true;
  }

  // `seconds` becomes those of one run, the mean of several that follow each other.
  bool time(const Ready& ready, double& seconds) {
    if (limits_.cancelled != nullptr && limits_.cancelled->load(std::memory_order_relaxed)) return false;
    const auto clock = pool_.threads() == 1 ? thread_seconds : wall_seconds;
    const double start = clock();
    for (int i = 0; i < ready.repeats; ++i) {
      if (!run_once(ready)) return false;
    }
    seconds = (clock() - start) / ready.repeats;
    return true;
  }

  double fastest() const {
    double best = std::numeric_limits<double>::infinity();
    for (const auto& ready : ready_) best = std::min(best, ready->best);
    return best;
  }

  // The runs that are not counted, but for a row that they show to be hopeless.
  bool warm_up() {
    constexpr double least_seconds = 2e-4;  // of one measurement: clocks and interruptions are small beside it
    constexpr double slow = 0.02;           // a first run of that much says more than pages that were touched first
    double fastest_first = std::numeric_limits<double>::infinity();
    for (const auto& ready : ready_) {
      double first = 0;
      if (!time(*ready, first)) return false;
      if (first > slow && first > hopeless * hopeless * fastest_first) {
        ready->best = first;
        ready->out = true;
      }
      fastest_first = std::min(fastest_first, first);
      ready->repeats = static_cast<int>(std::clamp(least_seconds / std::max(first, 1e-9), 1.0, 2000.0));
    }
    return true;
  }

  bool take_turns() {
    constexpr int least_rounds = 2;
    constexpr int most_rounds = 40;
    if (!warm_up()) return false;
    for (bool again = true; again;) {
      again = false;
      for (const auto& ready : ready_) {
        if (ready->out) continue;
        double seconds = 0;
        if (!time(*ready, seconds)) return false;
        ready->best = std::min(ready->best, seconds);
        ready->spent += seconds * ready->repeats;
        ++ready->rounds;
        const bool enough =
            ready->rounds >= most_rounds || (ready->rounds >= least_rounds && ready->spent > limits_.seconds_per_row);
        ready->out = enough || ready->best > hopeless * fastest();
        again = again || !ready->out;
      }
    }
    return true;
  }

  static constexpr double hopeless = 2;

  const StepDesc& desc_;
  const Target& target_;
  ThreadPool& pool_;
  ThreadPool::Desk* desk_;
  const MeasureLimits& limits_;
  std::string problem_;
  std::uint64_t used_ = 0;
  std::vector<std::shared_ptr<Buffer>> memory_;
  std::vector<TensorView> views_;
  std::vector<TensorDesc> results_;
  std::vector<std::byte*> result_data_;
  std::vector<std::unique_ptr<Ready>> ready_;
};

}  // namespace

Measured measure_rows(const StepDesc& desc, const std::vector<const Row*>& rows, const Target& target, ThreadPool& pool,
                      const MeasureLimits& limits) {
  return Measuring(desc, target, pool, limits).run(rows);
}

}  // namespace polyphase

// The cache is asked, then the clock.
#include "tune/tuner.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "graph/graph.h"
#include "kernel/catalogue.h"
#include "tune/step_text.h"

namespace polyphase {
namespace {

constexpr std::string_view kernels_name =
#include "tune/kernels_name.inc"
    ;

// The step with its operands dense, since windows take a kernel as long; nothing where one is strided.
std::optional<StepDesc> dense(const StepDesc& desc) {
  StepDesc out = desc;
  for (auto* side : {&out.inputs, &out.outputs}) {
    for (OperandDesc& operand : *side) {
      if (operand.present && operand.density == Density::strided) return std::nullopt;
      operand.density = Density::dense;
    }
  }
  return out;
}

bool is_empty(const OperandDesc& operand) {
  return std::any_of(operand.type.shape.begin(), operand.type.shape.end(), [](const Dim& size) { return size == 0; });
}

// The results follow from the operands. A guess of open sizes may contradict itself, and no row may see that.
bool is_sound(const StepDesc& desc) {
  std::vector<OperandInfo> infos(desc.inputs.size());
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (desc.inputs[i].present) infos[i].type = &desc.inputs[i].type;
  }
  std::vector<DimCheck> checks;
  const auto types = infer_parts(desc.parts, infos, checks, {});
  if (!types.ok() || types->size() != desc.outputs.size()) return false;
  for (std::size_t i = 0; i < types->size(); ++i) {
    if (!((*types)[i] == desc.outputs[i].type)) return false;
  }
  return std::all_of(checks.begin(), checks.end(), [](const DimCheck& check) {
    const auto left = check.left.constant();
    const auto right = check.right.constant();
    return left.has_value() && right.has_value() && holds(check.relation, *left, *right);
  });
}

// A file from elsewhere, or a maker's name: what would be two fields or lines becomes spaces.
std::string plain_words(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text;
}

}  // namespace

Tuner::Tuner(TimingCache cache, TuneOptions options) : cache_(std::move(cache)), options_(std::move(options)) {}

std::string Tuner::machine() const {
  return plain_words(options_.processor) + ", " + std::to_string(options_.threads) +
         (options_.threads == 1 ? " thread" : " threads");
}

namespace {

// A row's name in the cache. Rows in FP32 are the same on every cluster from avx512 on, and an engine without bf16 says
// that it is of that one; those in bf16 are of the cluster that has the instructions.
std::string cached_name(const Row& row, const Target& target) {
  const bool is_own = row.narrow_products && target.cluster != fp32_cluster(target.cluster);
  return std::string(row.name) + (is_own ? "_" + std::string(name_of(target.cluster)) : "");
}

}  // namespace

std::vector<double> Tuner::times_of(const std::string& machine, const std::string& step, const Target& target,
                                    const std::vector<const Row*>& rows) const {
  const StepTimes* times = cache_.look_up(machine, step);
  std::vector<double> out;
  if (times == nullptr) return out;
  for (const Row* row : rows) {
    const auto found = times->find(cached_name(*row, target));
    if (found == times->end()) return {};
    out.push_back(static_cast<double>(found->second) * 1e-9);
  }
  return out;
}

std::vector<double> Tuner::seconds(const StepDesc& desc, const std::vector<const Row*>& rows, const Target& target) {
  const std::optional<StepDesc> alone = dense(desc);
  if (!alone.has_value()) return {};
  const std::string step = text_of(*alone);
  if (step.empty() || unmeasured_.count(step) != 0) return {};
  const std::string machine = this->machine() + ", " + std::string(name_of(fp32_cluster(target.cluster))) +
                              ", kernels " + std::string(kernels_name);
  std::vector<double> out = times_of(machine, step, target, rows);
  if (finished_) return out;
  if (!out.empty()) {
    if (mine_.count(step) == 0) used_.insert(step);
    return out;
  }
  const auto refuses = [&](const Row* row) { return !refusal_of(*row, *alone, target).empty(); };
  if (std::any_of(rows.begin(), rows.end(), refuses) || !is_sound(*alone)) return {};
  if (std::all_of(alone->outputs.begin(), alone->outputs.end(), is_empty)) return {};  // no row ever runs
  return measure(*alone, rows, target, machine, step) ? times_of(machine, step, target, rows) : std::vector<double>();
}

bool Tuner::measure(const StepDesc& desc, const std::vector<const Row*>& rows, const Target& target,
                    const std::string& machine, const std::string& step) {
  constexpr double seconds_between_saves = 10;
  if (options_.limits.cancelled != nullptr && options_.limits.cancelled->load(std::memory_order_relaxed)) return false;
  if (options_.tell) options_.tell(desc.name, measured_ + 1);
  if (pool_ == nullptr) pool_ = std::make_unique<ThreadPool>(options_.threads);
  const auto start = std::chrono::steady_clock::now();
  const Measured measured = measure_rows(desc, rows, target, *pool_, options_.limits);
  if (measured.seconds.empty()) {
    if (measured.problem.empty()) return false;  // cancelled
    unmeasured_.insert(step);
    skipped_.push_back(desc.name + ": " + measured.problem);
    return false;
  }
  StepTimes times;
  for (std::size_t i = 0; i < rows.size(); ++i)
    times.emplace(cached_name(*rows[i], target),
                  static_cast<std::uint64_t>(std::max(1.0, std::round(measured.seconds[i] * 1e9))));
  cache_.remember(machine, step, times);
  mine_.insert(step);
  ++measured_;
  since_save_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (since_save_ > seconds_between_saves) {
    since_save_ = 0;
    const auto saved = cache_.save();  // tried again at the end, which tells of it
    static_cast<void>(saved.ok());
  }
  return true;
}

Result<void> Tuner::finish() {
  finished_ = true;
  pool_ = nullptr;
  options_.tell = nullptr;
  options_.limits.cancelled = nullptr;
  return cache_.save();
}

}  // namespace polyphase

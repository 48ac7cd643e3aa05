// Preparing cases, laying them out, running rows.
#include "conformance/execution.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <numeric>
#include <random>
#include <string_view>
#include <thread>

#include "conformance/compare.h"

namespace polyphase::test {
namespace {

Layout layout_of(int rank, bool channels_last) {
  return channels_last ? Layout::channels_last(rank) : Layout::row_major(rank);
}

Layout turned_layout(int rank) {
  std::vector<std::uint8_t> order;
  for (int axis = rank; axis-- > 0;) order.push_back(static_cast<std::uint8_t>(axis));
  return Layout(std::move(order));
}

Result<std::vector<Tensor>> run_part(const CasePart& part, std::vector<Tensor>& operands) {
  auto results = evaluate_reference(*part.op, part.attributes, operands);
  if (!results.ok()) return std::move(results).error();
  return results;
}

std::size_t anchor_of(const Case& source) {
  for (std::size_t p = 0; p < source.parts.size(); ++p) {
    const std::string& name = source.parts[p].op->name;
    if (name == "conv" || name == "conv_transpose") return p;
  }
  return 0;
}

}  // namespace

Result<PreparedCase> prepare(Case source) {
  PreparedCase out;
  out.anchor = anchor_of(source);
  std::vector<Tensor> running;
  for (std::size_t p = 0; p < source.parts.size(); ++p) {
    const CasePart& part = source.parts[p];
    Part step{part.op, part.attributes, {}};
    std::vector<Tensor> operands;
    for (const std::optional<CaseOperand>& operand : part.operands) {
      if (operand.has_value() && operand->running) {
        step.operands.push_back(Part::running);
        operands.push_back(running.front());
        continue;
      }
      step.operands.push_back(operand.has_value() ? static_cast<int>(out.inputs.size()) : Part::absent);
      Tensor tensor;
      if (operand.has_value()) {
        CaseOperand made = *operand;
        if (made.like_running) {
          made.dtype = running.front().dtype();
          made.sizes = running.front().sizes();
        }
        tensor = make_tensor(made, source.seed * 1000 + out.inputs.size());
      }
      const bool image = p != out.anchor || part.op->layout != LayoutRule::spatial || out.inputs.empty();
      out.follows_data.push_back(image && tensor.valid() && tensor.view().rank >= 3);
      out.inputs.push_back(tensor);
      operands.push_back(tensor);
    }
    TRY(running, run_part(part, operands));
    out.yields.push_back(running.front());
    out.parts.push_back(std::move(step));
  }
  out.expected = std::move(running);
  out.source = std::move(source);
  return out;
}

std::string Variant::text() const {
  std::string out = turned ? "turned" : channels_last_in ? "channels_last" : "row_major";
  out += channels_last_out ? " -> channels_last " : " -> row_major ";
  return out + std::string(name_of(density)) + (constant_weights ? "" : " computed");
}

std::vector<Variant> variants_of(const PreparedCase& prepared) {
  const LayoutRule rule = prepared.parts[prepared.anchor].op->layout;
  const bool images = rule != LayoutRule::row_major && !prepared.inputs.empty() &&
                      prepared.inputs.front().view().rank >= 3 &&
                      prepared.expected.front().view().rank == prepared.inputs.front().view().rank;
  const bool mixes = rule == LayoutRule::spatial || rule == LayoutRule::permute;
  std::vector<Variant> out;
  for (const bool in : {false, true}) {
    for (const bool result : {false, true}) {
      if ((in || result) && (!images || prepared.source.layout == "row_major")) continue;
      if (!(in && result) && images && prepared.source.layout == "channels_last") continue;
      if (in != result && !mixes) continue;
      for (const Density density : {Density::dense, Density::pitched, Density::strided}) {
        out.push_back({in, result, density, true});
      }
      out.push_back({in, result, Density::dense, false});
    }
  }
  const bool turns = !prepared.inputs.empty() && prepared.inputs.front().valid() &&
                     prepared.inputs.front().view().rank >= 2 && prepared.source.layout.empty();
  for (const Density density : {Density::dense, Density::pitched}) {
    if (turns) out.push_back({false, false, density, false, true});
  }
  return out;
}

StepDesc describe(const PreparedCase& prepared, const Variant& variant, const std::vector<TensorView>& constants) {
  StepDesc desc;
  desc.name = prepared.parts.front().op->name;
  desc.parts = prepared.parts;
  desc.anchor = prepared.anchor;
  for (std::size_t i = 0; i < prepared.inputs.size(); ++i) {
    OperandDesc operand;
    const Tensor& tensor = prepared.inputs[i];
    operand.present = tensor.valid();
    if (tensor.valid()) {
      const bool weights = i > 0 && !prepared.follows_data[i];
      operand.type = tensor.type();
      operand.layout = layout_of(tensor.view().rank, prepared.follows_data[i] && (i == 0 ? variant.channels_last_in
                                                                                         : variant.channels_last_out));
      if (i == 0 && variant.turned) operand.layout = turned_layout(tensor.view().rank);
      operand.density = weights ? Density::dense : variant.density;
      operand.constant = weights && variant.constant_weights;
      operand.value = operand.constant ? &constants[i] : nullptr;
    }
    desc.inputs.push_back(std::move(operand));
  }
  for (const Tensor& tensor : prepared.expected) {
    OperandDesc result;
    result.type = tensor.type();
    result.layout = layout_of(tensor.view().rank, variant.channels_last_out);
    result.density = variant.density;
    desc.outputs.push_back(std::move(result));
  }
  return desc;
}

namespace {

int workers_of(TileOrder order) {
  return order == TileOrder::two_workers ? 2 : order == TileOrder::three_workers ? 3 : 1;
}

std::string words_of(TileOrder order) {
  switch (order) {
    case TileOrder::ascending:
      return "tiles in order: ";
    case TileOrder::descending:
      return "tiles backwards: ";
    case TileOrder::shuffled:
      return "tiles shuffled: ";
    case TileOrder::two_workers:
      return "on 2 threads: ";
    case TileOrder::three_workers:
      return "on 3 threads: ";
  }
  return {};
}

// The memory of one step and its plan.
class Execution {
 public:
  Execution(const PreparedCase& prepared, const Row& row, const StepDesc& desc, const Target& target,
            bool keep_parts = false)
      : prepared_(prepared), row_(row), desc_(desc) {
    for (std::size_t i = 0; i < prepared.inputs.size(); ++i) {
      inputs_.push_back(nullptr);
      if (!prepared.inputs[i].valid()) continue;
      inputs_.back() = std::make_unique<GuardedTensor>(prepared.inputs[i].dtype(), prepared.inputs[i].sizes(),
                                                       desc.inputs[i].layout, desc.inputs[i].density);
      inputs_.back()->fill(prepared.inputs[i].view());
    }
    for (std::size_t i = 0; i < prepared.expected.size(); ++i) {
      outputs_.push_back(std::make_unique<GuardedTensor>(prepared.expected[i].dtype(), prepared.expected[i].sizes(),
                                                         desc.outputs[i].layout, desc.outputs[i].density));
    }
    for (std::size_t part = desc.anchor; keep_parts && part + 1 < desc.parts.size(); ++part) {
      const Layout& layout = desc.outputs[0].layout;
      kept_.push_back(
          std::make_unique<GuardedTensor>(DType::f32, prepared.expected[0].sizes(), layout, Density::dense));
      kept_parts_.push_back({part, static_cast<const TensorDesc&>(kept_.back()->view())});
      kept_pointers_.push_back(kept_.back()->view().data);
    }
    pack(target);
    make_plan(target);
  }

  std::span<const KeptPart> kept_parts() const { return kept_parts_; }
  const TensorView& kept(std::size_t i) const { return kept_[i]->view(); }

  const std::vector<std::unique_ptr<GuardedTensor>>& outputs() const { return outputs_; }

  // Result 0 in the memory of input i from now on.
  void place_result_in(std::size_t i) {
    in_place_ = static_cast<int>(i);
    output_pointers_[0] = inputs_[i]->view().data;
  }
  const TensorView& result(std::size_t i) const {
    return i == 0 && in_place_ >= 0 ? inputs_[static_cast<std::size_t>(in_place_)]->view() : outputs_[i]->view();
  }

  void reset() {
    for (const auto& output : outputs_) output->poison();
    for (const auto& kept : kept_) kept->poison();
    shared_->poison();
    scratch_->poison();
  }

  Fault run(TileOrder order, bool poison_between = false) {
    const int phases = row_.phases == nullptr ? 1 : row_.phases(plan_);
    for (int phase = 0; phase < phases; ++phase) {
      std::vector<std::int64_t> tiles(static_cast<std::size_t>(row_.tiles(plan_, phase)));
      std::iota(tiles.begin(), tiles.end(), 0);
      if (order == TileOrder::descending) std::reverse(tiles.begin(), tiles.end());
      if (order == TileOrder::shuffled) std::shuffle(tiles.begin(), tiles.end(), std::mt19937_64(7));
      const int workers = std::min<int>(workers_of(order), static_cast<int>(tiles.size()));
      const Fault fault =
          workers > 1 ? share(phase, tiles, workers) : work(phase, tiles, 0, 1, *scratch_, poison_between);
      if (fault != nullptr) return fault;
    }
    return nullptr;
  }

  // What was touched that must not be.
  std::string damage() const {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i]->intact()) return "wrote outside result " + std::to_string(i);
      if (!outputs_[i]->gaps_intact()) return "wrote between the elements of result " + std::to_string(i);
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i] == nullptr || static_cast<int>(i) == in_place_) continue;
      if (!inputs_[i]->intact() || !equal_elements(inputs_[i]->view(), prepared_.inputs[i].view()))
        return "wrote into operand " + std::to_string(i);
    }
    for (const auto& kept : kept_) {
      if (!kept->intact()) return "wrote outside of what a part yields";
    }
    if (!shared_->intact() || !scratch_->intact()) return "wrote outside its scratch";
    for (const auto& scratch : more_scratch_) {
      if (!scratch->intact()) return "wrote outside its scratch";
    }
    if (packed_ != nullptr && !packed_->intact()) return "wrote outside its packed weights";
    return {};
  }

 private:
  // One worker's part of a phase: every `step`-th of the tiles.
  Fault work(int phase, std::span<const std::int64_t> tiles, std::size_t first, std::size_t step, GuardedBytes& scratch,
             bool poison_between) const {
    const Pointers pointers{input_pointers_.data(), output_pointers_.data(),
                            packed_ == nullptr ? nullptr : packed_->data(), shared_->data(), kept_pointers_.data()};
    for (std::size_t i = first; i < tiles.size(); i += step) {
      if (poison_between && scratch.size_bytes() <= 65536) scratch.poison();
      const Fault fault = row_.run(plan_, pointers, phase, tiles[i], scratch.data());
      if (fault != nullptr) return fault;
    }
    return nullptr;
  }

  Fault share(int phase, std::span<const std::int64_t> tiles, int workers) {
    const auto count = static_cast<std::size_t>(workers);
    while (more_scratch_.size() + 1 < count)
      more_scratch_.push_back(std::make_unique<GuardedBytes>(scratch_->size_bytes()));
    std::vector<Fault> faults(count, nullptr);
    std::vector<std::thread> threads;
    for (std::size_t worker = 1; worker < count; ++worker) {
      threads.emplace_back(
          [&, worker] { faults[worker] = work(phase, tiles, worker, count, *more_scratch_[worker - 1], false); });
    }
    faults[0] = work(phase, tiles, 0, count, *scratch_, false);
    for (std::thread& thread : threads) thread.join();
    const auto found = std::find_if(faults.begin(), faults.end(), [](Fault fault) { return fault != nullptr; });
    return found == faults.end() ? nullptr : *found;
  }

  void pack(const Target& target) {
    for (const auto& input : inputs_) input_pointers_.push_back(input == nullptr ? nullptr : input->view().data);
    for (const auto& output : outputs_) output_pointers_.push_back(output->view().data);
    if (row_.packing.format.empty()) return;
    std::vector<TensorView> views;
    for (const int i : row_.packing.inputs(desc_)) {
      views.push_back(inputs_[static_cast<std::size_t>(i)]->view());
      input_pointers_[static_cast<std::size_t>(i)] = nullptr;
    }
    packed_ = std::make_unique<GuardedBytes>(row_.packing.size_bytes(desc_, target));
    row_.packing.pack(desc_, target, views, {}, packed_->data());
  }

  void make_plan(const Target& target) {
    for (const auto& input : inputs_)
      input_descs_.push_back(input == nullptr ? TensorDesc() : static_cast<const TensorDesc&>(input->view()));
    for (const auto& output : outputs_) output_descs_.push_back(output->view());
    plan_ = row_.plan({desc_, input_descs_, output_descs_, kept_parts_}, target);
    const Workspace workspace = row_.workspace == nullptr ? Workspace{} : row_.workspace(plan_);
    shared_ = std::make_unique<GuardedBytes>(workspace.shared_bytes);
    scratch_ = std::make_unique<GuardedBytes>(workspace.per_worker_bytes);
  }

  const PreparedCase& prepared_;
  const Row& row_;
  const StepDesc& desc_;
  std::vector<std::unique_ptr<GuardedTensor>> inputs_;
  std::vector<std::unique_ptr<GuardedTensor>> outputs_;
  std::vector<std::unique_ptr<GuardedTensor>> kept_;
  std::vector<KeptPart> kept_parts_;
  std::vector<std::byte*> kept_pointers_;
  std::vector<const std::byte*> input_pointers_;
  std::vector<std::byte*> output_pointers_;
  std::vector<TensorDesc> input_descs_;
  std::vector<TensorDesc> output_descs_;
  std::unique_ptr<GuardedBytes> packed_;
  std::unique_ptr<GuardedBytes> shared_;
  std::unique_ptr<GuardedBytes> scratch_;
  std::vector<std::unique_ptr<GuardedBytes>> more_scratch_;  // of the workers after the first
  Plan plan_;
  int in_place_ = -1;
};

// What nears 0 as its operand falls; of such functions the kernels give no subnormal numbers.
bool nears_zero(const CasePart& part) {
  constexpr std::string_view functions[] = {"sigmoid", "silu", "gelu", "mish", "softplus", "softmax"};
  return std::find(std::begin(functions), std::end(functions), part.op->name) != std::end(functions);
}

Bound bound_of(const PreparedCase& prepared, const Row& row) {
  const std::vector<CasePart>& parts = prepared.source.parts;
  Bound bound{prepared.source.ulp, prepared.source.tolerance, std::any_of(parts.begin(), parts.end(), nears_zero)};
  if (row.exactness == Exactness::bounded) bound.tolerance = std::max(bound.tolerance, 1e-5);
  return bound;
}

std::string check_run(const PreparedCase& prepared, const Row& row, Execution& execution, TileOrder order) {
  const Fault fault = execution.run(order, order == TileOrder::shuffled);
  if (fault != nullptr) return std::string("refused the data: ") + fault;
  if (std::string damage = execution.damage(); !damage.empty()) return damage;
  for (std::size_t i = 0; i < prepared.expected.size(); ++i) {
    std::string difference = compare(execution.result(i), prepared.expected[i].view(), bound_of(prepared, row));
    if (!difference.empty()) return "result " + std::to_string(i) + " " + difference;
  }
  return {};
}

// Once more with what every part but the last yields written down.
std::string check_kept_parts(const PreparedCase& prepared, const Row& row, const StepDesc& desc, const Target& target) {
  Execution execution(prepared, row, desc, target, true);
  execution.reset();
  std::string wrong = check_run(prepared, row, execution, TileOrder::shuffled);
  if (!wrong.empty()) return wrong;
  for (std::size_t i = 0; i < execution.kept_parts().size(); ++i) {
    const std::size_t part = execution.kept_parts()[i].part;
    wrong = compare(execution.kept(i), prepared.yields[part].view(), bound_of(prepared, row));
    if (!wrong.empty()) return "what part " + std::to_string(part) + " yields " + wrong;
  }
  return {};
}

// An operand that an elementwise part reads and that has exactly the result's type and place; -1: none.
int operand_to_overwrite(const StepDesc& desc) {
  for (std::size_t p = 0; p < desc.parts.size(); ++p) {
    if (!desc.parts[p].op->elementwise) continue;
    for (const int operand : desc.parts[p].operands) {
      if (operand < 0) continue;
      const OperandDesc& input = desc.inputs[static_cast<std::size_t>(operand)];
      if (!input.constant && input.type == desc.outputs[0].type && input.layout == desc.outputs[0].layout &&
          input.density == Density::dense) {
        return operand;
      }
    }
  }
  return -1;
}

}  // namespace

std::string check_row(const PreparedCase& prepared, const Variant& variant, const Row& row, const StepDesc& desc,
                      const Target& target) {
  return check_row(prepared, variant, row, desc, target,
                   std::array{TileOrder::ascending, TileOrder::descending, TileOrder::shuffled});
}

std::string check_row(const PreparedCase& prepared, const Variant& variant, const Row& row, const StepDesc& desc,
                      const Target& target, std::span<const TileOrder> orders) {
  Execution execution(prepared, row, desc, target);
  for (const TileOrder order : orders) {
    execution.reset();
    std::string wrong = check_run(prepared, row, execution, order);
    if (!wrong.empty()) return words_of(order) + wrong;
    if (row.reference) return {};
  }
  if (row.keeps_parts && desc.parts.size() > 1) {
    std::string wrong = check_kept_parts(prepared, row, desc, target);
    if (!wrong.empty()) return "keeping its parts: " + wrong;
  }
  const int overwritten = row.in_place && variant.density == Density::dense ? operand_to_overwrite(desc) : -1;
  if (overwritten < 0) return {};
  Execution again(prepared, row, desc, target);
  again.reset();
  again.place_result_in(static_cast<std::size_t>(overwritten));
  std::string wrong = check_run(prepared, row, again, TileOrder::descending);
  return wrong.empty() ? wrong : "in place of operand " + std::to_string(overwritten) + ": " + wrong;
}

double time_row(const PreparedCase& prepared, const Row& row, const StepDesc& desc, const Target& target) {
  using Clock = std::chrono::steady_clock;
  Execution execution(prepared, row, desc, target);
  double least = 1e30;
  double total = 0;
  for (int i = 0; i < 3 || (total < 0.2 && i < 2000); ++i) {
    const auto begin = Clock::now();
    execution.run(TileOrder::ascending);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    least = std::min(least, seconds);
    total += seconds;
  }
  return least;
}

}  // namespace polyphase::test

// What each step runs: its description, rows and packed weights.
#include "runtime/program_parts.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_map>

#include "kernel/concrete.h"

namespace polyphase {
namespace {

class Steps {
 public:
  Steps(Program& program, const std::map<std::string, int, std::less<>>& level_of_symbol)
      : program_(program), level_of_symbol_(level_of_symbol) {}

  Result<void> find() {
    for (const EngineConstant& constant : engine().constants) program_.constant_bytes += constant.bytes->size_bytes();
    for (ProgramStep& step : program_.steps) {
      TRY_VOID(describe(step));
      TRY_VOID(find_rows(step));
      TRY_VOID(find_pack(step));
    }
    return {};
  }

 private:
  const Engine& engine() const { return *program_.engine; }
  bool is_value(int value) const { return value >= 0 && static_cast<std::size_t>(value) < engine().values.size(); }
  const EngineValue& value_at(int value) const { return engine().values[static_cast<std::size_t>(value)]; }
  ProgramValue& place_of(int value) { return program_.values[static_cast<std::size_t>(value)]; }

  OperandDesc operand(int value) {
    if (value < 0) return {.present = false, .type = {}, .layout = {}};
    const EngineValue& from = value_at(value);
    ProgramValue& place = place_of(value);
    OperandDesc out{.present = true, .type = from.type, .layout = from.layout, .constant = place.is_constant};
    out.density = density_of(from.type.shape, from.layout, place.strides);
    if (place.is_constant && place.constant.data != nullptr) out.value = &place.constant;
    return out;
  }

  Result<void> describe(ProgramStep& step) {
    const Step& from = *step.step;
    StepDesc& desc = step.desc;
    desc.name = from.name;
    desc.parts = from.parts;
    desc.anchor = from.anchor;
    for (const int input : from.inputs) desc.inputs.push_back(operand(input));
    for (const int output : from.outputs) desc.outputs.push_back(operand(output));
    if (desc.parts.empty() || desc.anchor >= desc.parts.size())
      return damaged_engine("step '" + from.name + "' does nothing");
    std::map<std::string, DimRange, std::less<>> used;
    for (const Part& part : desc.parts) {
      if (part.op == nullptr) return damaged_engine("step '" + from.name + "' has no operator");
      for (const int index : part.operands) {
        if (index >= static_cast<int>(desc.inputs.size()) || index < Part::absent) {
          return damaged_engine("step '" + from.name + "' has an operand too many");
        }
      }
      part.attributes.collect_symbols(used);
    }
    for (const auto& [name, range] : used) {
      const auto found = level_of_symbol_.find(name);
      // What gives birth to symbols names them; they are no demand of its own.
      if (from.kind == StepKind::bind || !from.blocks.empty()) continue;
      if (found == level_of_symbol_.end()) return damaged_engine("no input and no step gives the size " + name);
      if (!program_.sees(step.scope, found->second))
        return damaged_engine("step '" + from.name + "' uses the size " + name + " before it is known");
      step.level = std::max(step.level, found->second);
    }
    for (const int value : from.inputs) {
      if (value >= 0) step.level = std::max(step.level, place_of(value).level);
    }
    for (const int value : from.outputs) {
      if (from.blocks.empty()) step.level = std::max(step.level, place_of(value).level);
    }
    return {};
  }

  Result<void> find_rows(ProgramStep& step) {
    const Step& from = *step.step;
    if (from.kind != StepKind::kernel && from.kind != StepKind::copy) return {};
    const Catalogue& catalogue = *program_.target.catalogue;
    const std::string& op = step.desc.anchor_part().op->name;
    if (program_.target.portable) {
      const auto likely = evaluate(step.desc, likely_sizes(engine().symbols));
      if (!likely.has_value()) return damaged_engine("the sizes of step '" + from.name + "' cannot be computed");
      for (const RowAnswer& answer : catalogue.choose(step.desc, *likely, program_.target))
        step.rows.push_back(answer.row);
    }
    for (const std::string& name : from.rows) {
      if (program_.target.portable && !step.rows.empty()) break;
      const Row* row = catalogue.find(op, name);
      const std::string refusal = row == nullptr ? "it is unknown here" : refusal_of(*row, step.desc, program_.target);
      if (!refusal.empty()) {
        return Error{ErrorCode::incompatible,
                     "kernel '" + name + "' of operator " + op + " cannot run this step: " + refusal + ".",
                     "Compile the model again with this release."}
            .at_node(from.name);
      }
      step.rows.push_back(row);
    }
    if (step.rows.empty()) {
      return Error{ErrorCode::incompatible, "no kernel here runs operator " + op + ".",
                   "Compile the model again with this release."}
          .at_node(from.name);
    }
    return {};
  }

  Result<void> find_pack(ProgramStep& step) {
    if (!step.rows.empty()) TRY_VOID(read_pack(step));
    for (std::size_t i = 0; i < step.desc.inputs.size(); ++i) {
      const OperandDesc& input = step.desc.inputs[i];
      const bool packed = std::find(step.packed_operands.begin(), step.packed_operands.end(), static_cast<int>(i)) !=
                          step.packed_operands.end();
      if (input.present && input.constant && input.value == nullptr && !(packed && step.packed != nullptr)) {
        return damaged_engine("step '" + step.desc.name + "' reads a constant that is only packed");
      }
    }
    return {};
  }

  Result<void> read_pack(ProgramStep& step) {
    const Row& row = *step.rows.front();
    for (const Row* other : step.rows) {
      if (other->packing.format != row.packing.format) {
        return damaged_engine("the kernels of step '" + step.desc.name + "' share no packing");
      }
    }
    if (row.packing.format.empty()) return {};
    step.packed_operands = row.packing.inputs(step.desc);
    if (step.step->pack_at_run) return {};
    const int packed = step.step->packed;
    if (packed < 0) return pack_now(step, row);
    if (static_cast<std::size_t>(packed) >= engine().constants.size()) {
      return damaged_engine("step '" + step.desc.name + "' has no weights");
    }
    const EngineConstant& constant = engine().constants[static_cast<std::size_t>(packed)];
    if (constant.bytes == nullptr || constant.format != row.packing.format ||
        constant.bytes->size_bytes() != row.packing.size_bytes(step.desc, program_.target)) {
      return damaged_engine("the packed weights of step '" + step.desc.name + "' are not what kernel '" +
                            std::string(row.name) + "' reads");
    }
    step.packed = constant.bytes;
    return {};
  }

  // Weights that were kept raw. Equal packs are kept once: two steps may convolve with the same weights.
  Result<void> pack_now(ProgramStep& step, const Row& row) {
    std::vector<TensorView> views;
    for (const int index : step.packed_operands) {
      const OperandDesc& input = step.desc.inputs[static_cast<std::size_t>(index)];
      if (input.present && input.value == nullptr) {
        return damaged_engine("the weights of step '" + step.desc.name + "' are neither packed nor raw");
      }
      views.push_back(input.present ? *input.value : TensorView());
    }
    TRY(auto bytes, Buffer::allocate(row.packing.size_bytes(step.desc, program_.target)));
    row.packing.pack(step.desc, program_.target, views, {}, bytes->data());
    ++program_.packs;
    const std::string_view seen(reinterpret_cast<const char*>(bytes->data()), bytes->size_bytes());
    const auto [first, last] = packs_.equal_range(std::hash<std::string_view>()(seen));
    for (auto known = first; known != last; ++known) {
      const Buffer& other = *known->second;
      if (other.size_bytes() == seen.size() && std::memcmp(other.data(), seen.data(), seen.size()) == 0) {
        step.packed = known->second;
        return {};
      }
    }
    program_.constant_bytes += seen.size();
    step.packed = packs_.emplace(std::hash<std::string_view>()(seen), std::move(bytes))->second;
    return {};
  }
  Program& program_;
  const std::map<std::string, int, std::less<>>& level_of_symbol_;
  std::unordered_multimap<std::size_t, std::shared_ptr<const Buffer>> packs_;
};

}  // namespace

Result<void> resolve_steps(Program& program, const std::map<std::string, int, std::less<>>& level_of_symbol) {
  return Steps(program, level_of_symbol).find();
}

}  // namespace polyphase

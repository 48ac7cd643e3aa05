// Resolving an engine against a catalogue. Everything in the engine may come from a file, so nothing in it is believed.
#include "runtime/program.h"

#include <algorithm>
#include <climits>
#include <functional>

#include "kernel/concrete.h"

namespace polyphase {
namespace {

Error damaged(const std::string& what) {
  return {ErrorCode::corrupt, "the engine contradicts itself: " + what + ".", "Compile the model again."};
}

class Resolver {
 public:
  Resolver(std::shared_ptr<const Engine> engine, const Target& target) : program_(std::make_shared<Program>()) {
    program_->engine = std::move(engine);
    program_->target = target;
  }

  Result<std::shared_ptr<const Program>> resolve() {
    TRY_VOID(check_cluster());
    program_->ranges = engine().symbols;
    TRY_VOID(find_values());
    TRY_VOID(flatten());
    TRY_VOID(find_levels());
    for (ProgramStep& step : program_->steps) {
      TRY_VOID(describe(step));
      TRY_VOID(find_rows(step));
      TRY_VOID(find_pack(step));
    }
    for (const EngineConstant& constant : engine().constants) program_->constant_bytes += constant.bytes->size_bytes();
    return std::shared_ptr<const Program>(std::move(program_));
  }

 private:
  const Engine& engine() const { return *program_->engine; }
  bool is_value(int value) const { return value >= 0 && static_cast<std::size_t>(value) < engine().values.size(); }
  const EngineValue& value_at(int value) const { return engine().values[static_cast<std::size_t>(value)]; }
  ProgramValue& place_of(int value) { return program_->values[static_cast<std::size_t>(value)]; }

  Result<void> check_cluster() {
    if (engine().cluster == "portable") {
      program_->target.portable = true;
      return {};
    }
    const auto cluster = cluster_from_name(engine().cluster);
    if (!cluster.has_value()) return damaged("there is no cluster '" + engine().cluster + "'");
    if (*cluster > program_->target.cluster) {
      return Error{ErrorCode::incompatible,
                   "the engine was compiled for " + engine().cluster + "; this CPU has " +
                       std::string(name_of(program_->target.cluster)) + ".",
                   "Compile the model again on this machine, or with --target portable."};
    }
    return {};
  }

  Result<void> find_values() {
    const Engine& e = engine();
    program_->values.resize(e.values.size());
    for (std::size_t i = 0; i < e.values.size(); ++i) {
      const EngineValue& value = e.values[i];
      ProgramValue& place = program_->values[i];
      place.root = static_cast<int>(i);
      if (value.layout.rank() != value.type.shape.rank())
        return damaged("value '" + value.name + "' has a layout of another rank");
      place.strides = value.layout.dense_strides(value.type.shape.dims());
      if (value.storage == Storage::alias) {
        place.root = value.alias.value;
        place.strides = value.alias.strides;
        if (!is_value(place.root) || value_at(place.root).storage == Storage::alias ||
            static_cast<int>(place.strides.size()) != value.type.shape.rank()) {
          return damaged("value '" + value.name + "' is an alias of nothing");
        }
      }
      if (value.storage == Storage::constant) TRY_VOID(find_constant(value, place));
    }
    for (std::size_t i = 0; i < e.values.size(); ++i) {
      if (e.values[i].storage == Storage::alias) TRY_VOID(view_constant(e.values[i], program_->values[i]));
    }
    TRY_VOID(find_ports(e.inputs, Storage::input, "input"));
    return find_ports(e.outputs, Storage::output, "output");
  }

  Result<void> find_constant(const EngineValue& value, ProgramValue& place) {
    if (!value.type.shape.is_static()) return damaged("constant '" + value.name + "' has no fixed shape");
    const auto sizes = value.type.shape.evaluate({});
    if (!sizes.has_value()) return damaged("constant '" + value.name + "' has no fixed shape");
    const TensorDesc desc(value.type.dtype, *sizes, value.layout);
    place.constant = TensorView(desc, nullptr);
    if (value.constant < 0) return {};
    if (static_cast<std::size_t>(value.constant) >= engine().constants.size())
      return damaged("constant '" + value.name + "' has no bytes");
    const EngineConstant& constant = engine().constants[static_cast<std::size_t>(value.constant)];
    if (constant.bytes == nullptr || !constant.format.empty() ||
        constant.bytes->size_bytes() < static_cast<std::size_t>(desc.element_count()) * size_bytes(desc.dtype)) {
      return damaged("constant '" + value.name + "' has too few bytes");
    }
    place.constant.data = constant.bytes->data();
    return {};
  }

  // A view of a constant is a constant too.
  Result<void> view_constant(const EngineValue& value, ProgramValue& place) {
    const TensorView& root = place_of(place.root).constant;
    if (value_at(place.root).storage != Storage::constant || root.data == nullptr) return {};
    const auto sizes = value.type.shape.evaluate({});
    const auto strides = Shape(place.strides).evaluate({});
    const auto offset = value.alias.offset.evaluate({});
    if (!sizes.has_value() || !strides.has_value() || !offset.has_value() || value.type.dtype != root.dtype) {
      return damaged("the view '" + value.name + "' of a constant has no fixed shape");
    }
    TensorDesc desc = TensorDesc::row_major(value.type.dtype, *sizes);
    std::copy(strides->begin(), strides->end(), desc.strides.begin());
    TRY_VOID(check_window(desc, *offset, root.extent(), value.name));
    place.constant = TensorView(desc, root.data + *offset * static_cast<std::int64_t>(size_bytes(desc.dtype)));
    return {};
  }

  Result<void> find_ports(const std::vector<EnginePort>& ports, Storage storage, const std::string& word) {
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (!is_value(ports[i].value) || value_at(ports[i].value).storage != storage ||
          place_of(ports[i].value).port >= 0 || !value_at(ports[i].value).layout.is_row_major()) {
        return damaged(word + " '" + ports[i].name + "' is no " + word + " value of its own");
      }
      place_of(ports[i].value).port = static_cast<int>(i);
    }
    for (std::size_t i = 0; i < engine().values.size(); ++i) {
      if (engine().values[i].storage == storage && program_->values[i].port < 0) {
        return damaged("value '" + engine().values[i].name + "' is an " + word + " that no caller gives");
      }
    }
    return {};
  }

  Result<void> flatten() {
    program_->blocks.resize(engine().blocks.size());
    if (engine().blocks.empty()) return damaged("it has no program");
    std::vector<bool> seen(engine().blocks.size(), false);
    return flatten_block(0, seen);
  }

  Result<void> flatten_block(std::size_t block, std::vector<bool>& seen) {
    if (seen[block]) return damaged("block " + std::to_string(block) + " is run from two places");
    seen[block] = true;
    for (const Step& step : engine().blocks[block].steps) {
      const auto flat = static_cast<int>(program_->steps.size());
      program_->blocks[block].push_back(flat);
      program_->steps.emplace_back();
      program_->steps.back().step = &step;
      TRY_VOID(touch_values(step, flat));
      for (const int nested : step.blocks) {
        if (nested <= 0 || static_cast<std::size_t>(nested) >= seen.size())
          return damaged("step '" + step.name + "' runs no block");
        TRY_VOID(flatten_block(static_cast<std::size_t>(nested), seen));
      }
      // What the step reads must outlive its blocks, and what it gives exists before they write it.
      if (!step.blocks.empty()) TRY_VOID(touch_values(step, static_cast<int>(program_->steps.size()) - 1));
    }
    return {};
  }

  Result<void> touch_values(const Step& step, int flat) {
    const auto touch = [&](int value) {
      ProgramValue& root = place_of(place_of(value).root);
      root.first_step = std::min(root.first_step, flat);
      root.last_step = std::max(root.last_step, flat);
    };
    for (const int input : step.inputs) {
      if (input == -1) continue;
      if (!is_value(input)) return damaged("step '" + step.name + "' reads a value that is not there");
      touch(input);
    }
    for (const int output : step.outputs) {
      if (!is_value(output)) return damaged("step '" + step.name + "' writes a value that is not there");
      const Storage storage = value_at(place_of(output).root).storage;
      if (storage != Storage::arena && storage != Storage::output) {
        return damaged("step '" + step.name + "' writes '" + value_at(output).name + "', which is not its to write");
      }
      touch(output);
    }
    return {};
  }

  // ------------------------------------------------------------ levels

  Result<int> level_of(const Dim& dim) const {
    if (dim.is_constant()) return 0;
    std::map<std::string, DimRange, std::less<>> used;
    dim.collect_symbols(used);
    int level = 0;
    for (const auto& [name, range] : used) {
      const auto found = level_of_symbol_.find(name);
      if (found == level_of_symbol_.end()) return damaged("no input and no step gives the size " + name);
      level = std::max(level, found->second);
    }
    return level;
  }

  Result<int> level_of(const std::vector<Dim>& dims) const {
    int level = 0;
    for (const Dim& dim : dims) {
      TRY(const int own, level_of(dim));
      level = std::max(level, own);
    }
    return level;
  }

  void give_birth(const std::string& name, int level) {
    if (level_of_symbol_.emplace(name, level).second) program_->symbols.push_back(name);
  }

  Result<void> find_levels() {
    for (const EnginePort& input : engine().inputs) {
      std::map<std::string, DimRange, std::less<>> used;
      for (const Dim& dim : value_at(input.value).type.shape) dim.collect_symbols(used);
      for (const auto& [name, range] : used) give_birth(name, 0);
    }
    program_->symbols_known.push_back(program_->symbols.size());
    for (const ProgramStep& step : program_->steps) {
      if (step.step->kind != StepKind::bind) continue;
      for (const std::string& name : step.step->symbols) give_birth(name, program_->levels());
      program_->symbols_known.push_back(program_->symbols.size());
    }
    TRY_VOID(level_values());
    return level_checks();
  }

  Result<void> level_values() {
    const auto roots_first = [&](bool alias) -> Result<void> {
      for (std::size_t i = 0; i < program_->values.size(); ++i) {
        const EngineValue& value = engine().values[i];
        if ((value.storage == Storage::alias) != alias) continue;
        ProgramValue& place = program_->values[i];
        TRY(place.level, level_of(value.type.shape.dims()));
        if (!alias) continue;
        TRY(const int view, level_of(place.strides));
        TRY(const int offset, level_of(value.alias.offset));
        place.level = std::max({place.level, view, offset, place_of(place.root).level});
      }
      return {};
    };
    TRY_VOID(roots_first(false));
    return roots_first(true);
  }

  Result<void> level_checks() {
    program_->checks.resize(static_cast<std::size_t>(program_->levels()));
    for (const DimCheck& check : engine().checks) {
      TRY(const int left, level_of(check.left));
      TRY(const int right, level_of(check.right));
      program_->checks[static_cast<std::size_t>(std::max(left, right))].push_back(check);
    }
    return {};
  }

  // ------------------------------------------------------------ steps

  OperandDesc operand(int value) {
    if (value < 0) return {.present = false, .type = {}, .layout = {}};
    const EngineValue& from = value_at(value);
    ProgramValue& place = place_of(value);
    const bool constant = value_at(place.root).storage == Storage::constant;
    OperandDesc out{.present = true, .type = from.type, .layout = from.layout, .constant = constant};
    out.density = density_of(from.type.shape, from.layout, place.strides);
    if (constant && place.constant.data != nullptr) out.value = &place.constant;
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
    if (desc.parts.empty() || desc.anchor >= desc.parts.size()) return damaged("step '" + from.name + "' does nothing");
    std::map<std::string, DimRange, std::less<>> used;
    for (const Part& part : desc.parts) {
      if (part.op == nullptr) return damaged("step '" + from.name + "' has no operator");
      for (const int index : part.operands) {
        if (index >= static_cast<int>(desc.inputs.size()) || index < Part::absent) {
          return damaged("step '" + from.name + "' has an operand too many");
        }
      }
      part.attributes.collect_symbols(used);
    }
    for (const auto& [name, range] : used) {
      const auto found = level_of_symbol_.find(name);
      // A bind names the symbols that it gives birth to; they are no demand of its own.
      if (from.kind == StepKind::bind) continue;
      if (found == level_of_symbol_.end()) return damaged("no input and no step gives the size " + name);
      step.level = std::max(step.level, found->second);
    }
    for (const int value : from.inputs) {
      if (value >= 0) step.level = std::max(step.level, place_of(value).level);
    }
    for (const int value : from.outputs) step.level = std::max(step.level, place_of(value).level);
    return {};
  }

  Result<void> find_rows(ProgramStep& step) {
    const Step& from = *step.step;
    if (from.kind != StepKind::kernel && from.kind != StepKind::copy) return {};
    const Catalogue& catalogue = *program_->target.catalogue;
    const std::string& op = step.desc.anchor_part().op->name;
    if (program_->target.portable) {
      const auto likely = evaluate(step.desc, likely_sizes(engine().symbols));
      if (!likely.has_value()) return damaged("the sizes of step '" + from.name + "' cannot be computed");
      for (const RowAnswer& answer : catalogue.choose(step.desc, *likely, program_->target))
        step.rows.push_back(answer.row);
    }
    for (const std::string& name : from.rows) {
      if (program_->target.portable && !step.rows.empty()) break;
      const Row* row = catalogue.find(op, name);
      const std::string refusal = row == nullptr ? "it is unknown here" : refusal_of(*row, step.desc, program_->target);
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
        return damaged("step '" + step.desc.name + "' reads a constant that is only packed");
      }
    }
    return {};
  }

  Result<void> read_pack(ProgramStep& step) {
    const Row& row = *step.rows.front();
    for (const Row* other : step.rows) {
      if (other->packing.format != row.packing.format) {
        return damaged("the kernels of step '" + step.desc.name + "' share no packing");
      }
    }
    if (row.packing.format.empty()) return {};
    step.packed_operands = row.packing.inputs(step.desc);
    if (step.step->pack_at_run) return {};
    const int packed = step.step->packed;
    if (packed < 0) return pack_now(step, row);
    if (static_cast<std::size_t>(packed) >= engine().constants.size()) {
      return damaged("step '" + step.desc.name + "' has no weights");
    }
    const EngineConstant& constant = engine().constants[static_cast<std::size_t>(packed)];
    if (constant.bytes == nullptr || constant.format != row.packing.format ||
        constant.bytes->size_bytes() != row.packing.size_bytes(step.desc, program_->target)) {
      return damaged("the packed weights of step '" + step.desc.name + "' are not what kernel '" +
                     std::string(row.name) + "' reads");
    }
    step.packed = constant.bytes;
    return {};
  }

  // Weights that were kept raw; steps that pack the same constants for the same geometry share the bytes.
  Result<void> pack_now(ProgramStep& step, const Row& row) {
    std::vector<TensorView> views;
    for (const int index : step.packed_operands) {
      const OperandDesc& input = step.desc.inputs[static_cast<std::size_t>(index)];
      if (!input.present) {
        views.emplace_back();
        continue;
      }
      if (input.value == nullptr)
        return damaged("the weights of step '" + step.desc.name + "' are neither packed nor raw");
      views.push_back(*input.value);
    }
    TRY(auto bytes, Buffer::allocate(row.packing.size_bytes(step.desc, program_->target)));
    row.packing.pack(step.desc, program_->target, views, bytes->data());
    ++program_->packs;
    step.packed = std::move(bytes);
    return {};
  }

  std::shared_ptr<Program> program_;
  std::map<std::string, int, std::less<>> level_of_symbol_;
};

}  // namespace

Result<void> check_window(const TensorDesc& desc, std::int64_t offset, std::int64_t elements, const std::string& name) {
  if (desc.empty()) return {};
  std::int64_t low = offset;
  std::int64_t high = offset;
  bool inside = true;
  for (std::size_t i = 0; i < static_cast<std::size_t>(desc.rank); ++i) {
    std::int64_t reach = 0;
    inside = inside && !__builtin_mul_overflow(desc.sizes[i] - 1, desc.strides[i], &reach);
    std::int64_t& end = reach < 0 ? low : high;
    inside = inside && !__builtin_add_overflow(end, reach, &end);
  }
  if (!inside || low < 0 || high >= elements)
    return damaged("the view '" + name + "' reaches beyond what it is a view of");
  return {};
}

Result<std::shared_ptr<const Program>> make_program(std::shared_ptr<const Engine> engine, const Target& target) {
  CHECK(engine != nullptr && target.catalogue != nullptr);
  return Resolver(std::move(engine), target).resolve();
}

}  // namespace polyphase

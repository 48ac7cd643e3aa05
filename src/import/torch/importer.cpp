// The program around the nodes: inputs and their sizes, weights, outputs.
#include "import/torch/importer.h"

#include <algorithm>

#include "import/compose/symbol_name.h"
#include "import/torch/guards.h"
#include "import/torch/import_torch.h"
#include "import/torch/node_words.h"
#include "ops/custom.h"
#include "wire/printable.h"

namespace polyphase {

Result<ImportedModel> ProgramImporter::run() {
  TRY_VOID(refuse_changes());
  graph_ = std::make_unique<Graph>(registry_);
  main_.graph = graph_.get();
  TRY_VOID(add_inputs());
  first_own_storage_ = storages_;
  if (options_.refittable) TRY_VOID(list_weights());
  TRY_VOID(check_options());
  note_last_uses(program_.graph, main_);
  TRY_VOID(translate(program_.graph));
  TRY_VOID(add_guards());  // behind what the operators demand in their own words
  ImportedModel imported;
  imported.name = archive_.name();
  imported.producer = "torch.export " + program_.torch_version;
  if (options_.survey != nullptr) finish_survey(imported);
  if (imported.complete) {
    if (!missing_.empty()) return missing_error();
    TRY_VOID(add_outputs());
  }
  if (options_.refittable) fix_weights(*graph_, fixed_.weights(), exchangeable_);
  imported.weights = std::move(exchangeable_);
  imported.graph = std::move(graph_);
  imported.warnings = std::move(warnings_);
  imported.tensors = std::move(tensors_);
  return imported;
}

// A run of ours depends on its inputs alone and writes none of them.
Result<void> ProgramImporter::refuse_changes() const {
  for (const ProgramOutput& output : program_.outputs) {
    if (output.kind == ProgramOutput::Kind::mutation) {
      return lacking("the program changes " + wire::quoted_name(output.target) +
                         " in place, so a run would depend on those before it.",
                     "Export the module in eval() mode, and return what changes as an output.");
    }
    if (output.kind == ProgramOutput::Kind::other)
      return lacking("the program has an output of the kind '" + output.target + "'.",
                     "Export the module for inference, without gradients.");
  }
  return {};
}

DimRange ProgramImporter::range_of(std::string_view symbol) const {
  DimRange range{1, INT64_MAX};
  if (const auto found = program_.ranges.find(symbol); found != program_.ranges.end()) {
    // torch.export writes 2 where it only means that 0 and 1 were not looked at.
    if (found->second.first.value_or(0) > 2) range.low = *found->second.first;
    range.high = found->second.second.value_or(INT64_MAX);
  }
  if (const auto asked = options_.dims.find(symbol); asked != options_.dims.end()) {
    range.low = std::max(range.low, asked->second.low);
    range.high = std::min(range.high, asked->second.high);
  }
  return range;
}

Result<Dim> ProgramImporter::meaning_of_symbol(std::string_view symbol) {
  const auto found = symbols_.find(symbol);
  if (found != symbols_.end()) return found->second;
  return lacking("the size " + wire::quoted_name(symbol) + " follows from nothing that Polyphase follows.",
                 "Mark that size as static for torch.export.");
}

Result<Dim> ProgramImporter::input_size(const ProgramNumber& size, const std::string& input, int axis,
                                        const std::vector<Dim>* asked) {
  const std::string where = "axis " + std::to_string(axis) + " of input '" + input + "'";
  const Dim* const wish = asked == nullptr ? nullptr : &(*asked)[static_cast<std::size_t>(axis)];
  if (size.number.has_value()) {
    if (wish != nullptr && !(*wish == *size.number))
      return Error{ErrorCode::invalid_argument,
                   where + " is given as " + wish->text() + ", but the program was exported with " +
                       std::to_string(*size.number) + ".",
                   "Export it with that axis in dynamic_shapes, or leave the size as it is."};
    return Dim(*size.number);
  }
  // Symbols that occur here for the first time.
  std::optional<std::string> fresh;
  bool several = false;
  const SymbolMeaning meaning = [&](std::string_view symbol) -> Result<Dim> {
    const auto found = symbols_.find(symbol);
    if (found != symbols_.end()) return found->second;
    several = several || (fresh.has_value() && *fresh != symbol);
    fresh = std::string(symbol);
    return Dim::symbol("fresh");
  };
  TRY(const Dim whole, parse_symbolic(size.expression, meaning));
  if (several)
    return lacking(where + " has the size " + wire::quoted_name(size.expression) + " of several unknowns.",
                   "Export the program with plain dynamic sizes.");
  if (!fresh.has_value()) {  // it follows from the inputs before
    if (wish == nullptr || *wish == whole) return whole;
    TRY_VOID(DimDemands(graph_->checks())
                 .require(*wish, DimCheck::Relation::equal, whole,
                          where + " must be " + whole.text() + ", which the program's other inputs demand."));
    return *wish;
  }
  const DimRange range = range_of(*fresh);
  const auto symbol_of = [&](std::string_view name, DimRange of) {
    return of.low == of.high ? Dim(of.low) : Dim::symbol(unique_symbol(name, used_symbols_), of);
  };
  if (whole.is_symbol()) {
    const Dim made = wish != nullptr ? *wish : symbol_of(*fresh, range);
    if (made.is_symbol()) used_symbols_.insert(made.symbol_name());
    symbols_.emplace(*fresh, made);
    return made;
  }
  // whole = c·s + r with one unknown s: the axis gets a size of its own, s follows from it, and what is left is
  // checked.
  const Dim made = wish != nullptr ? *wish : symbol_of(*fresh + "_size", {1, INT64_MAX});
  const Dim rest = whole.substitute({{"fresh", Dim(0)}});
  const Dim factor = whole.substitute({{"fresh", Dim(1)}}) - rest;
  if (!factor.is_constant() || factor.value() <= 0 || !(whole == factor * Dim::symbol("fresh") + rest))
    return lacking(where + " has the size " + wire::quoted_name(size.expression) + ".",
                   "Export the program with plain dynamic sizes, or multiples of one.");
  const Dim unknown = floor_div(made - rest, factor);
  symbols_.emplace(*fresh, unknown);
  TRY_VOID(DimDemands(graph_->checks())
               .require(made, DimCheck::Relation::equal, factor * unknown + rest,
                        where + " must be a multiple of " + std::to_string(factor.value()) +
                            (rest == 0 ? "" : " with the rest " + rest.text()) + ", as the program was exported."));
  return made;
}

Result<Shape> ProgramImporter::input_shape(const ProgramTensor& tensor, const std::string& name) {
  const auto asked = options_.shapes.find(name);
  if (asked != options_.shapes.end() && asked->second.size() != tensor.sizes.size())
    return Error{ErrorCode::invalid_argument,
                 "the shape given for input '" + name + "' has " + std::to_string(asked->second.size()) +
                     " sizes; the input has " + std::to_string(tensor.sizes.size()) + ".",
                 "Give one size for each axis."};
  if (tensor.sizes.size() > static_cast<std::size_t>(max_rank))
    return lacking("input '" + name + "' has " + std::to_string(tensor.sizes.size()) + " axes; Polyphase takes " +
                       std::to_string(max_rank) + ".",
                   "Export the program with fewer axes.");
  std::vector<Dim> sizes;
  for (std::size_t axis = 0; axis < tensor.sizes.size(); ++axis) {
    TRY(Dim size, input_size(tensor.sizes[axis], name, static_cast<int>(axis),
                             asked == options_.shapes.end() ? nullptr : &asked->second));
    sizes.push_back(std::move(size));
  }
  return Shape(std::move(sizes));
}

Result<void> ProgramImporter::add_input(const ProgramInput& input, const std::string& name) {
  if (input.item.kind == ProgramItem::Kind::symbol)
    return lacking("input '" + name + "' is a number, not a tensor.",
                   "Pass it as a tensor of rank 0, or fix it before the export.");
  if (input.item.kind != ProgramItem::Kind::tensor) return {};  // fixed at export
  const auto tensor = program_.graph.tensors.find(input.item.text);
  if (tensor == program_.graph.tensors.end())
    return Error{ErrorCode::corrupt, "the program does not say what input '" + name + "' is.", "Save it again."};
  TRY(const DType dtype, dtype_of_scalar_type(tensor->second.scalar_type));
  TRY(Shape shape, input_shape(tensor->second, name));
  ProgramMeaning meaning;
  meaning.value = graph_->add_input(name, {dtype, std::move(shape)});
  meaning.storage = storages_++;
  tensors_.push_back({name, graph_->name, meaning.value->name});
  main_.names.emplace(input.item.text, std::move(meaning));
  return {};
}

Result<void> ProgramImporter::add_inputs() {
  std::size_t users = 0;
  for (const ProgramInput& input : program_.inputs)
    users += input.kind == ProgramInput::Kind::user || input.kind == ProgramInput::Kind::constant;
  const bool named = program_.input_names.size() == users;
  std::size_t user = 0;
  for (const ProgramInput& input : program_.inputs) {
    using Kind = ProgramInput::Kind;
    switch (input.kind) {
      case Kind::parameter:
      case Kind::buffer:
      case Kind::constant_tensor: {
        ProgramMeaning meaning;
        meaning.weight = input.target;
        meaning.storage = storages_++;
        main_.names.emplace(input.item.text, std::move(meaning));
        break;
      }
      case Kind::user: {
        const std::string name = named ? program_.input_names[user] : input.item.text;
        auto added = add_input(input, name);
        if (!added.ok()) return std::move(added).error().within("input '" + wire::printable(name) + "'");
        ++user;
        break;
      }
      case Kind::constant:
        ++user;
        break;
      case Kind::token:
        break;
      case Kind::custom_object:
        return lacking("the program takes an object of the kind " + wire::quoted_name(input.target) + ".",
                       "Replace it by tensors before the export.");
    }
  }
  return {};
}

// Parameters and buffers; tied ones lie at one place. What we cannot store is told when it is used.
Result<void> ProgramImporter::list_weights() {
  std::map<std::string, std::size_t> by_place;
  for (const ProgramInput& input : program_.inputs) {
    using Kind = ProgramInput::Kind;
    if (input.kind != Kind::parameter && input.kind != Kind::buffer) continue;
    if (!archive_.has_tensor(input.target)) continue;
    const auto declared = program_.graph.tensors.find(input.item.text);
    if (declared != program_.graph.tensors.end() && is_complex_type(declared->second.scalar_type)) continue;
    auto tensor = archive_.tensor(input.target);
    if (!tensor.ok()) continue;
    const auto [found, fresh] = by_place.emplace(archive_.place_of(input.target), exchangeable_.size());
    if (fresh) exchangeable_.push_back({.names = {}, .value = std::move(tensor).value()});
    if (!exchangeable_at_.emplace(input.target, found->second).second) continue;
    exchangeable_[found->second].names.push_back(input.target);
  }
  return {};
}

std::string ProgramImporter::weight_in_use(const std::string& target) {
  const auto found = exchangeable_at_.find(target);
  if (found == exchangeable_at_.end()) return {};
  ImportedWeight& weight = exchangeable_[found->second];
  weight.used = true;
  return may_be_exchanged(weight.value) ? weight.names.front() : std::string();
}

Result<void> ProgramImporter::check_options() const {
  std::string known;
  for (const auto& input : graph_->inputs()) known += (known.empty() ? "" : ", ") + input->name;
  for (const auto& [name, shape] : options_.shapes) {
    const auto has_name = [&name = name](const auto& input) { return input->name == name; };
    if (std::none_of(graph_->inputs().begin(), graph_->inputs().end(), has_name))
      return Error{ErrorCode::invalid_argument, "a shape is given for input '" + name + "', which is not there.",
                   "The program's inputs are: " + known + "."};
  }
  std::string symbols;
  for (const auto& [symbol, dim] : symbols_) symbols += (symbols.empty() ? "" : ", ") + symbol;
  for (const auto& [name, range] : options_.dims) {
    if (symbols_.count(name) != 0 || options_.shape_names.count(name) != 0) continue;
    return Error{ErrorCode::invalid_argument, "a range is given for the size '" + name + "', which is not there.",
                 symbols.empty() ? "All sizes of the program are fixed; export it with dynamic_shapes."
                                 : "The program's sizes are: " + symbols + "."};
  }
  return {};
}

// What the export took for granted about sizes is tested whenever they change.
Result<void> ProgramImporter::add_guards() {
  const InputSize size = [this](std::string_view name, std::int64_t axis) -> std::optional<Dim> {
    for (const auto& input : graph_->inputs()) {
      if (input->name == name && axis < input->type.shape.rank()) return input->type.shape[static_cast<int>(axis)];
    }
    return std::nullopt;
  };
  for (const std::string& guard : program_.guards) {
    const auto relations = parse_guard(guard, size);
    const std::string shown = wire::printable(guard, 300);
    if (!relations.has_value()) {
      warnings_.push_back("the program relies on " + shown + ", which is not tested");
      continue;
    }
    for (const SymbolicRelation& one : *relations)
      TRY_VOID(
          DimDemands(graph_->checks())
              .require(one.left, one.relation, one.right, "the program was exported for sizes with " + shown + "."));
  }
  return {};
}

Result<void> ProgramImporter::add_outputs() {
  std::size_t index = 0;
  for (const ProgramOutput& output : program_.outputs) {
    const std::string name = "output_" + std::to_string(index++);
    Value* value = nullptr;
    if (output.item.kind == ProgramItem::Kind::tensor) {
      bool missing = false;
      auto found = value_of(output.item.text, missing);
      if (!found.ok()) return std::move(found).error().within(name);
      value = *found;
      const auto declared = program_.graph.tensors.find(output.item.text);
      if (declared != program_.graph.tensors.end() && is_complex_type(declared->second.scalar_type))
        return dtype_of_scalar_type(declared->second.scalar_type).error().within(name);
    } else if (output.item.kind != ProgramItem::Kind::none) {
      Emitter emitter(*graph_, name);
      auto number = scalar_of(program_.graph, output.item, emitter);
      if (!number.ok()) return std::move(number).error().within(name);
      if (number->data != nullptr) {
        TRY(value, emitter.emit("cast", Attributes({{"to", DType::f32}}), {number->data}));
      } else {
        value = number->kind == AtenScalar::Kind::real ? emitter.scalar(DType::f32, number->value)
                                                       : emitter.sizes_as_data({number->size}, true);
      }
    }
    if (value != nullptr) graph_->add_output(value, name);
  }
  if (graph_->outputs().empty())
    return Error{ErrorCode::invalid_model, "the program has no output.", "Return at least one tensor from forward."};
  return {};
}

namespace {

constexpr const char* missing_advice =
    "save exported_program.run_decompositions(), which writes many operators in terms of others, or export the module "
    "with torch.onnx.export and give the .onnx file";

}  // namespace

Error ProgramImporter::missing_error() const {
  std::string list;
  for (const auto& [name, use] : missing_) {
    list += (list.empty() ? "" : "; ") + wire::printable(name) + " (" + std::to_string(use.nodes) +
            (use.nodes == 1 ? " node, '" : " nodes, the first '") + wire::printable(use.first_node) + "')";
  }
  return lacking("the program uses operators that Polyphase lacks: " + list + ".",
                 std::string("`polyphase converters` lists what it has. Instead, ") + missing_advice + ".");
}

void ProgramImporter::finish_survey(ImportedModel& imported) {
  for (const auto& [name, missing] : missing_) {
    const auto [domain, operator_name] = split_target(name);
    OperatorUse& use = options_.survey->use(domain, operator_name);
    use.is_missing = true;
    use.nodes_refused = missing.nodes;
    use.advice = missing_advice;
  }
  imported.complete = options_.survey->complete();
  if (!imported.complete) output_what_nobody_reads(*graph_);
}

Result<ImportedModel> import_torch(wire::ZipArchive archive, const Registry& registry, const ImportOptions& options) {
  TRY(ProgramArchive parts, ProgramArchive::open(std::move(archive)));
  TRY(const TorchProgram program, parts.program());
  return ProgramImporter(parts, program, registry, options).run();
}

bool converts_torch(std::string_view claim) {
  const AtenTable table;
  for (const auto& [overload, converter] : table.all()) {
    if (claim == torch_claim(overload)) return true;
  }
  return false;
}

}  // namespace polyphase

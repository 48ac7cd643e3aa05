// The recipes of an engine: nothing in them is believed that the operators' own rules do not say.
#include <algorithm>
#include <set>

#include "engine/check_parts.h"
#include "engine/recipes.h"
#include "ops/fold_budget.h"

namespace polyphase {
namespace {

class RecipeChecker {
 public:
  explicit RecipeChecker(Engine& engine) : engine_(engine), recipes_(engine.recipes) {}

  Result<void> check() {
    if (!recipes_.refittable) return check_values();
    TRY_VOID(check_weights());
    for (const RecipeTable& table : recipes_.tables)
      TRY_VOID(check_elements("a table of its recipes", table.type(), table.constant));
    for (std::size_t i = 0; i < recipes_.nodes.size(); ++i) TRY_VOID(check_node(recipes_.nodes[i]));
    return check_values();
  }

 private:
  // A constant's bytes are the elements of this type.
  Result<void> check_elements(const std::string& what, const Type& type, int constant) {
    const auto bytes = dense_bytes_of(type);
    if (!bytes.has_value()) return refuse_engine(what + " has impossible sizes.");
    if (constant < 0 || static_cast<std::size_t>(constant) >= engine_.constants.size())
      return refuse_engine(what + " names constant " + std::to_string(constant) + " of " +
                           std::to_string(engine_.constants.size()) + ".");
    const EngineConstant& held = engine_.constants[static_cast<std::size_t>(constant)];
    if (!held.format.empty() || held.bytes->size_bytes() != static_cast<std::size_t>(*bytes))
      return refuse_engine(what + " of type " + type.text() + " has " + std::to_string(held.bytes->size_bytes()) +
                           " bytes.");
    types_.push_back(type);
    return {};
  }

  static std::optional<std::int64_t> dense_bytes_of(const Type& type) {
    auto bytes = static_cast<std::int64_t>(size_bytes(type.dtype));
    bool sound = type.shape.rank() <= max_rank;
    for (const Dim& size : type.shape) {
      const auto number = size.constant();
      sound = sound && number.has_value() && *number >= 0 && !__builtin_mul_overflow(bytes, *number, &bytes);
    }
    return sound ? std::optional(bytes) : std::nullopt;
  }

  Result<void> check_weights() {
    std::set<std::string> names;
    for (const EngineWeight& weight : recipes_.weights) {
      if (weight.names.empty()) return refuse_engine("a weight has no name.");
      for (const std::string& name : weight.names) {
        if (name.empty() || !names.insert(name).second)
          return refuse_engine("the weight '" + name + "' has no name of its own.");
      }
      const std::string what = "weight '" + weight.names.front() + "'";
      if (!dense_bytes_of(weight.type()).has_value()) return refuse_engine(what + " has impossible sizes.");
      if (weight.kept >= 0) {
        TRY_VOID(check_elements(what, weight.type(), weight.kept));
      } else {
        types_.push_back(weight.type());
      }
    }
    return {};
  }

  Result<void> check_node(RecipeNode& node) {
    const OpDef& op = *node.part.op;
    std::map<std::string, DimRange, std::less<>> symbols;
    node.part.attributes.collect_symbols(symbols);
    if (op.reference == nullptr || op.region_count != 0 || !symbols.empty())
      return refuse_engine("operator " + op.name + " cannot stand in a recipe.");
    FoldCandidate candidate{&op, {}, {}};
    std::vector<OperandInfo> infos;
    std::vector<std::vector<Dim>> contents(node.part.operands.size());
    for (std::size_t i = 0; i < node.part.operands.size(); ++i) {
      const int operand = node.part.operands[i];
      const Type* type = nullptr;
      if (operand != Part::absent) {
        if (operand < 0 || static_cast<std::size_t>(operand) >= node.inputs.size() ||
            node.inputs[static_cast<std::size_t>(operand)] < 0 ||
            static_cast<std::size_t>(node.inputs[static_cast<std::size_t>(operand)]) >= types_.size())
          return refuse_engine("operator " + op.name + " of a recipe has an operand that is not there before it.");
        const int value = node.inputs[static_cast<std::size_t>(operand)];
        type = &types_[static_cast<std::size_t>(value)];
        contents[i] = contents_of(value);
      }
      infos.push_back({type, contents[i].empty() ? nullptr : &contents[i]});
      candidate.inputs.push_back(type);
    }
    std::vector<DimCheck> open;
    auto inferred = infer_types(op, node.part.attributes, infos, open);
    if (!inferred.ok()) return refuse_engine("a recipe: " + inferred.error().message);
    const auto is_static = [](const Type& type) { return dense_bytes_of(type).has_value(); };
    if (!open.empty() || inferred->empty() || !std::all_of(inferred->begin(), inferred->end(), is_static))
      return refuse_engine("the sizes in a recipe, of operator " + op.name + ", are not known.");
    for (const Type& type : *inferred) candidate.outputs.push_back(&type);
    if (!budget_.takes(candidate))
      return refuse_engine("operator " + op.name + " of a recipe gives much more than it takes.");
    budget_.spend(candidate);
    node.results = std::move(inferred).value();
    types_.insert(types_.end(), node.results.begin(), node.results.end());
    return {};
  }

  // Small tables of integers may decide sizes.
  std::vector<Dim> contents_of(int value) const {
    const std::size_t table = static_cast<std::size_t>(value) - recipes_.weights.size();
    if (static_cast<std::size_t>(value) < recipes_.weights.size() || table >= recipes_.tables.size()) return {};
    const RecipeTable& from = recipes_.tables[table];
    const auto count = from.type().shape.element_count().constant();
    if (is_float(from.dtype) || !count.has_value() || *count > max_contents) return {};
    std::vector<Dim> out;
    const std::byte* data = engine_.constants[static_cast<std::size_t>(from.constant)].bytes->data();
    for (std::int64_t i = 0; i < *count; ++i)
      out.emplace_back(load_integer(data + i * static_cast<std::int64_t>(size_bytes(from.dtype)), from.dtype));
    return out;
  }

  Result<void> check_values() {
    for (const EngineValue& value : engine_.values) {
      if (value.recipe < 0) continue;
      if (value.storage != Storage::constant || static_cast<std::size_t>(value.recipe) >= types_.size() ||
          !(types_[static_cast<std::size_t>(value.recipe)] == value.type))
        return refuse_engine("value '" + value.name + "' does not follow from its recipe.");
    }
    return {};
  }

  Engine& engine_;
  Recipes& recipes_;
  std::vector<Type> types_;  // of the values so far
  FoldBudget budget_;
};

}  // namespace

Result<void> check_recipes(Engine& engine) { return RecipeChecker(engine).check(); }

}  // namespace polyphase

// emit: Draft → Engine: values numbered anew, constants kept raw or packed, equal bytes once.
#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <unordered_map>

#include "engine/file_header.h"
#include "lower/draft.h"
#include "lower/lower.h"

namespace polyphase {
namespace {

class Emitter {
 public:
  Emitter(const Draft& draft, const std::atomic<bool>* cancelled, Engine& engine)
      : draft_(draft),
        cancelled_(cancelled),
        engine_(engine),
        numbers_(draft.values.size(), -1),
        index_(draft.recipes) {
    engine.recipes = draft.recipes;
  }

  Result<void> emit() {
    for (const EnginePort& port : draft_.inputs) TRY_VOID(add_port(port, engine_.inputs));
    engine_.blocks.resize(draft_.blocks.size());
    for (std::size_t block = 0; block < draft_.blocks.size(); ++block) {
      for (const int input : draft_.blocks[block].inputs) {
        TRY(const int value, number(input));
        engine_.blocks[block].inputs.push_back(value);
      }
      for (const int id : draft_.blocks[block].steps) TRY_VOID(add_step(draft_.step(id), block));
      for (const int output : draft_.blocks[block].outputs) {
        TRY(const int value, number(output));
        engine_.blocks[block].outputs.push_back(value);
      }
    }
    for (const EnginePort& port : draft_.outputs) TRY_VOID(add_port(port, engine_.outputs));
    return keep_leaves();
  }

 private:
  Result<void> add_port(const EnginePort& port, std::vector<EnginePort>& ports) {
    TRY(const int value, number(port.value));
    ports.push_back({port.name, value});
    return {};
  }

  // The engine's number of a value; its root comes before it.
  Result<int> number(int id) {
    if (id < 0) return -1;
    if (numbers_[static_cast<std::size_t>(id)] >= 0) return numbers_[static_cast<std::size_t>(id)];
    const DraftValue& from = draft_.value(id);
    EngineValue value{
        .name = from.name, .type = from.type, .layout = from.layout, .storage = from.storage, .alias = {}};
    value.recipe = from.recipe;
    if (from.parent >= 0) {
      const auto place = draft_.placement(id);
      CHECK(place.has_value());
      TRY(const int root, number(draft_.root_of(id)));
      value.storage = Storage::alias;
      value.alias = {root, place->offset, place->strides};
    }
    engine_.values.push_back(std::move(value));
    return numbers_[static_cast<std::size_t>(id)] = static_cast<int>(engine_.values.size()) - 1;
  }

  // The elements of a constant are wanted as they are.
  Result<void> keep_raw(int id) {
    const int root = draft_.root_of(id);
    TRY(const int value, number(root));
    EngineValue& own = engine_.values[static_cast<std::size_t>(value)];
    if (own.storage != Storage::constant || own.constant >= 0) return {};
    const DraftValue& from = draft_.value(root);
    if (from.recipe >= 0) meet({from.recipe});
    const std::string source = from.recipe < 0 ? "" : std::to_string(from.recipe) + " " + from.layout.text();
    TRY(own.constant, keep(from.name, from.constant, source));
    return {};
  }

  // The elements of a dense tensor as they lie; `source` as of add_constant.
  Result<int> keep(const std::string& name, const Tensor& tensor, const std::string& source) {
    const std::size_t bytes = static_cast<std::size_t>(tensor.view().element_count()) * size_bytes(tensor.dtype());
    // Weights are views of the model's file, which aligns nothing.
    const bool aligned = reinterpret_cast<std::uintptr_t>(tensor.view().data) % 64 == 0;
    std::shared_ptr<Buffer> buffer;
    if (aligned) {
      buffer = Buffer::borrow(tensor.buffer(), tensor.view().data, bytes);
    } else {
      TRY(buffer, Buffer::allocate(bytes));
      if (bytes != 0) std::memcpy(buffer->data(), tensor.view().data, bytes);
    }
    return add_constant({name, std::move(buffer), {}}, source);
  }

  // Equal bytes of equal format are kept once. Not so where they follow from weights and would soon differ: there
  // `source` says what they are, and the same sources are kept once; empty: no weight has a say in them.
  int add_constant(EngineConstant constant, const std::string& source) {
    if (!source.empty()) {
      const auto [known, fresh] = by_source_.emplace(source, static_cast<int>(engine_.constants.size()));
      if (fresh) engine_.constants.push_back(std::move(constant));
      return known->second;
    }
    const std::string_view bytes(reinterpret_cast<const char*>(constant.bytes->data()), constant.bytes->size_bytes());
    const std::size_t hash = std::hash<std::string_view>()(bytes) ^ std::hash<std::string>()(constant.format);
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto known = first; known != last; ++known) {
      const EngineConstant& other = engine_.constants[static_cast<std::size_t>(known->second)];
      if (other.format == constant.format && other.bytes->size_bytes() == bytes.size() &&
          std::memcmp(other.bytes->data(), bytes.data(), bytes.size()) == 0) {
        return known->second;
      }
    }
    engine_.constants.push_back(std::move(constant));
    const int index = static_cast<int>(engine_.constants.size()) - 1;
    by_hash_.emplace(hash, index);
    return index;
  }

  Result<void> add_step(const DraftStep& from, std::size_t block) {
    Step step;
    step.kind = from.kind;
    step.name = from.name;
    step.parts = from.parts;
    step.anchor = from.anchor;
    step.symbols = from.symbols;
    step.blocks = from.blocks;
    for (const int input : from.inputs) {
      TRY(const int value, number(input));
      step.inputs.push_back(value);
    }
    for (const int output : from.outputs) {
      TRY(const int value, number(output));
      step.outputs.push_back(value);
    }
    for (const RowAnswer& answer : from.rows) step.rows.emplace_back(answer.row->name);
    std::vector<int> packed;
    if (from.settled()) TRY_VOID(pack(from, step, packed));
    for (std::size_t i = 0; i < from.inputs.size(); ++i) {
      const bool in_pack = std::find(packed.begin(), packed.end(), static_cast<int>(i)) != packed.end();
      if (from.inputs[i] >= 0 && !in_pack) TRY_VOID(keep_raw(from.inputs[i]));
    }
    engine_.blocks[block].steps.push_back(std::move(step));
    return {};
  }

  // `packed` becomes the operands whose elements nobody needs raw.
  Result<void> pack(const DraftStep& from, Step& step, std::vector<int>& packed) {
    const Packing& packing = from.rows.front().row->packing;
    if (packing.format.empty()) return {};
    const auto asked = describe(draft_, from);
    const std::vector<int> operands = packing.inputs(asked->desc);
    std::vector<TensorView> views;
    for (const int operand : operands) {
      const OperandDesc& input = asked->desc.inputs[static_cast<std::size_t>(operand)];
      if (input.present && input.value == nullptr) step.pack_at_run = true;
      views.push_back(input.present && input.value != nullptr ? *input.value : TensorView());
    }
    if (step.pack_at_run || draft_.target.portable) return {};
    if (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed)) {
      return Error{ErrorCode::cancelled, "the compilation was cancelled.", "Compile again to have the engine."};
    }
    const std::size_t size = packing.size_bytes(asked->desc, draft_.target);
    TRY(auto bytes, Buffer::allocate(size));
    packing.pack(asked->desc, draft_.target, views, bytes->data());
    const std::string source = source_of(from, packing.format, *asked, operands);
    step.packed = add_constant({from.name, std::move(bytes), std::string(packing.format)}, source);
    packed = operands;
    if (source.empty()) return {};
    // To pack again takes all that goes into the pack.
    std::vector<int> together;
    for (const int operand : operands) {
      if (!asked->desc.inputs[static_cast<std::size_t>(operand)].present) continue;
      const int value = from.inputs[static_cast<std::size_t>(operand)];
      const int recipe = draft_.value(draft_.root_of(value)).recipe;
      if (recipe >= 0) {
        together.push_back(recipe);
      } else {
        TRY_VOID(keep_raw(value));
      }
    }
    meet(together);
    return {};
  }

  // What decides the bytes of a pack that depends on weights; empty: none does.
  std::string source_of(const DraftStep& step, std::string_view format, const Asked& asked,
                        const std::vector<int>& operands) const {
    const Part& anchor = asked.desc.anchor_part();
    std::string out = std::string(format) + " " + step.rows.front().row->name.data() + " " + anchor.op->name + " " +
                      print_attributes(anchor.attributes, &anchor.op->attributes);
    bool depends = false;
    for (const int operand : operands) {
      const OperandDesc& desc = asked.desc.inputs[static_cast<std::size_t>(operand)];
      out += " | ";
      if (!desc.present) continue;
      const int value = step.inputs[static_cast<std::size_t>(operand)];
      const int root = draft_.root_of(value);
      const int recipe = draft_.value(root).recipe;
      depends = depends || recipe >= 0;
      out += recipe >= 0 ? "recipe " + std::to_string(recipe) : "value " + std::to_string(root);
      out += " " + desc.type.text() + " " + desc.layout.text() + " " + draft_.value(root).layout.text();
      const auto place = draft_.placement(value);
      out += " at " + place->offset.text();
      for (const Dim& stride : place->strides) out += "," + stride.text();
    }
    return depends ? out : std::string();
  }

  // Weights that are needed for one and the same constant: where there are several, one may be given anew without the
  // others, so their elements are kept.
  void meet(const std::vector<int>& recipes) {
    std::set<int> weights;
    for (const int recipe : recipes) {
      const std::vector<int> more = index_.weights_of(recipe);
      weights.insert(more.begin(), more.end());
    }
    if (weights.size() > 1) kept_.insert(weights.begin(), weights.end());
  }

  Result<void> keep_leaves() {
    Recipes& recipes = engine_.recipes;
    for (std::size_t i = 0; i < recipes.leaf_count(); ++i) {
      const bool is_weight = i < recipes.weights.size();
      const Tensor& given = draft_.leaves[i];
      const std::string source = std::to_string(i) + " " + Layout::row_major(given.view().rank).text();
      if (is_weight && recipes.weights[i].state == EngineWeight::State::unused &&
          !recipes.weights[i].fixed_because.empty()) {
        recipes.weights[i].state = EngineWeight::State::fixed;
        TRY(const Tensor elements, in_layout(given, Layout::row_major(given.view().rank)));
        recipes.weights[i].checksum =
            checksum_of({elements.view().data,
                         static_cast<std::size_t>(elements.view().element_count()) * size_bytes(given.dtype())});
        continue;
      }
      // Where a step reads it as it is, it is there already.
      if (is_weight && kept_.count(static_cast<int>(i)) == 0 && by_source_.count(source) == 0) continue;
      TRY(const Tensor elements, in_layout(given, Layout::row_major(given.view().rank)));
      if (is_weight) {
        TRY(recipes.weights[i].kept, keep(recipes.weights[i].names.front(), elements, source));
      } else {
        TRY(recipes.tables[i - recipes.weights.size()].constant, keep("table of recipes", elements, ""));
      }
    }
    return {};
  }

  const Draft& draft_;
  const std::atomic<bool>* cancelled_;
  Engine& engine_;
  std::vector<int> numbers_;
  std::unordered_multimap<std::size_t, int> by_hash_;
  std::unordered_map<std::string, int> by_source_;
  const RecipeIndex index_;
  std::set<int> kept_;  // weights whose elements are
};

}  // namespace

Result<Engine> lower(const Graph& graph, const Target& target, const LowerOptions& options) {
  CHECK(target.catalogue != nullptr);
  TRY(Draft draft, make_draft(graph, target, options));
  TRY_VOID(settle(draft));
  TRY_VOID(place(draft));
  Engine engine;
  engine.model_name = options.model_name;
  engine.producer = options.producer;
  engine.cluster = target.portable ? "portable" : std::string(name_of(target.cluster));
  engine.symbols = draft.symbols;
  TRY_VOID(Emitter(draft, options.cancelled, engine).emit());
  engine.checks = std::move(draft.checks);
  engine.remarks = std::move(draft.remarks);
  return engine;
}

}  // namespace polyphase

// emit: Draft → Engine: values numbered anew, constants kept raw or packed.
#include <algorithm>
#include <functional>
#include <set>

#include "engine/file_header.h"
#include "kernel/catalogue.h"
#include "lower/constants.h"
#include "lower/draft.h"
#include "lower/lower.h"

namespace polyphase {
namespace {

class Emitter {
 public:
  Emitter(Draft& draft, const LowerOptions& options, Engine& engine)
      : draft_(draft),
        graph_is_read_(options.graph_is_read),
        constants_({&draft.target, options.cancelled, options.threads, options.file}),
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
    TRY_VOID(keep_leaves());
    return make_constants();
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
    own.constant = constants_.add_elements(from.name, from.constant, source);
    return {};
  }

  Result<void> add_step(const DraftStep& from, std::size_t block) {
    Step step;
    step.kind = from.kind;
    step.name = from.name;
    step.parts = from.parts;
    step.anchor = from.anchor;
    step.symbols = from.symbols;
    step.blocks = from.blocks;
    step.measured = from.settled() && from.rows.front().measured;
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

  Pack pack_of(const DraftStep& step) const {
    Pack out{.packing = &step.rows.front().row->packing, .asked = describe(draft_, step)};
    out.operands = out.packing->inputs(out.asked->desc);
    for (const int operand : out.operands) {
      const OperandDesc& input = out.asked->desc.inputs[static_cast<std::size_t>(operand)];
      out.at_run = out.at_run || (input.present && input.value == nullptr);
      out.views.push_back(input.present && input.value != nullptr ? *input.value : TensorView());
      if (!input.present || input.value == nullptr) continue;
      const int value = step.inputs[static_cast<std::size_t>(operand)];
      out.sources.push_back(draft_.value(draft_.root_of(value)).constant.buffer());
    }
    if (!out.at_run) find_key(step, out);
    return out;
  }

  // `packed` becomes the operands whose elements nobody needs raw.
  Result<void> pack(const DraftStep& from, Step& step, std::vector<int>& packed) {
    if (from.rows.front().row->packing.format.empty()) return {};
    const auto pack = std::make_shared<const Pack>(pack_of(from));
    step.pack_at_run = pack->at_run;
    if (pack->at_run || draft_.target.portable) return {};
    step.packed = constants_.add_pack(from.name, pack);
    packed = pack->operands;
    if (!pack->depends) return {};
    // To pack again takes all that goes into the pack.
    std::vector<int> together;
    for (const int operand : packed) {
      if (!pack->asked->desc.inputs[static_cast<std::size_t>(operand)].present) continue;
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

  void find_key(const DraftStep& step, Pack& pack) const {
    const StepDesc& desc = pack.asked->desc;
    const Part& anchor = desc.anchor_part();
    pack.key = std::string(pack.packing->format) + " " + step.rows.front().row->name.data() + " " + anchor.op->name +
               " " + print_attributes(anchor.attributes, &anchor.op->attributes);
    for (const int operand : pack.operands) {
      const OperandDesc& input = desc.inputs[static_cast<std::size_t>(operand)];
      pack.key += " | ";
      if (!input.present) continue;
      const int value = step.inputs[static_cast<std::size_t>(operand)];
      const int root = draft_.root_of(value);
      const int recipe = draft_.value(root).recipe;
      pack.depends = pack.depends || recipe >= 0;
      pack.key += recipe >= 0 ? "recipe " + std::to_string(recipe) : "value " + std::to_string(root);
      pack.key += " " + input.type.text() + " " + input.layout.text() + " " + draft_.value(root).layout.text();
      const auto place = draft_.placement(value);
      pack.key += " at " + place->offset.text();
      for (const Dim& stride : place->strides) pack.key += "," + stride.text();
    }
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
      if (is_weight && kept_.count(static_cast<int>(i)) == 0 && !constants_.has_source(source)) continue;
      TRY(const Tensor elements, in_layout(given, Layout::row_major(given.view().rank)));
      if (is_weight) {
        recipes.weights[i].kept = constants_.add_elements(recipes.weights[i].names.front(), elements, source);
      } else {
        recipes.tables[i - recipes.weights.size()].constant = constants_.add_elements("table of recipes", elements, "");
      }
    }
    return {};
  }

  // So far they are named by numbers. From here on packs alone hold what they are made of.
  Result<void> make_constants() {
    for (DraftValue& value : draft_.values) value.constant = {};
    if (graph_is_read_) graph_is_read_();
    TRY(const std::vector<int> index, constants_.make(engine_));
    const auto name = [&](int& number) {
      if (number >= 0) number = index[static_cast<std::size_t>(number)];
    };
    for (EngineValue& value : engine_.values) name(value.constant);
    for (Block& block : engine_.blocks) {
      for (Step& step : block.steps) name(step.packed);
    }
    for (EngineWeight& weight : engine_.recipes.weights) name(weight.kept);
    for (RecipeTable& table : engine_.recipes.tables) name(table.constant);
    return {};
  }

  Draft& draft_;
  const std::function<void()>& graph_is_read_;
  Constants constants_;
  Engine& engine_;
  std::vector<int> numbers_;
  const RecipeIndex index_;
  std::set<int> kept_;  // weights whose elements are
};

// What the engine computes with larger errors than FP32 has, which is for people to know, and the cluster that it needs
// for bf16: without such steps every cluster from avx512 on runs the same kernels.
void note_precision(const Target& target, Engine& engine) {
  std::int64_t narrow = 0;
  std::int64_t loose = 0;
  std::int64_t convolutions = 0;
  std::int64_t all = 0;
  bool has_products = false;
  for (const Block& block : engine.blocks) {
    for (const Step& step : block.steps) {
      if (step.kind != StepKind::kernel || step.rows.empty()) continue;
      const std::string& op = step.parts[step.anchor].op->name;
      const bool is_product = op == "matmul";
      if (op != "conv" && op != "conv_transpose" && !is_product) continue;
      const Row* row = target.catalogue->find(op, step.rows.front());
      has_products = has_products || is_product;
      ++all;
      if (!is_product) ++convolutions;
      if (row != nullptr && row->narrow_products) ++narrow;
      if (row != nullptr && row->exactness == Exactness::loose) ++loose;
    }
  }
  if (loose > 0) {
    engine.remarks.push_back(std::to_string(loose) + " of " + std::to_string(convolutions) +
                             " convolutions are filtered four outputs at once, with some three times the error of "
                             "direct sums; precision fp32 keeps them from it.");
  }
  if (narrow == 0) {
    if (!target.portable) engine.cluster = name_of(fp32_cluster(target.cluster));
    return;
  }
  engine.remarks.push_back(std::to_string(narrow) + " of " + std::to_string(all) + " convolutions" +
                           (has_products ? " and matrix products" : "") + " multiply in bf16" +
                           (target.precision == Precision::automatic ? "; precision fp32 keeps them from it."
                                                                     : ", as the model stores its tensors."));
}

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
  engine.cuts = find_cuts(graph);
  TRY_VOID(Emitter(draft, options, engine).emit());
  engine.checks = std::move(draft.checks);
  engine.remarks = std::move(draft.remarks);
  note_precision(target, engine);
  return engine;
}

}  // namespace polyphase

// emit: Draft → Engine: values numbered anew, constants kept raw or packed, equal bytes once.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/tasks.h"
#include "engine/file_header.h"
#include "kernel/catalogue.h"
#include "lower/draft.h"
#include "lower/lower.h"

namespace polyphase {
namespace {

class Emitter {
 public:
  Emitter(const Draft& draft, const LowerOptions& options, Engine& engine)
      : draft_(draft),
        cancelled_(options.cancelled),
        threads_(options.threads),
        engine_(engine),
        numbers_(draft.values.size(), -1),
        index_(draft.recipes) {
    engine.recipes = draft.recipes;
  }

  Result<void> emit() {
    TRY_VOID(make_packs());
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
    const std::string_view bytes = bytes_of(constant);
    const std::size_t sample = sample_of(bytes) ^ std::hash<std::string>()(constant.format);
    const auto [first, last] = by_sample_.equal_range(sample);
    for (auto known = first; known != last; ++known) {
      const EngineConstant& other = engine_.constants[static_cast<std::size_t>(known->second)];
      if (other.format == constant.format && hash_of(*other.bytes) == hash_of(*constant.bytes) &&
          bytes_of(other) == bytes)
        return known->second;
    }
    engine_.constants.push_back(std::move(constant));
    const int index = static_cast<int>(engine_.constants.size()) - 1;
    by_sample_.emplace(sample, index);
    return index;
  }

  static std::string_view bytes_of(const EngineConstant& constant) {
    return {reinterpret_cast<const char*>(constant.bytes->data()), constant.bytes->size_bytes()};
  }

  // Tells most constants apart without reading them whole.
  static std::size_t sample_of(std::string_view bytes) {
    constexpr std::size_t pieces = 64;
    constexpr std::size_t piece = 64;
    if (bytes.size() <= pieces * piece) return std::hash<std::string_view>()(bytes);
    std::string some = std::to_string(bytes.size());
    for (std::size_t i = 0; i < pieces; ++i) some += bytes.substr((bytes.size() - piece) / (pieces - 1) * i, piece);
    return std::hash<std::string>()(some);
  }

  // Of those whose samples are equal.
  std::size_t hash_of(const Buffer& bytes) {
    const auto [known, fresh] = hashes_.emplace(bytes.data(), 0);
    if (fresh)
      known->second = std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size_bytes()});
    return known->second;
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

  // What a step packs: which operands, how, and from what.
  struct Pack {
    const Packing* packing = nullptr;
    std::unique_ptr<Asked> asked = nullptr;
    std::vector<int> operands = {};
    std::vector<TensorView> views = {};
    bool at_run = false;   // some are computed
    std::string key = {};  // what decides the bytes
    bool depends = false;  // on weights
  };

  Pack pack_of(const DraftStep& step) const {
    Pack out{.packing = &step.rows.front().row->packing, .asked = describe(draft_, step)};
    out.operands = out.packing->inputs(out.asked->desc);
    for (const int operand : out.operands) {
      const OperandDesc& input = out.asked->desc.inputs[static_cast<std::size_t>(operand)];
      out.at_run = out.at_run || (input.present && input.value == nullptr);
      out.views.push_back(input.present && input.value != nullptr ? *input.value : TensorView());
    }
    if (!out.at_run) find_key(step, out);
    return out;
  }

  bool packs_now(const DraftStep& step) const {
    return !draft_.target.portable && step.settled() && !step.rows.front().row->packing.format.empty();
  }

  // All at once, on several threads; each only once.
  Result<void> make_packs() {
    std::vector<std::shared_ptr<const Pack>> packs;
    std::vector<std::size_t> sizes;
    for (const DraftBlock& block : draft_.blocks) {
      for (const int id : block.steps) {
        if (!packs_now(draft_.step(id))) continue;
        auto pack = std::make_shared<const Pack>(pack_of(draft_.step(id)));
        if (pack->at_run || !packs_.emplace(pack->key, nullptr).second) continue;
        sizes.push_back(pack->packing->size_bytes(pack->asked->desc, draft_.target));
        packs.push_back(std::move(pack));
      }
    }
    TRY(const auto buffers, buffers_of(sizes));
    std::vector<Task> tasks;
    for (std::size_t i = 0; i < packs.size(); ++i) {
      packs_.at(packs[i]->key) = buffers[i];
      tasks.push_back(task_of(std::move(packs[i]), *buffers[i]));
    }
    const std::size_t size = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    return run_tasks(std::move(tasks), shares_of_pack(size) == 1 ? 1 : threads_);
  }

  // Large ones are blocks of their own; the others share one, since pages of a large block cost little.
  static Result<std::vector<std::shared_ptr<Buffer>>> buffers_of(const std::vector<std::size_t>& sizes) {
    constexpr std::size_t large = std::size_t{4} << 20;
    const auto rounded = [](std::size_t size) { return (size + 63) / 64 * 64; };
    std::size_t together = 0;
    for (const std::size_t size : sizes) together += size < large ? rounded(size) : 0;
    TRY(const auto shared, Buffer::allocate_raw(together));
    std::vector<std::shared_ptr<Buffer>> out;
    std::byte* next = shared->data();
    for (const std::size_t size : sizes) {
      if (size >= large) {
        TRY(auto own, Buffer::allocate_raw(size));
        out.push_back(std::move(own));
      } else {
        out.push_back(Buffer::borrow(shared, next, size));
        next += rounded(size);
      }
    }
    return out;
  }

  Task task_of(std::shared_ptr<const Pack> pack, const Buffer& to) const {
    return {
        [this, shares = shares_of_pack(to.size_bytes())]() -> Result<std::int64_t> {
          if (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed)) {
            return Error{ErrorCode::cancelled, "the compilation was cancelled.", "Compile again to have the engine."};
          }
          return shares;
        },
        [this, pack = std::move(pack), to = to.data()](std::int64_t share, std::int64_t count) {
          pack->packing->pack(pack->asked->desc, draft_.target, pack->views, {share, count}, to);
        }};
  }

  // `packed` becomes the operands whose elements nobody needs raw.
  Result<void> pack(const DraftStep& from, Step& step, std::vector<int>& packed) {
    if (from.rows.front().row->packing.format.empty()) return {};
    const Pack pack = pack_of(from);
    step.pack_at_run = pack.at_run;
    if (pack.at_run || draft_.target.portable) return {};
    step.packed = add_constant({from.name, packs_.at(pack.key), std::string(pack.packing->format)},
                               pack.depends ? pack.key : std::string());
    packed = pack.operands;
    if (!pack.depends) return {};
    // To pack again takes all that goes into the pack.
    std::vector<int> together;
    for (const int operand : packed) {
      if (!pack.asked->desc.inputs[static_cast<std::size_t>(operand)].present) continue;
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
  int threads_;
  std::unordered_map<std::string, std::shared_ptr<Buffer>> packs_;  // by Pack::key
  Engine& engine_;
  std::vector<int> numbers_;
  std::unordered_multimap<std::size_t, int> by_sample_;
  std::unordered_map<const std::byte*, std::size_t> hashes_;  // by where the bytes are
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
  TRY_VOID(Emitter(draft, options, engine).emit());
  engine.checks = std::move(draft.checks);
  engine.remarks = std::move(draft.remarks);
  engine.cuts = find_cuts(graph);
  return engine;
}

}  // namespace polyphase

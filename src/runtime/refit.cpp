// Which constants follow from the weights that are given, and those constants anew.
#include "runtime/refit.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/tasks.h"
#include "engine/check_parts.h"
#include "engine/file_header.h"
#include "runtime/arena.h"
#include "runtime/program.h"

namespace polyphase {
namespace {

// ---------------------------------------------------------------- what is given

Error not_refittable() {
  return {ErrorCode::invalid_argument,
          "this engine cannot take other weights: it does not keep how its constants follow from them.",
          "Compile the model again as refittable (CompileOptions::refittable, polyphase compile --refittable)."};
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 12;
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) out += (i == 0 ? "'" : ", '") + names[i] + "'";
  if (names.size() > most) out += " and " + std::to_string(names.size() - most) + " more";
  return out;
}

std::string text_of(const TensorDesc& desc) {
  const std::vector<std::int64_t> sizes(desc.size_span().begin(), desc.size_span().end());
  return Type{desc.dtype, Shape::from_sizes(sizes)}.text();
}

std::size_t bytes_of(const TensorDesc& desc) {
  return static_cast<std::size_t>(desc.element_count()) * size_bytes(desc.dtype);
}

// The caller's memory, which nobody keeps beyond the call; a copy where its elements are not aligned.
Result<Tensor> borrowed(const TensorView& view) {
  const std::size_t element = size_bytes(view.dtype);
  if (reinterpret_cast<std::uintptr_t>(view.data) % element == 0)
    return Tensor(Buffer::borrow(nullptr, view.data, 0), view);
  TRY(Tensor copy, Tensor::allocate(TensorDesc::row_major(view.dtype, view.size_span())));
  std::byte* to = copy.view().data;
  for_each_index<1>(view.size_span(), {view.strides.data()}, [&](const std::array<std::int64_t, 1>& at) {
    std::memcpy(to, view.data + at[0] * static_cast<std::int64_t>(element), element);
    to += element;
  });
  return copy;
}

class Given {
 public:
  std::vector<Tensor> tensors;  // by weight; invalid: not given

  explicit Given(const Recipes& recipes) : tensors(recipes.weights.size()), recipes_(recipes) {
    for (std::size_t i = 0; i < recipes.weights.size(); ++i) {
      for (const std::string& name : recipes.weights[i].names) known_.emplace(name, i);
    }
  }

  Result<void> take(std::span<const NewWeight> weights) {
    std::vector<std::string> strangers;
    std::set<std::string_view> seen;
    for (const NewWeight& weight : weights) {
      if (!seen.insert(weight.name).second)
        return Error{ErrorCode::invalid_argument, "weight '" + weight.name + "' is given twice.", "Give it once."};
      const auto found = known_.find(weight.name);
      if (found == known_.end()) {
        strangers.push_back(weight.name);
      } else {
        TRY_VOID(take_one(weight, found->second));
      }
    }
    if (strangers.empty()) return {};
    std::vector<std::string> names;
    for (const EngineWeight& weight : recipes_.weights)
      names.insert(names.end(), weight.names.begin(), weight.names.end());
    return Error{ErrorCode::invalid_argument, "the engine's network has no weight " + listed(strangers) + ".",
                 names.empty()
                     ? "It has no weights at all."
                     : "Leave them out, or compile the network that has them. The weights are " + listed(names) + "."};
  }

  bool is_used(std::string_view name) const {
    return recipes_.weights[known_.at(name)].state == EngineWeight::State::used;
  }

 private:
  Result<void> take_one(const NewWeight& given, std::size_t at) {
    const EngineWeight& weight = recipes_.weights[at];
    const std::vector<std::int64_t> sizes(given.view.size_span().begin(), given.view.size_span().end());
    if (given.view.dtype != weight.dtype || sizes != weight.sizes) {
      return Error{given.view.dtype != weight.dtype ? ErrorCode::invalid_argument : ErrorCode::shape_mismatch,
                   "weight '" + given.name + "' is " + text_of(given.view) + "; the engine was compiled with " +
                       weight.type().text() + ".",
                   given.view.dtype != weight.dtype ? "Convert it to that dtype."
                                                    : "Give weights of the same network, or compile this one."};
    }
    if (weight.state == EngineWeight::State::fixed) return take_fixed(given, weight);
    Tensor& tensor = tensors[at];
    if (!tensor.valid()) {
      TRY(tensor, borrowed(given.view));
      return {};
    }
    TRY(const Tensor same, borrowed(given.view));
    if (equal_elements(tensor.view(), same.view())) return {};
    return Error{ErrorCode::invalid_argument,
                 "the weights " + listed(weight.names) + " are one tensor in the model, but differ here.",
                 "Give one of them, or the same elements for all."};
  }

  static Result<void> take_fixed(const NewWeight& given, const EngineWeight& weight) {
    TRY(const Tensor elements, borrowed(given.view));
    TRY(const Tensor dense, in_layout(elements, Layout::row_major(given.view.rank)));
    if (checksum_of({dense.view().data, bytes_of(dense.view())}) == weight.checksum) return {};
    return Error{ErrorCode::invalid_argument,
                 "weight '" + given.name + "' cannot change without a compilation: " + weight.fixed_because + ".",
                 "Leave it as it is, or compile the model again."};
  }

  const Recipes& recipes_;
  std::map<std::string_view, std::size_t> known_;
};

// ---------------------------------------------------------------- what follows

// One constant of the engine to be made anew.
struct Task {
  int constant = -1;
  int value = -1;                     // whose elements it is, or
  const ProgramStep* step = nullptr;  // whose pack
};

class Refitter {
 public:
  Refitter(const Engine& engine, const Program& program, std::vector<Tensor> given)
      : engine_(engine), program_(program), index_(engine.recipes), leaves_(std::move(given)) {}

  Result<std::shared_ptr<const Engine>> refit(int threads, SpareMemory* spare) {
    std::vector<bool> given;
    for (const Tensor& tensor : leaves_) given.push_back(tensor.valid());
    changed_ = index_.dependents(given);
    hold_leaves();
    find_tasks();
    made_.resize(tasks_.size());
    if (spare != nullptr) TRY_VOID(lay_out(*spare));
    TRY_VOID(run(threads));
    auto out = std::make_shared<Engine>(engine_);
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      out->constants[static_cast<std::size_t>(tasks_[i].constant)].bytes = made_[i];
    for (std::size_t i = 0; i < given.size(); ++i) {
      const int kept = engine_.recipes.weights[i].kept;
      if (!given[i] || kept < 0 || done_.count(kept) != 0) continue;
      const TensorDesc desc = dense(leaves_[i], Layout());
      TRY(auto bytes, Buffer::allocate_raw(bytes_of(desc)));
      copy_elements(leaves_[i].view(), TensorView(desc, bytes->data()));
      out->constants[static_cast<std::size_t>(kept)].bytes = std::move(bytes);
    }
    return std::shared_ptr<const Engine>(std::move(out));
  }

 private:
  bool is_changed(int value) const {
    const int recipe = engine_.values[static_cast<std::size_t>(value)].recipe;
    return recipe >= 0 && changed_[static_cast<std::size_t>(recipe)];
  }
  int root_of(int value) const { return program_.values[static_cast<std::size_t>(value)].root; }

  Tensor held(const Type& type, int constant) const {
    if (constant < 0) return {};
    const std::shared_ptr<Buffer>& bytes = engine_.constants[static_cast<std::size_t>(constant)].bytes;
    return {bytes, TensorView(TensorDesc::row_major(type.dtype, *type.shape.evaluate({})), bytes->data())};
  }

  // Weights that were not given, and tables.
  void hold_leaves() {
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      const EngineWeight& weight = engine_.recipes.weights[i];
      if (!leaves_[i].valid()) leaves_[i] = held(weight.type(), weight.kept);
    }
    for (const RecipeTable& table : engine_.recipes.tables) leaves_.push_back(held(table.type(), table.constant));
  }

  void find_tasks() {
    for (std::size_t i = 0; i < engine_.values.size(); ++i) {
      const EngineValue& value = engine_.values[i];
      if (value.constant >= 0 && is_changed(static_cast<int>(i)) && done_.insert(value.constant).second)
        tasks_.push_back({value.constant, static_cast<int>(i), nullptr});
    }
    for (const ProgramStep& step : program_.steps) {
      const int packed = step.step->packed;
      if (packed < 0 || step.packed == nullptr) continue;
      const bool any = std::any_of(step.packed_operands.begin(), step.packed_operands.end(), [&](int operand) {
        const int value = step.step->inputs[static_cast<std::size_t>(operand)];
        return value >= 0 && is_changed(root_of(value));
      });
      if (any && done_.insert(packed).second) tasks_.push_back({packed, -1, &step});
    }
    // The largest first: the threads end together, and memory that is handed on is never too small.
    std::stable_sort(tasks_.begin(), tasks_.end(), [this](const Task& a, const Task& b) {
      return constant_before(a).size_bytes() > constant_before(b).size_bytes();
    });
  }

  const Buffer& constant_before(const Task& task) const {
    return *engine_.constants[static_cast<std::size_t>(task.constant)].bytes;
  }

  // Room for all that is made, in one block: small constants lie on huge pages too.
  Result<void> lay_out(SpareMemory& spare) {
    std::size_t size = 0;
    std::vector<std::size_t> offsets;
    for (const Task& task : tasks_) {
      offsets.push_back(size);
      size += (constant_before(task).size_bytes() + 63) / 64 * 64;
    }
    TRY(const std::shared_ptr<std::byte> block, spare.take(size));
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      made_[i] = Buffer::borrow(block, block.get() + offsets[i], constant_before(tasks_[i]).size_bytes());
    return {};
  }

  Result<void> make_room(std::size_t at, std::size_t size_bytes) {
    if (made_[at] != nullptr && made_[at]->size_bytes() == size_bytes) return {};
    TRY(made_[at], Buffer::allocate_raw(size_bytes));
    return {};
  }

  Result<void> run(int threads) {
    std::vector<polyphase::Task> work;
    for (std::size_t i = 0; i < tasks_.size(); ++i) work.push_back(tasks_[i].step == nullptr ? copy(i) : pack(i));
    std::size_t size = 0;
    for (const Task& task : tasks_) size += constant_before(task).size_bytes();
    return run_tasks(std::move(work), shares_of_pack(size) == 1 ? 1 : threads);
  }

  polyphase::Task copy(std::size_t at) {
    return {[this, at]() -> Result<std::int64_t> {
      const Task& task = tasks_[at];
      TRY(const Tensor tensor, compute(task.value));
      const TensorDesc desc = dense(tensor, engine_.values[static_cast<std::size_t>(task.value)].layout);
      TRY_VOID(make_room(at, bytes_of(desc)));
      copy_elements(tensor.view(), TensorView(desc, made_[at]->data()));
      return 0;
    }};
  }

  polyphase::Task pack(std::size_t at) {
    struct Operands {
      std::vector<Tensor> roots;  // keep what the views look at
      std::vector<TensorView> views;
    };
    const ProgramStep& step = *tasks_[at].step;
    const Packing& packing = step.rows.front()->packing;
    auto operands = std::make_shared<Operands>();
    return {[this, at, &step, &packing, operands]() -> Result<std::int64_t> {
              for (const int operand : step.packed_operands) {
                operands->views.emplace_back();
                if (!step.desc.inputs[static_cast<std::size_t>(operand)].present) continue;
                TRY(operands->views.back(),
                    packed_view(step.step->inputs[static_cast<std::size_t>(operand)], operands->roots));
              }
              const std::size_t size = packing.size_bytes(step.desc, program_.target);
              TRY_VOID(make_room(at, size));
              return shares_of_pack(size);
            },
            [this, at, &step, &packing, operands](std::int64_t share, std::int64_t count) {
              packing.pack(step.desc, program_.target, operands->views, {share, count}, made_[at]->data());
            }};
  }

  // What a constant's elements are, from its recipe, in any strides.
  Result<Tensor> compute(int value) const {
    const EngineValue& of = engine_.values[static_cast<std::size_t>(value)];
    for (const int weight : index_.weights_of(of.recipe)) {
      if (!leaves_[static_cast<std::size_t>(weight)].valid())
        return refuse_engine("the elements of weight '" +
                             engine_.recipes.weights[static_cast<std::size_t>(weight)].names.front() +
                             "' are not held, and '" + of.name + "' follows from them and others.");
    }
    return evaluate_recipe(index_, leaves_, of.recipe, [this](DType dtype, std::span<const std::int64_t> sizes) {
      return passing_->take(dtype, sizes, "a weight");
    });
  }

  // An operand of a pack; `roots` keeps what it looks at.
  Result<TensorView> packed_view(int value, std::vector<Tensor>& roots) const {
    const ProgramValue& place = program_.values[static_cast<std::size_t>(value)];
    const EngineValue& of = engine_.values[static_cast<std::size_t>(value)];
    const EngineValue& root = engine_.values[static_cast<std::size_t>(place.root)];
    if (root.recipe < 0) {
      if (place.constant.data == nullptr)
        return refuse_engine("the elements of '" + of.name + "', which are packed with others, are not held.");
      return place.constant;
    }
    TRY(const Tensor computed, compute(place.root));
    TRY(Tensor tensor, in_layout(computed, root.layout));
    TensorDesc desc = TensorDesc::row_major(of.type.dtype, place.constant.size_span());
    std::int64_t offset = 0;
    if (of.storage == Storage::alias) {
      const auto strides = Shape(of.alias.strides).evaluate({});
      offset = of.alias.offset.evaluate({}).value_or(-1);
      if (!strides.has_value() || of.type.dtype != tensor.dtype())
        return refuse_engine("the view '" + of.name + "' of a weight depends on sizes.");
      const auto sizes = of.type.shape.evaluate({});
      if (!sizes.has_value()) return refuse_engine("the view '" + of.name + "' of a weight depends on sizes.");
      desc = TensorDesc::row_major(of.type.dtype, *sizes);
      std::copy(strides->begin(), strides->end(), desc.strides.begin());
      TRY_VOID(check_window(desc, offset, tensor.view().element_count(), of.name));
    } else {
      const TensorDesc& whole = tensor.view();
      desc = whole;
    }
    TensorView view(desc, tensor.view().data + offset * static_cast<std::int64_t>(size_bytes(desc.dtype)));
    roots.push_back(std::move(tensor));
    return view;
  }

  // The elements dense in the layout (unset: row-major).
  static TensorDesc dense(const Tensor& from, const Layout& layout) {
    return {from.dtype(), from.sizes(), layout.is_set() ? layout : Layout::row_major(from.view().rank)};
  }

  const Engine& engine_;
  const Program& program_;
  const RecipeIndex index_;
  std::vector<Tensor> leaves_;  // weights, then tables
  std::vector<bool> changed_;   // by value of the recipes
  std::vector<Task> tasks_;
  std::set<int> done_;  // constants that tasks make
  // What one task has used up serves the next: new pages cost more than what is computed into them.
  const std::shared_ptr<ResultPool> passing_ = std::make_shared<ResultPool>();
  std::vector<std::shared_ptr<Buffer>> made_;
};

}  // namespace

Result<RefitOutcome> refit(const std::shared_ptr<const Engine>& engine, const Target& target,
                           std::span<const NewWeight> weights, int threads, SpareMemory* spare) {
  const Recipes& recipes = engine->recipes;
  if (!recipes.refittable) return not_refittable();
  Given given(recipes);
  TRY_VOID(given.take(weights));
  RefitOutcome out;
  bool any = false;
  for (const NewWeight& weight : weights) {
    const bool used = given.is_used(weight.name);
    (used ? out.exchanged : out.without_effect).push_back(weight.name);
    any = any || used;
  }
  for (std::size_t i = 0; i < recipes.weights.size(); ++i) {
    const bool is_used = recipes.weights[i].state == EngineWeight::State::used;
    if (is_used && !given.tensors[i].valid()) out.left_out.push_back(recipes.weights[i].names.front());
  }
  out.engine = engine;
  if (!any) return out;
  TRY(const auto program, make_program(engine, target));
  // Constants share a block's life: only where all of them are made anew is none kept for a few.
  SpareMemory* const from = out.left_out.empty() ? spare : nullptr;
  TRY(out.engine, Refitter(*engine, *program, std::move(given.tensors)).refit(threads, from));
  return out;
}

}  // namespace polyphase

// Sizes born at run time, branches, loops.
#include <algorithm>

#include "base/shape_binding.h"
#include "runtime/context.h"
#include "runtime/program_parts.h"

namespace polyphase {

Result<void> Context::bind_size(const Dim& symbol, std::int64_t size, DimBindings& sizes) const {
  const auto& ranges = session_.program().ranges;
  const auto range = ranges.find(symbol.symbol_name());
  const Dim ranged = Dim::symbol(symbol.symbol_name(), range == ranges.end() ? DimRange{} : range->second);
  return bind_shape(Shape{ranged}, std::array{size}, "the size read from data", sizes);
}

Result<void> Context::give(int level, const DimBindings& sizes) {
  std::vector<std::int64_t> values;
  for (const std::string& name : session_.program().tree[static_cast<std::size_t>(level)].symbols) {
    const auto found = sizes.find(name);
    if (found == sizes.end()) return damaged_engine("nothing gives the size " + name);
    values.push_back(found->second);
  }
  TRY(auto plan, session_.plan(level, plans_, std::move(values)));
  return enter(std::move(plan));
}

Result<void> Context::run_bind(const ProgramStep& step) {
  const TensorView from = view_of(step.step->inputs.at(0));
  const auto count = static_cast<std::int64_t>(step.step->symbols.size());
  std::vector<std::int64_t> elements;
  for_each_index<1>(from.size_span(), {from.strides.data()}, [&](const std::array<std::int64_t, 1>& at) {
    elements.push_back(load_integer(from.data + at[0] * static_cast<std::int64_t>(size_bytes(from.dtype)), from.dtype));
  });
  if (static_cast<std::int64_t>(elements.size()) != count) {
    return Error{
        ErrorCode::shape_mismatch,
        std::to_string(count) + " sizes are read from data that holds " + std::to_string(elements.size()) + " numbers.",
        "Feed data of the size that the model expects."}
        .at_node(step.desc.name);
  }
  DimBindings bindings = plans_[static_cast<std::size_t>(step.scope)]->bindings;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    auto bound = bind_size(Dim::symbol(step.step->symbols[i]), elements[i], bindings);
    if (!bound.ok()) return std::move(bound).error().at_node(step.desc.name);
  }
  if (!step.step->outputs.empty()) {
    const TensorView to = view_of(step.step->outputs[0]);
    std::size_t next = 0;
    for_each_index<1>(to.size_span(), {to.strides.data()}, [&](const std::array<std::int64_t, 1>& at) {
      store_integer(to.data + at[0] * static_cast<std::int64_t>(size_bytes(to.dtype)), to.dtype, elements[next++]);
    });
  }
  return give(step.gives, bindings);
}

namespace {

// Between a block and what is around it. That they fit was only likely until their sizes were numbers.
Result<void> move_elements(const TensorView& from, const TensorView& to, const ProgramStep& step) {
  const auto a = from.size_span();
  const auto b = to.size_span();
  if (from.dtype != to.dtype || !std::equal(a.begin(), a.end(), b.begin(), b.end())) {
    return Error{ErrorCode::shape_mismatch,
                 "a graph of this node gives " + Shape::from_sizes({a.begin(), a.end()}).text() + " where " +
                     Shape::from_sizes({b.begin(), b.end()}).text() + " is expected.",
                 "Give inputs for which both sides have one size."}
        .at_node(step.desc.name);
  }
  if (!from.empty() && from.data != to.data) copy_elements(from, to);
  return {};
}

// Where axis `axis`, counted over all results, lies: result and axis of it.
std::pair<std::size_t, std::size_t> place_of_axis(const std::vector<std::vector<std::int64_t>>& results,
                                                  std::int64_t axis) {
  auto left = static_cast<std::size_t>(axis);
  std::size_t result = 0;
  while (result < results.size() && left >= results[result].size()) left -= results[result++].size();
  return {result, left};
}

// The sizes that the attributes `born` and `born_at` name.
Result<DimBindings> born_sizes(const ProgramStep& step, const std::vector<std::vector<std::int64_t>>& results,
                               DimBindings bindings) {
  const auto& names = step.desc.attributes().get<std::vector<Dim>>("born");
  const auto& axes = step.desc.attributes().get<std::vector<std::int64_t>>("born_at");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [result, axis] = place_of_axis(results, axes.at(i));
    if (result >= results.size()) return damaged_engine("step '" + step.desc.name + "' names an axis too many");
    bindings[names[i].symbol_name()] = results[result][axis];
  }
  return bindings;
}

std::vector<std::int64_t> sizes_of(const TensorView& view) {
  return {view.size_span().begin(), view.size_span().end()};
}

}  // namespace

Result<void> Context::run_branch(const ProgramStep& step) {
  const TensorView condition = view_of(step.step->inputs.at(0));
  if (condition.element_count() != 1) return damaged_engine("a condition is no single element");
  const bool taken = load_integer(condition.data, condition.dtype) != 0;
  const int block = step.step->blocks.at(taken ? 0 : 1);
  TRY_VOID(run_block(static_cast<std::size_t>(block)));
  const std::vector<int>& given = session_.program().engine->blocks[static_cast<std::size_t>(block)].outputs;
  if (step.gives >= 0) {
    std::vector<std::vector<std::int64_t>> sizes;
    for (const int value : given) sizes.push_back(sizes_of(view_of(value)));
    TRY(const DimBindings born, born_sizes(step, sizes, plans_[static_cast<std::size_t>(step.scope)]->bindings));
    auto opened = give(step.gives, born);
    if (!opened.ok()) return std::move(opened).error().at_node(step.desc.name);
  }
  const auto& values = session_.program().values;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const int to = step.step->outputs.at(i);
    if (values[static_cast<std::size_t>(given[i])].root == values[static_cast<std::size_t>(to)].root) continue;
    TRY_VOID(move_elements(view_of(given[i]), view_of(to), step));
  }
  return {};
}

// One run of a loop. A carried value whose sizes stay lives in the node's result; one whose sizes change is staged
// between trips, and so are rows whose number nobody knows: in memory that grows, up to the session's limit.
class LoopRun {
 public:
  LoopRun(Context& context, const ProgramStep& step)
      : context_(context),
        step_(step),
        program_(context.session_.program()),
        block_(program_.engine->blocks[static_cast<std::size_t>(step.step->blocks.at(0))]),
        carried_(block_.inputs.size() - 2),
        stages_(carried_),
        rows_(block_.outputs.size() - 1 - carried_) {}

  Result<void> run() {
    TRY_VOID(begin());
    std::int64_t trip = 0;
    for (; trip < limit_ && again_; ++trip) {
      TRY_VOID(context_.stopped());
      TRY_VOID(enter_trip(trip));
      TRY_VOID(context_.run_block(static_cast<std::size_t>(step_.step->blocks[0])));
      TRY_VOID(leave_trip(trip));
    }
    return finish(trip);
  }

 private:
  // Elements beside each other, row-major.
  struct Stage {
    std::vector<std::int64_t> sizes;
    std::shared_ptr<std::byte> bytes;
    std::size_t capacity = 0;
    std::size_t used = 0;
  };

  // The value of operand i; -1: absent.
  int input(std::size_t i) const {
    const std::vector<int>& operands = step_.desc.anchor_part().operands;
    return i < operands.size() && operands[i] >= 0 ? step_.step->inputs[static_cast<std::size_t>(operands[i])] : -1;
  }
  int result(std::size_t i) const { return step_.step->outputs.at(i); }
  int root(int value) const { return program_.values[static_cast<std::size_t>(value)].root; }
  bool is_direct(std::size_t i) const { return root(block_.inputs[i + 2]) == root(result(i)); }
  bool is_sized_before(int value) const {
    return program_.sees(step_.scope, program_.values[static_cast<std::size_t>(value)].level);
  }
  const DimBindings& outer() const { return context_.plans_[static_cast<std::size_t>(step_.scope)]->bindings; }

  Result<std::int64_t> scalar(int value) const {
    const TensorView view = context_.view_of(value);
    if (view.element_count() != 1) return damaged_engine("a loop's scalar is no single element");
    return load_integer(view.data, view.dtype);
  }
  void set_scalar(int value, std::int64_t to) const {
    const TensorView view = context_.view_of(value);
    if (view.element_count() == 1) store_integer(view.data, view.dtype, to);
  }

  Result<void> reserve(Stage& stage, std::size_t bytes) {
    if (bytes <= stage.capacity) return {};
    const std::size_t wanted = std::max(bytes, stage.capacity * 2);
    staged_ += wanted - stage.capacity;
    if (staged_ > context_.memory_limit_bytes()) {
      return Error{ErrorCode::out_of_memory,
                   "what the loop gathers over its trips needs " + std::to_string(staged_) + " bytes; the limit is " +
                       std::to_string(context_.memory_limit_bytes()) + ".",
                   "Make the loop end earlier, or raise the session's memory limit."}
          .at_node(step_.desc.name);
    }
    TRY(auto grown, allocate_bytes(wanted, "what the loop gathers over its trips"));
    if (stage.used != 0) std::copy(stage.bytes.get(), stage.bytes.get() + stage.used, grown.get());
    stage.bytes = std::move(grown);
    stage.capacity = wanted;
    return {};
  }

  // The view's elements behind what the stage holds.
  Result<void> append(Stage& stage, const TensorView& view) {
    const std::size_t bytes = static_cast<std::size_t>(view.element_count()) * size_bytes(view.dtype);
    TRY_VOID(reserve(stage, stage.used + bytes));
    if (bytes != 0) {
      copy_elements(view,
                    TensorView(TensorDesc::row_major(view.dtype, view.size_span()), stage.bytes.get() + stage.used));
    }
    stage.used += bytes;
    return {};
  }
  Result<void> replace(Stage& stage, const TensorView& view) {
    stage.used = 0;
    stage.sizes = sizes_of(view);
    return append(stage, view);
  }
  static TensorView view_of(const Stage& stage, DType dtype) {
    return {TensorDesc::row_major(dtype, stage.sizes), stage.bytes.get()};
  }

  Result<void> begin() {
    if (input(0) >= 0) {
      TRY(limit_, scalar(input(0)));
    }
    if (input(1) >= 0) {
      TRY(const std::int64_t first, scalar(input(1)));
      again_ = first != 0;
    }
    for (std::size_t i = 0; i < carried_; ++i) {
      const TensorView first = context_.view_of(input(i + 2));
      TRY_VOID(is_direct(i) ? move_elements(first, context_.view_of(result(i)), step_) : replace(stages_[i], first));
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const int to = result(carried_ + i);
      if (!is_sized_before(to)) continue;
      const TensorView all = context_.view_of(to);
      if (again_ && input(1) < 0 && all.rank > 0 && all.sizes[0] == std::max<std::int64_t>(limit_, 0)) continue;
      return damaged_engine("loop '" + step_.desc.name + "' stacks another number of rows than it has trips");
    }
    return {};
  }

  Result<void> enter_trip(std::int64_t trip) {
    if (step_.enters >= 0) {
      DimBindings sizes = outer();
      for (std::size_t i = 0; i < carried_; ++i) {
        if (is_direct(i)) continue;
        const EngineValue& inside = program_.engine->values[static_cast<std::size_t>(block_.inputs[i + 2])];
        auto bound = bind_shape(inside.type.shape, stages_[i].sizes, "carried value '" + inside.name + "'", sizes);
        if (!bound.ok()) return std::move(bound).error().at_node(step_.desc.name);
      }
      auto opened = context_.give(step_.enters, sizes);
      if (!opened.ok()) return std::move(opened).error().at_node(step_.desc.name);
    }
    set_scalar(block_.inputs[0], trip);
    set_scalar(block_.inputs[1], 1);
    for (std::size_t i = 0; i < carried_; ++i) {
      if (is_direct(i)) continue;
      const TensorView inside = context_.view_of(block_.inputs[i + 2]);
      TRY_VOID(move_elements(view_of(stages_[i], inside.dtype), inside, step_));
    }
    return {};
  }

  Result<void> leave_trip(std::int64_t trip) {
    if (input(1) >= 0) {
      TRY(const std::int64_t condition, scalar(block_.outputs[0]));
      again_ = condition != 0;
    }
    for (std::size_t i = 0; i < rows_.size(); ++i)
      TRY_VOID(stack(i, context_.view_of(block_.outputs[1 + carried_ + i]), trip));
    for (std::size_t i = 0; i < carried_; ++i) {
      const TensorView next = context_.view_of(block_.outputs[i + 1]);
      TRY_VOID(is_direct(i) ? move_elements(next, context_.view_of(result(i)), step_) : replace(stages_[i], next));
    }
    return {};
  }

  Result<void> stack(std::size_t i, const TensorView& row, std::int64_t trip) {
    const int to = result(carried_ + i);
    if (is_sized_before(to)) return move_elements(row, row_of(context_.view_of(to), trip), step_);
    if (trip == 0) rows_[i].sizes = sizes_of(row);
    if (rows_[i].sizes != sizes_of(row)) {
      return Error{ErrorCode::shape_mismatch,
                   "the rows that a loop stacks differ in size: trip 0 gave " +
                       Shape::from_sizes(rows_[i].sizes).text() + ", trip " + std::to_string(trip) + " " +
                       Shape::from_sizes(sizes_of(row)).text() + ".",
                   "Make every trip give a result of one size (Pad)."}
          .at_node(step_.desc.name);
    }
    return append(rows_[i], row);
  }

  // Entry `trip` of the first axis; `trip` lies inside it.
  static TensorView row_of(const TensorView& all, std::int64_t trip) {
    TensorDesc desc = TensorDesc::row_major(all.dtype, all.size_span().subspan(1));
    for (std::size_t axis = 1; axis < static_cast<std::size_t>(all.rank); ++axis)
      desc.strides[axis - 1] = all.strides[axis];
    return {desc, all.empty() ? all.data
                              : all.data + trip * all.strides[0] * static_cast<std::int64_t>(size_bytes(all.dtype))};
  }

  Result<void> finish(std::int64_t trips) {
    std::vector<std::vector<std::int64_t>> sizes;
    for (std::size_t i = 0; i < carried_; ++i)
      sizes.push_back(is_direct(i) ? sizes_of(context_.view_of(result(i))) : stages_[i].sizes);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (trips == 0 && !is_sized_before(result(carried_ + i))) size_without_rows(i);
      sizes.push_back(rows_[i].sizes);
      sizes.back().insert(sizes.back().begin(), trips);
    }
    if (step_.gives >= 0) {
      TRY(const DimBindings born, born_sizes(step_, sizes, outer()));
      auto opened = context_.give(step_.gives, born);
      if (!opened.ok()) return std::move(opened).error().at_node(step_.desc.name);
    }
    for (std::size_t i = 0; i < carried_; ++i) {
      if (is_direct(i)) continue;
      const TensorView to = context_.view_of(result(i));
      TRY_VOID(move_elements(view_of(stages_[i], to.dtype), to, step_));
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (is_sized_before(result(carried_ + i))) continue;
      const TensorView to = context_.view_of(result(carried_ + i));
      Stage all = rows_[i];
      all.sizes.insert(all.sizes.begin(), trips);
      TRY_VOID(move_elements(view_of(all, to.dtype), to, step_));
    }
    return {};
  }

  // Sizes that only a trip would tell are 0.
  void size_without_rows(std::size_t i) {
    const EngineValue& row = program_.engine->values[static_cast<std::size_t>(block_.outputs[1 + carried_ + i])];
    rows_[i].sizes.clear();
    for (const Dim& dim : row.type.shape) rows_[i].sizes.push_back(dim.evaluate(outer()).value_or(0));
  }

  Context& context_;
  const ProgramStep& step_;
  const Program& program_;
  const Block& block_;
  std::size_t carried_;
  std::vector<Stage> stages_;  // by carried value; of those whose sizes change
  std::vector<Stage> rows_;    // by stacked result; of those whose number of rows is not known before
  std::size_t staged_ = 0;     // bytes of all stages
  std::int64_t limit_ = INT64_MAX;
  bool again_ = true;
};

Result<void> Context::run_loop(const ProgramStep& step) { return LoopRun(*this, step).run(); }

}  // namespace polyphase

// Sizes in, plan out; contexts lent and taken back.
#include "runtime/session.h"

#include <algorithm>

#include "base/shape_binding.h"
#include "runtime/context.h"

namespace polyphase {

Session::Session(std::shared_ptr<const Program> program, Options options)
    : program_(std::move(program)),
      options_(options),
      cache_(options.cached_plans),
      pool_(std::max(1, options.threads)) {}

Session::~Session() { free_.clear(); }

Result<std::vector<std::int64_t>> Session::bind_inputs(
    const std::vector<std::vector<std::int64_t>>& input_sizes) const {
  const Engine& engine = *program_->engine;
  if (input_sizes.size() != engine.inputs.size()) {
    return Error{ErrorCode::invalid_argument,
                 "the model takes " + std::to_string(engine.inputs.size()) + " inputs, found " +
                     std::to_string(input_sizes.size()) + ".",
                 "Give every input of the engine."};
  }
  DimBindings bindings;
  const auto shape_of = [&](std::size_t i) -> const Shape& {
    return engine.values[static_cast<std::size_t>(engine.inputs[i].value)].type.shape;
  };
  for (std::size_t i = 0; i < input_sizes.size(); ++i) {
    TRY_VOID(bind_shape(shape_of(i), input_sizes[i], Subject("input", engine.inputs[i].name), bindings));
  }
  for (std::size_t i = 0; i < input_sizes.size(); ++i) solve_shape(shape_of(i), input_sizes[i], bindings);
  for (std::size_t i = 0; i < input_sizes.size(); ++i) {
    TRY_VOID(check_shape(shape_of(i), input_sizes[i], Subject("input", engine.inputs[i].name), bindings));
  }
  std::vector<std::int64_t> sizes;
  for (const std::string& symbol : program_->tree.front().symbols) sizes.push_back(bindings.find(symbol)->second);
  return sizes;
}

Result<std::shared_ptr<const LevelPlan>> Session::plan(int level, const LevelPlans& lower,
                                                       std::vector<std::int64_t> sizes) {
  if (auto known = cache_.find(level, sizes)) {
    plan_hits_.fetch_add(1);
    return known;
  }
  plans_.fetch_add(1);
  TRY(auto made,
      plan_level(*program_, level, lower, std::move(sizes), {options_.memory_limit_bytes, options_.show_parts}));
  cache_.add(made);
  return made;
}

Result<std::shared_ptr<const LevelPlan>> Session::plan_for(const std::vector<std::vector<std::int64_t>>& input_sizes) {
  TRY(auto sizes, bind_inputs(input_sizes));
  return plan(0, {}, std::move(sizes));
}

Result<DimBindings> Session::bindings_for(const std::vector<std::vector<std::int64_t>>& input_sizes) const {
  TRY(const auto sizes, bind_inputs(input_sizes));
  const auto& symbols = program_->tree.front().symbols;
  DimBindings bindings;
  for (std::size_t i = 0; i < sizes.size(); ++i) bindings.emplace(symbols[i], sizes[i]);
  TRY_VOID(test_checks(*program_, 0, bindings));
  return bindings;
}

std::unique_ptr<Context> Session::borrow() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      auto context = std::move(free_.back());
      free_.pop_back();
      return context;
    }
  }
  return std::make_unique<Context>(*this);
}

void Session::give_back(std::unique_ptr<Context> context) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(context));
}

Result<std::vector<Tensor>> Session::run(const RunRequest& request) {
  const Engine& engine = *program_->engine;
  std::vector<std::vector<std::int64_t>> sizes;
  for (const TensorView& input : request.inputs) sizes.emplace_back(input.size_span().begin(), input.size_span().end());
  TRY(auto symbols, bind_inputs(sizes));
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const DType expected = engine.values[static_cast<std::size_t>(engine.inputs[i].value)].type.dtype;
    if (request.inputs[i].dtype == expected) continue;
    return Error{ErrorCode::invalid_argument,
                 "input '" + engine.inputs[i].name + "' is " + std::string(name_of(request.inputs[i].dtype)) +
                     "; expected " + std::string(name_of(expected)) + ".",
                 "Give a tensor of that dtype."};
  }
  if (!request.outputs.empty() && request.outputs.size() != engine.outputs.size()) {
    return Error{ErrorCode::invalid_argument,
                 "the model gives " + std::to_string(engine.outputs.size()) + " outputs, found memory for " +
                     std::to_string(request.outputs.size()) + ".",
                 "Give memory for every output, or for none."};
  }
  TRY(auto level, plan(0, {}, std::move(symbols)));
  auto context = borrow();
  auto outputs = context->run(request, std::move(level));
  give_back(std::move(context));
  return outputs;
}

}  // namespace polyphase

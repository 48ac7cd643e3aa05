// What is computed early, by the sizes of its operands and results.
#include "ops/fold_budget.h"

#include <algorithm>

namespace polyphase {
namespace {

constexpr std::int64_t free_bytes = 1 << 20;       // results up to this size are always taken
constexpr double most_operations = 4e9;            // for one graph
constexpr std::int64_t most_growth = 256LL << 20;  // bytes by which one graph may grow
constexpr std::int64_t most_bytes = INT64_MAX / 64;

double count_of(const Type* type) {
  return type == nullptr ? 0.0 : static_cast<double>(type->shape.element_count().constant().value_or(0));
}

std::int64_t bytes_of(const Type* type) {
  if (type == nullptr) return 0;
  return std::min(most_bytes, type->shape.element_count().constant().value_or(most_bytes)) *
         static_cast<std::int64_t>(size_bytes(type->dtype));
}

double operations_of(const FoldCandidate& candidate) {
  double all = 0;
  for (const Type* output : candidate.outputs) all += count_of(output);
  for (const Type* input : candidate.inputs) all += count_of(input);
  const auto input = [&](std::size_t i) { return i < candidate.inputs.size() ? candidate.inputs[i] : nullptr; };
  const std::string& op = candidate.op->name;
  if (op == "conv" || op == "conv_transpose") {
    const Type* weight = input(1);
    const Type* driver = op == "conv" ? candidate.outputs.front() : input(0);
    if (weight == nullptr || driver == nullptr || weight->shape.rank() == 0) return most_operations;
    return all + count_of(driver) * count_of(weight) /
                     std::max(1.0, static_cast<double>(weight->shape[0].constant().value_or(1)));
  }
  if (op == "matmul") {
    if (input(0) == nullptr) return most_operations;
    const Shape& shape = input(0)->shape;
    return all + count_of(candidate.outputs.front()) *
                     static_cast<double>(shape.rank() == 0 ? 1 : shape[shape.rank() - 1].constant().value_or(1));
  }
  return all;
}

struct Bytes {
  std::int64_t operands = 0;
  std::int64_t results = 0;
  std::int64_t growth() const { return results - operands; }
};

Bytes bytes_of(const FoldCandidate& candidate) {
  const auto add = [](std::int64_t sum, const Type* type) { return std::min(INT64_MAX / 4, sum + bytes_of(type)); };
  Bytes out;
  for (const Type* input : candidate.inputs) out.operands = add(out.operands, input);
  for (const Type* output : candidate.outputs) out.results = add(out.results, output);
  return out;
}

}  // namespace

bool FoldBudget::takes(const FoldCandidate& candidate) const {
  const Bytes bytes = bytes_of(candidate);
  // Weights of 8 bits become floats: computed at every run they would cost more than the convolution that reads them.
  const std::int64_t most_growths = candidate.op->name == "cast" ? 3 : 1;
  const bool grows_much = bytes.results > free_bytes && bytes.growth() > most_growths * bytes.operands;
  return !grows_much && operations_ + operations_of(candidate) <= most_operations &&
         growth_ + bytes.growth() <= most_growth;
}

void FoldBudget::spend(const FoldCandidate& candidate) {
  operations_ += operations_of(candidate);
  growth_ += bytes_of(candidate).growth();
}

}  // namespace polyphase

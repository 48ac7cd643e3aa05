// Runs the references on cases whose results other systems computed (tests/ops/data/*.cases, made by
// tests/ops/data/make_cases.py).
//
// A line is   operator | attributes | operands | results   in the text form of attributes, tensors included, for
// example
//   matmul | | a=f32[1, 2]{1, 2} b=f32[2, 1]{3, 4} | y=f32[1, 1]{11}
// A `tolerance` among the results allows that error relative to the largest magnitude of the result; without it every
// value is exact.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ops/registry.h"
#include "ops/truth.h"

namespace polyphase::test {
namespace {

// The operands in order; those of a variadic one are named x, x1, x2, …
std::vector<Tensor> operands_of(const OpDef& op, const Attributes& named) {
  std::vector<Tensor> out;
  for (const OperandSpec& spec : op.inputs)
    out.push_back(named.has(spec.name) ? named.get<Tensor>(spec.name) : Tensor());
  for (int i = 1; !op.inputs.empty() && named.has(op.inputs.back().name + std::to_string(i)); ++i) {
    out.push_back(named.get<Tensor>(op.inputs.back().name + std::to_string(i)));
  }
  return out;
}

// The same elements lying with the axes in reverse order, two apart: what a reference computes must not depend on
// strides.
Tensor spread(const Tensor& tensor) {
  if (!tensor.valid()) return tensor;
  TensorDesc desc = static_cast<const TensorDesc&>(tensor.view());
  std::int64_t step = 2;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(desc.rank); ++axis) {
    desc.strides[axis] = step;
    step *= std::max<std::int64_t>(desc.sizes[axis], 1);
  }
  Tensor out = Tensor::allocate(desc).value();
  copy_elements(tensor.view(), out.view());
  return out;
}

void run_spread(const OpDef& op, const Attributes& attributes, const std::vector<Tensor>& inputs,
                const std::vector<Tensor>& expected) {
  std::vector<Tensor> spread_inputs;
  std::vector<TensorView> views;
  for (const Tensor& input : inputs) spread_inputs.push_back(spread(input));
  for (const Tensor& input : spread_inputs) views.push_back(input.valid() ? input.view() : TensorView());
  std::vector<Tensor> results;
  std::vector<TensorView> result_views;
  for (const Tensor& result : expected)
    results.push_back(spread(Tensor::allocate(result.dtype(), result.sizes()).value()));
  for (const Tensor& result : results) result_views.push_back(result.view());
  const auto done = op.reference({attributes, views, result_views});
  ASSERT_TRUE(done.ok()) << done.error().text();
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_TRUE(equal_elements(results[i].view(), expected[i].view()))
        << "differs when operands and results have other strides";
  }
}

void run_case(const Registry& registry, const std::string& line) {
  const std::vector<std::string> fields = fields_of(line);
  ASSERT_EQ(fields.size(), 4U);
  const std::string name = fields[0].substr(0, fields[0].find(' '));
  const OpDef* op = registry.find(name);
  ASSERT_NE(op, nullptr) << name;
  auto given = parse_attributes(fields[1], op->attributes);
  ASSERT_TRUE(given.ok()) << given.error().text();
  auto attributes = op->complete(*given);
  ASSERT_TRUE(attributes.ok()) << attributes.error().text();
  const auto operands = parse_attributes(fields[2], tensor_specs(op->inputs));
  ASSERT_TRUE(operands.ok()) << operands.error().text();
  const auto results = parse_attributes(fields[3], tensor_specs(op->outputs));
  ASSERT_TRUE(results.ok()) << results.error().text();
  const std::vector<Tensor> inputs = operands_of(*op, *operands);
  const auto found = evaluate_reference(*op, *attributes, inputs);
  ASSERT_TRUE(found.ok()) << found.error().text();
  run_spread(*op, *attributes, inputs, *found);
  const double tolerance = results->has("tolerance") ? results->get<double>("tolerance") : 0;
  for (std::size_t i = 0; i < op->outputs.size(); ++i) {
    const Tensor& expected = results->get<Tensor>(op->outputs[i].name);
    ASSERT_EQ((*found)[i].type().text(), expected.type().text());
    EXPECT_LE(difference((*found)[i], expected), tolerance) << print_attribute((*found)[i]).substr(0, 400);
  }
}

TEST(OutsideTruth, EveryCaseOfEveryFile) {
  const Registry registry = Registry::built_in();
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(POLYPHASE_SOURCE_DIR "/tests/ops/data")) {
    if (entry.path().extension() != ".cases") continue;
    std::ifstream file(entry.path());
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      if (line.empty() || line[0] == '#') continue;
      SCOPED_TRACE(entry.path().filename().string() + ":" + std::to_string(number) + ": " + line.substr(0, 200));
      run_case(registry, line);
      ++cases;
    }
  }
  EXPECT_GE(cases, 1200);
}

}  // namespace
}  // namespace polyphase::test

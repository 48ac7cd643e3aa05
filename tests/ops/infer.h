// Runs shape rules and references from one line of text, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ops/registry.h"

namespace polyphase::test {

inline const Registry& registry() {
  static const Registry built_in = Registry::built_in();
  return built_in;
}

// "H*2" with H, W, N, C, K as symbols of the default range.
inline Type type_of(DType dtype, const std::vector<std::string>& dims) {
  Type out{dtype, {}};
  for (const std::string& dim : dims) out.shape.push_back(parse_dim(dim).value());
  return out;
}
inline Type f32(const std::vector<std::string>& dims) { return type_of(DType::f32, dims); }

struct Inferred {
  std::string result;                // "f32[…]" of every result, joined by ", ", or the error's whole text
  std::vector<std::string> demands;  // the run-time checks: "left relation right"
};

inline Inferred infer(const std::string& op_name, const std::string& attribute_text,
                      const std::vector<Type>& operands) {
  const OpDef& op = registry().at(op_name);
  auto parsed = parse_attributes(attribute_text, op.attributes);
  if (!parsed.ok()) return {parsed.error().message, {}};
  auto complete = op.complete(*parsed);
  if (!complete.ok()) return {complete.error().message, {}};
  std::vector<OperandInfo> infos;
  for (const Type& operand : operands) infos.push_back({&operand, nullptr});
  std::vector<DimCheck> checks;
  const auto types = infer_types(op, *complete, infos, checks);
  if (!types.ok()) return {types.error().message, {}};
  Inferred out;
  for (const Type& type : *types) out.result += (out.result.empty() ? "" : ", ") + type.text();
  for (const DimCheck& check : checks) {
    out.demands.push_back(check.left.text() + " " + std::string(name_of(check.relation)) + " " + check.right.text());
  }
  return out;
}

// The first result as text, or the error.
inline std::string evaluate(const std::string& op_name, const std::string& attribute_text,
                            const std::vector<Tensor>& operands) {
  const OpDef& op = registry().at(op_name);
  auto parsed = parse_attributes(attribute_text, op.attributes);
  if (!parsed.ok()) return parsed.error().message;
  auto complete = op.complete(*parsed);
  if (!complete.ok()) return complete.error().message;
  const auto results = evaluate_reference(op, *complete, operands);
  return results.ok() ? print_attribute(results->front()) : results.error().message;
}

inline Tensor tensor(DType dtype, const std::vector<std::int64_t>& sizes, const std::vector<double>& values) {
  return Tensor::from_values(dtype, sizes, values);
}
inline Tensor tensor(const std::vector<std::int64_t>& sizes, const std::vector<double>& values) {
  return tensor(DType::f32, sizes, values);
}

}  // namespace polyphase::test

// Lines of outside truth, `operator | attributes | operands | results`, and how results are compared; tests/ops/data
// holds them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ops/op.h"

namespace polyphase::test {

// Names of a variadic operand: x, x1, x2, …
inline std::vector<AttributeSpec> tensor_specs(const std::vector<OperandSpec>& operands) {
  std::vector<AttributeSpec> specs{{"tolerance", AttributeKind::real, ""}};
  for (const OperandSpec& operand : operands) specs.push_back({operand.name, AttributeKind::tensor, ""});
  if (!operands.empty() && operands.back().variadic) {
    for (int i = 1; i < 8; ++i) {
      specs.push_back({operands.back().name + std::to_string(i), AttributeKind::tensor, ""});
    }
  }
  return specs;
}

inline std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields{""};
  for (const char c : line) {
    if (c == '|') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

// The largest difference, relative to the largest magnitude expected; 0 if all values are equal, NaN equal to NaN.
inline double difference(const Tensor& found, const Tensor& expected) {
  double worst = 0;
  double scale = 0;
  const std::int64_t count = expected.view().element_count();
  const std::size_t size = size_bytes(expected.dtype());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * size;
    const double a = load_double(found.view().data + at, found.dtype());
    const double b = load_double(expected.view().data + at, expected.dtype());
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) return INFINITY;
    worst = std::max(worst, std::fabs(a - b));
    scale = std::max(scale, std::fabs(b));
  }
  return worst == 0 ? 0 : worst / std::max(scale, 1e-30);
}

}  // namespace polyphase::test

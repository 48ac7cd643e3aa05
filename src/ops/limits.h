// What engines of others refuse of an operator that is legal here: tables of data, for whoever writes a network for
// such an engine (Network's option `limits`) or hands one over to it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ops/op.h"

namespace polyphase {

// A use of an operator, or "input": its complete attributes and the types of its operands (null: absent), or the
// input's own.
struct LimitedUse {
  std::string_view op;
  const Attributes& attributes;
  std::span<const Type* const> operands;
};

struct TargetLimit {
  std::string_view name;     // "deconvolution-1d"
  std::string_view op;       // of whose uses it is asked; empty: of all
  std::string_view rule;     // what the target demands, in a sentence
  std::string_view rewrite;  // what to write instead, in a sentence
  std::string_view source;   // where the target says so
  // What stands against the rule, for people; empty: nothing.
  std::string (*found)(const LimitedUse&) = nullptr;
};

struct TargetLimits {
  std::string_view target;    // "tensorrt"
  std::string_view title;     // "TensorRT"
  std::string_view versions;  // that the sources are of
  std::span<const TargetLimit> limits;
  // The first limit that the use breaks; null: it is taken. `found` becomes what stands against it.
  const TargetLimit* broken_by(const LimitedUse& use, std::string& found) const;
};

std::span<const TargetLimits> target_limits();
const TargetLimits* find_limits(std::string_view target);  // null: there are none of this name

}  // namespace polyphase

// FixedValues: the elements of values that the model fixes: constants and what small computations make of constants
// alone.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "base/tensor.h"
#include "graph/graph.h"

namespace polyphase {

class FixedValues {
 public:
  // Nothing if the value depends on inputs, or is too large to compute here.
  std::optional<Tensor> of(const Value* value);
  // The weights that were looked at on the way, by name (attribute `weight`).
  const std::set<std::string, std::less<>>& weights() const { return weights_; }

 private:
  std::optional<Tensor> known(const Value* value);
  void evaluate(const Node& node);

  std::unordered_map<const Value*, std::optional<Tensor>> found_;
  std::set<std::string, std::less<>> weights_;
};

}  // namespace polyphase

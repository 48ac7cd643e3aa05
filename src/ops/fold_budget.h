// FoldBudget: how much is computed on constants alone, ahead of every run: asked by fold_constants, by lower for what
// follows from weights that may be exchanged, and by what checks an engine's recipes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/op.h"

namespace polyphase {

// One operator on constants: types that hold no symbols. Null: an absent operand.
struct FoldCandidate {
  const OpDef* op = nullptr;
  std::vector<const Type*> inputs;
  std::vector<const Type*> outputs;
};

// Takes what is worth doing early: results not much larger than what they replace (twice, casts four times), so that a
// filled tensor of a gigabyte stays one node, and arithmetic within a bound, some seconds of reference loops for one
// graph.
class FoldBudget {
 public:
  bool takes(const FoldCandidate& candidate) const;
  void spend(const FoldCandidate& candidate);

 private:
  double operations_ = 0;
  std::int64_t growth_ = 0;
};

}  // namespace polyphase

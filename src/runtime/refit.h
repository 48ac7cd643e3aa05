// refit: an engine with other weights: the constants that follow from them are computed and packed again by the
// engine's own recipes. No model, no graph, no pass.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kernel/target.h"
#include "runtime/spare_memory.h"

namespace polyphase {

struct NewWeight {
  std::string name;
  TensorView view;  // any strides; read only
};

struct RefitOutcome {
  std::shared_ptr<const Engine> engine;  // shares what stays with the one before
  std::vector<std::string> exchanged;
  std::vector<std::string> left_out;        // weights that the network uses and nobody gave: they keep their elements
  std::vector<std::string> without_effect;  // given, but the network does not use them, or not otherwise
};

// `target` is the one that the engine was compiled for. Errors: invalid_argument (not refittable, a name that is not
// there, another dtype, a weight that is fixed), shape_mismatch, corrupt, out_of_memory, and what operators find in
// weights. Nothing has happened then. `spare`, if any, gives the memory where all weights are given, which then is one
// block for all that follows from them.
Result<RefitOutcome> refit(const std::shared_ptr<const Engine>& engine, const Target& target,
                           std::span<const NewWeight> weights, int threads, SpareMemory* spare = nullptr);

}  // namespace polyphase

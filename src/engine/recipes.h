// Recipes: how the constants of a refittable engine follow from the model's weights, so that new weights need no
// compilation. They are a list of operators in which every operand comes before its use:
//
//   value 0 … W-1      the weights                "up.weight"  "bn.weight"  "bn.running_var" …
//   W … W+C-1          fixed tables               epsilon
//   from there on      results of the operators   %9 = add(%7, %8)   %10 = sqrt(%9)   …   %15 = mul(%0, %14)
//
// EngineValue::recipe names one of them for each constant that depends on weights. A constant that steps read as it is
// holds the elements; one that steps read packed is in the packs of those steps, and is computed and packed again.
//
// What is not given anew keeps its present value. So wherever weights meet in one recipe or in one pack, their elements
// are held as well (EngineWeight::kept); of a weight that alone makes up its packs they are not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "ops/op.h"

namespace polyphase {

struct Engine;

struct EngineWeight {
  enum class State : std::uint8_t {
    used,    // constants depend on it
    unused,  // nothing of the network does: any elements do
    fixed,   // its elements have decided what was compiled: only the same ones do
  };
  std::vector<std::string> names;  // in the model; several: tied
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  State state = State::used;
  std::string fixed_because;
  std::uint64_t checksum = 0;  // fixed: checksum_of its row-major elements
  int kept = -1;               // index into Engine::constants: its row-major elements; -1: not held as they are

  Type type() const { return {dtype, Shape::from_sizes(sizes)}; }
};

struct RecipeTable {
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  int constant = -1;  // index into Engine::constants: its row-major elements

  Type type() const { return {dtype, Shape::from_sizes(sizes)}; }
};

struct RecipeNode {
  Part part;                  // operands index `inputs`
  std::vector<int> inputs;    // values
  std::vector<Type> results;  // they follow from the operator
};

struct Recipes {
  bool refittable = false;  // false: everything else is empty
  std::vector<EngineWeight> weights;
  std::vector<RecipeTable> tables;
  std::vector<RecipeNode> nodes;

  std::size_t leaf_count() const { return weights.size() + tables.size(); }
};

// The nodes by the values they give, and back.
class RecipeIndex {
 public:
  explicit RecipeIndex(const Recipes& recipes);
  int value_count() const { return static_cast<int>(node_of_.size()); }
  int node_of(int value) const { return node_of_[static_cast<std::size_t>(value)]; }  // -1: a weight or a table
  int first_result(int node) const { return first_[static_cast<std::size_t>(node)]; }
  Type type_of(int value) const;
  // The weights that the value depends on, ascending.
  std::vector<int> weights_of(int value) const;
  // The nodes that the value takes, ascending.
  std::vector<int> nodes_below(int value) const;
  // For each value whether it depends on any of these weights.
  std::vector<bool> dependents(const std::vector<bool>& weights) const;
  const Recipes& recipes() const { return recipes_; }

 private:
  const Recipes& recipes_;
  std::vector<int> node_of_;
  std::vector<int> first_;
};

// Gives row-major memory of any contents.
using TakeTensor = std::function<Result<Tensor>(DType dtype, std::span<const std::int64_t> sizes)>;

// Computes one value. `leaves`: weights, then tables, with any strides; those that the value does not depend on may be
// invalid. The result has any strides, and may share a leaf's memory, or be memory of `take`'s. Errors: what the
// operators find in data, out_of_memory. Safe to call from several threads.
Result<Tensor> evaluate_recipe(const RecipeIndex& index, const std::vector<Tensor>& leaves, int value,
                               const TakeTensor& take);

// Elements as they lie in a dense tensor of this layout: the tensor itself where it does already. Error: out_of_memory.
Result<Tensor> in_layout(const Tensor& tensor, const Layout& layout);

// Types of all nodes from the operators' rules, every index in range, kept elements and tables of the right size, and
// no more work than compiling does. Called by check_engine.
Result<void> check_recipes(Engine& engine);

}  // namespace polyphase

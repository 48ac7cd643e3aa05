// The list of built-in operators: everything else (text, saving, docs, interpreter, folding, conformance, fuzzing)
// follows from it.
#include <iterator>

#include "ops/families.h"
#include "ops/registry.h"

namespace polyphase {

std::vector<OpDef> built_in_operators() {
  using Family = std::vector<OpDef> (*)();
  constexpr Family families[] = {
      arg_operators,
      attention_operators,
      concat_operators,
      constant_operators,
      control_operators,
      conv_operators,
      conv_transpose_operators,
      cumulate_operators,
      cumulate_extreme_operators,
      depth_space_operators,
      det_operators,
      elementwise_binary_operators,
      elementwise_unary_operators,
      gather_operators,
      grid_sample_operators,
      dft_operators,
      layout_transform_operators,
      matmul_operators,
      nonzero_operators,
      norm_operators,
      one_hot_operators,
      pad_operators,
      pool_operators,
      random_operators,
      range_operators,
      recurrence_operators,
      reduce_operators,
      region_operators,
      reshape_operators,
      resize_operators,
      scatter_operators,
      select_operators,
      slice_operators,
      softmax_operators,
      suppression_operators,
      top_k_operators,
      unique_operators,
  };
  std::vector<OpDef> out;
  for (const Family family : families) {
    std::vector<OpDef> members = family();
    out.insert(out.end(), std::make_move_iterator(members.begin()), std::make_move_iterator(members.end()));
  }
  return out;
}

}  // namespace polyphase

// The operator families that list.cpp joins; each lives in the file of its name and returns its definitions.
#pragma once

#include <vector>

#include "ops/op.h"

namespace polyphase {

std::vector<OpDef> arg_operators();
std::vector<OpDef> attention_operators();
std::vector<OpDef> concat_operators();
std::vector<OpDef> constant_operators();
std::vector<OpDef> control_operators();
std::vector<OpDef> conv_operators();
std::vector<OpDef> conv_transpose_operators();
std::vector<OpDef> cumulate_operators();
std::vector<OpDef> cumulate_extreme_operators();
std::vector<OpDef> depth_space_operators();
std::vector<OpDef> det_operators();
std::vector<OpDef> elementwise_binary_operators();
std::vector<OpDef> elementwise_unary_operators();
std::vector<OpDef> gather_operators();
std::vector<OpDef> grid_sample_operators();
std::vector<OpDef> dft_operators();
std::vector<OpDef> layout_transform_operators();
std::vector<OpDef> matmul_operators();
std::vector<OpDef> nonzero_operators();
std::vector<OpDef> norm_operators();
std::vector<OpDef> one_hot_operators();
std::vector<OpDef> pad_operators();
std::vector<OpDef> pool_operators();
std::vector<OpDef> random_operators();
std::vector<OpDef> range_operators();
std::vector<OpDef> recurrence_operators();
std::vector<OpDef> reduce_operators();
std::vector<OpDef> region_operators();
std::vector<OpDef> reshape_operators();
std::vector<OpDef> resize_operators();
std::vector<OpDef> scatter_operators();
std::vector<OpDef> select_operators();
std::vector<OpDef> slice_operators();
std::vector<OpDef> softmax_operators();
std::vector<OpDef> suppression_operators();
std::vector<OpDef> top_k_operators();
std::vector<OpDef> unique_operators();

}  // namespace polyphase

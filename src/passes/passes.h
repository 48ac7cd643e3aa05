// The passes by name. Each takes a graph to a better one of the same meaning and says whether it changed anything; each
// stands in the file of its name, whose head shows what it does. pipeline.cpp has their order.
#pragma once

#include "graph/graph.h"
#include "kernel/target.h"

namespace polyphase {

bool choose_layouts(Graph& graph, const Target& target);
bool choose_precision(Graph& graph, const Target& target);
bool drop_unread_taps(Graph& graph, const Target& target);
bool expand_layout_transforms(Graph& graph, const Target& target);
bool find_depthwise(Graph& graph, const Target& target);
bool fold_batch_norm(Graph& graph, const Target& target);
bool fold_constants(Graph& graph, const Target& target);
bool fold_padding(Graph& graph, const Target& target);
bool fold_scale_and_bias(Graph& graph, const Target& target);
bool fold_slice_into_crop(Graph& graph, const Target& target);
bool fuse_beginnings(Graph& graph, const Target& target);
bool fuse_endings(Graph& graph, const Target& target);
bool merge_equal_nodes(Graph& graph, const Target& target);
bool merge_parallel_convolutions(Graph& graph, const Target& target);
bool move_factors_out_of_weights(Graph& graph, const Target& target);
bool move_pointwise_before_resize(Graph& graph, const Target& target);
bool move_transposes(Graph& graph, const Target& target);
bool multiply_integers_in_floats(Graph& graph, const Target& target);
bool nest_concats(Graph& graph, const Target& target);
bool push_activations_through_concat(Graph& graph, const Target& target);
bool recognise_activations(Graph& graph, const Target& target);
bool recognise_attention(Graph& graph, const Target& target);
bool recognise_depth_to_space(Graph& graph, const Target& target);
bool recognise_inverse_stft(Graph& graph, const Target& target);
bool recognise_normalisations(Graph& graph, const Target& target);
bool remove_dead_nodes(Graph& graph, const Target& target);
bool resolve_sizes(Graph& graph, const Target& target);
bool simplify(Graph& graph, const Target& target);
bool store_in_bf16(Graph& graph, const Target& target);
bool take_known_branches(Graph& graph, const Target& target);
bool turn_conv_transpose_into_conv(Graph& graph, const Target& target);
bool turn_nearest_resize_into_conv_transpose(Graph& graph, const Target& target);
bool turn_pixel_shuffle_into_conv_transpose(Graph& graph, const Target& target);
bool turn_products_into_squares(Graph& graph, const Target& target);
bool turn_sums_of_scaled_constants_into_matmul(Graph& graph, const Target& target);
bool turn_zero_insertion_into_conv_transpose(Graph& graph, const Target& target);

}  // namespace polyphase

// The table of passes and its runner.
#include "passes/pipeline.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "passes/passes.h"

namespace polyphase {
namespace {

constexpr Pass table[] = {
    {"resolve_sizes", resolve_sizes, "first: all that compares sizes gains"},
    {"remove_dead_nodes", remove_dead_nodes, "so that no later pass works for nothing or sees users that do not count"},
    {"expand_layout_transforms", expand_layout_transforms, "what follows knows transposes"},
    {"fold_constants", fold_constants,
     "shape arithmetic becomes sizes; what the weights alone decide is computed once"},
    {"take_known_branches", take_known_branches, "conditions over sizes are known now"},
    {"fold_constants", fold_constants, "what the branches compute"},
    {"merge_equal_nodes", merge_equal_nodes, "one value, one name: patterns match by identity"},
    {"simplify", simplify, "fewer shapes of the same thing for the patterns below"},
    {"move_transposes", move_transposes, "before all that looks for neighbours: a transpose hides them"},
    {"fold_constants", fold_constants, "the transposes of weights"},
    {"simplify", simplify, "transposes that have met"},
    {"recognise_normalisations", recognise_normalisations, "before its scales and shifts are taken for something else"},
    {"recognise_activations", recognise_activations, "before elementwise chains fuse"},
    {"recognise_attention", recognise_attention,
     "before its masks and scales are taken for something else; in the model's own precision"},
    {"recognise_inverse_stft", recognise_inverse_stft,
     "its transposed convolution is there for all that folds into one"},
    {"recognise_depth_to_space", recognise_depth_to_space, "before its moves are taken for layout work"},
    {"turn_sums_of_scaled_constants_into_matmul", turn_sums_of_scaled_constants_into_matmul,
     "while its factors still stand in the weights"},
    {"move_factors_out_of_weights", move_factors_out_of_weights, "before all that asks for constant weights"},
    {"choose_precision", choose_precision, "what folds into weights folds into f32 ones, and is never rounded"},
    {"fold_constants", fold_constants, "the casts of weights"},
    {"merge_equal_nodes", merge_equal_nodes, "the casts of values with several readers"},
    {"turn_zero_insertion_into_conv_transpose", turn_zero_insertion_into_conv_transpose,
     "before padding folds: it must see the convolution behind the zeros"},
    {"fold_slice_into_crop", fold_slice_into_crop, "a slice may stand between a convolution and its batch norm"},
    {"fold_padding", fold_padding, "behind the slices, which it would otherwise have to look through"},
    {"fold_batch_norm", fold_batch_norm, "before activations join what it stands behind"},
    {"merge_parallel_convolutions", merge_parallel_convolutions,
     "when norms have become weights, or scales and shifts"},
    {"fold_scale_and_bias", fold_scale_and_bias, "what is left of normalisations and hand-written affine maps"},
    {"move_pointwise_before_resize", move_pointwise_before_resize,
     "when the convolution has its final weights; what it moves is no other convolution's any more"},
    {"turn_nearest_resize_into_conv_transpose", turn_nearest_resize_into_conv_transpose,
     "when the convolution has its final weights and padding"},
    {"turn_pixel_shuffle_into_conv_transpose", turn_pixel_shuffle_into_conv_transpose,
     "when the convolution has its final weights and bias"},
    {"drop_unread_taps", drop_unread_taps, "when sizes, crops and weights are final"},
    {"turn_conv_transpose_into_conv", turn_conv_transpose_into_conv, "when crops and weights are final"},
    {"multiply_integers_in_floats", multiply_integers_in_floats, "behind all that folds factors into weights"},
    {"fold_constants", fold_constants, "the arithmetic that the folds above wrote over the weights"},
    {"merge_equal_nodes", merge_equal_nodes, "the casts of integers with several readers"},
    {"find_depthwise", find_depthwise, "on final weights"},
    {"remove_dead_nodes", remove_dead_nodes, "the weights that were folded into others"},
    {"push_activations_through_concat", push_activations_through_concat,
     "so that they can end what computes the pieces"},
    {"nest_concats", nest_concats, "behind what moves operators through concats and joins those that are nested"},
    {"turn_products_into_squares", turn_products_into_squares,
     "so that chains run through them; after all that looks for products"},
    {"store_in_bf16", store_in_bf16, "when convolutions and their readers are final; the casts join both ends"},
    {"fuse_endings", fuse_endings, "after every rewrite that needs to see the single operators"},
    {"fuse_beginnings", fuse_beginnings, "what could not end the node before begins the one behind"},
    {"choose_layouts", choose_layouts, "last: fused nodes are what kernels are asked about"},
};

bool named(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<void> check_names(const PassOptions& options) {
  std::set<std::string_view> known;
  for (const Pass& pass : table) known.insert(pass.name);
  const auto check = [&](const std::string& name, std::string_view option) -> Result<void> {
    if (known.count(name) != 0) return {};
    std::string list;
    for (const std::string_view candidate : known) list += (list.empty() ? "" : ", ") + std::string(candidate);
    return Error{ErrorCode::invalid_argument,
                 std::string(option) + " names the pass '" + name.substr(0, 60) + "', which does not exist.",
                 "The passes are: " + list + "."};
  };
  for (const std::string& name : options.without) TRY_VOID(check(name, "--without"));
  for (const std::string& name : options.print_after) {
    if (name != "all") TRY_VOID(check(name, "--print-after"));
  }
  if (!options.stop_after.empty()) TRY_VOID(check(options.stop_after, "--stop-after"));
  return {};
}

// Large weights would bury the structure.
constexpr PrintOptions listing{.max_constant_elements = 16};

}  // namespace

std::span<const Pass> pass_table() { return table; }

Result<void> run_passes(Graph& graph, const Target& target, const PassOptions& options) {
  TRY_VOID(check_names(options));
  TRY_VOID(verify(graph));
  for (std::size_t i = 0; i < std::size(table); ++i) {
    const Pass& pass = table[i];
    if (options.cancelled != nullptr && options.cancelled->load(std::memory_order_relaxed)) {
      return Error{ErrorCode::cancelled, "the compilation was cancelled.", "Compile again to have the engine."};
    }
    if (named(options.without, pass.name)) continue;
    const auto start = std::chrono::steady_clock::now();
    const bool changed = pass.run(graph, target);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (changed) {
      auto verified = verify(graph);
      if (!verified.ok()) {
        Error error = std::move(verified).error().within("after the pass " + std::string(pass.name));
        error.hint =
            "This is a fault of Polyphase, not of the model; --without=" + std::string(pass.name) + " goes around it.";
        return error;
      }
    }
    if (changed && options.print && (named(options.print_after, pass.name) || named(options.print_after, "all"))) {
      options.print(pass.name, print(graph, listing));
    }
    const PassReport report{pass.name, i, std::size(table), changed, spent.count(), graph.nodes().size()};
    if (options.progress) options.progress(report);
    if (options.watch) options.watch(report, graph);
    if (options.stop_after == pass.name) break;
  }
  return {};
}

}  // namespace polyphase

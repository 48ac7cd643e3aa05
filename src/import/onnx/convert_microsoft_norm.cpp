// ONNX Runtime's fused normalisations: with the sum in front of them, without the mean, over channels that lie last.
#include <algorithm>

#include "import/compose/composer.h"
#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;
using Integers = Composer::Integers;

Value* layer_norm(Composer& make, Value* x, Value* scale, Value* bias, double epsilon, bool centre = true) {
  return make.with_optional(
      "layer_norm", {x, scale, bias},
      Attributes({{"axis", static_cast<std::int64_t>(make.rank(x) - 1)}, {"epsilon", epsilon}, {"centre", centre}}));
}

// norm(input + skip + bias); the sum is a result too. The mean and deviation are for training.
Result<Values> convert_skip_norm(NodeContext& node) {
  const double epsilon = node.real("epsilon", 1e-12);
  const bool simplified = node.op_type() == "SkipSimplifiedLayerNormalization";
  const std::size_t bias_at = simplified ? 3 : 4;
  Composer make(node);
  Value* sum = make.add(node.input(0), node.input(1));
  if (node.has(bias_at)) sum = make.add(sum, node.input(bias_at));
  Value* normal = layer_norm(make, sum, node.input(2), simplified ? nullptr : node.input(3), epsilon, !simplified);
  return make.results({normal, nullptr, nullptr, sum});
}

Result<Values> convert_simplified_norm(NodeContext& node) {
  const double epsilon = node.real("epsilon", static_cast<double>(1e-5F));
  node.ignore("stash_type");
  TRY(const std::int64_t axis, node.axis(node.integer("axis", -1), node.rank(0)));
  Composer make(node);
  return make.results({make.op("layer_norm", {node.input(0), node.input(1)},
                               Attributes({{"axis", axis}, {"epsilon", epsilon}, {"centre", false}})),
                       nullptr});
}

// (N, spatial…, C) unless channels_last is 0; activation 1 is silu. SkipGroupNorm adds skip and bias in front.
Result<Values> convert_microsoft_group_norm(NodeContext& node) {
  const double epsilon = node.real("epsilon", static_cast<double>(1e-5F));
  const std::int64_t groups = node.integer("groups", 0);
  const std::int64_t activation = node.integer("activation", 0);
  const bool channels_last = node.flag("channels_last", true);
  const int rank = node.rank(0);
  if (rank < 3) return broken_rule("the operand must be (N, spatial…, C), found " + node.type(0).text() + ".");
  if (activation != 0 && activation != 1)
    return broken_rule("activation is " + std::to_string(activation) + "; it must be 0 or 1.");
  Integers there{0, rank - 1};
  Integers back{0};
  for (int i = 1; i < rank - 1; ++i) there.push_back(i);
  for (int i = 2; i < rank; ++i) back.push_back(i);
  back.push_back(1);
  Composer make(node);
  Value* x = node.input(0);
  const int channel_axis = channels_last ? rank - 1 : 1;
  const auto per_channel = [&](Value* list) {
    Sizes shape(static_cast<std::size_t>(rank), Dim(1));
    shape[static_cast<std::size_t>(channel_axis)] = node.shape(0)[channel_axis];
    return make.reshape(list, shape);
  };
  if (node.has(3)) {
    Value* skip = node.input(3);
    if (node.rank(3) == 2) {  // (N, C)
      Sizes shape(static_cast<std::size_t>(rank), Dim(1));
      shape[0] = node.shape(3)[0];
      shape[static_cast<std::size_t>(channel_axis)] = node.shape(3)[1];
      skip = make.reshape(skip, shape);
    }
    x = make.add(x, skip);
  }
  if (node.has(4)) x = make.add(x, per_channel(node.input(4)));
  Value* sum = x;
  if (channels_last) x = make.transpose(x, there);
  Value* y = make.with_optional("group_norm", {x, node.input(1), node.input(2)},
                                Attributes({{"groups", groups}, {"epsilon", epsilon}}));
  if (activation == 1) y = make.op("silu", {y});
  if (channels_last) y = make.transpose(y, back);
  Values results{y};
  if (node.output_count() > 1) results.push_back(sum);
  return make.results(std::move(results));
}

// norm(word[ids] + position[places] + segment[segments])
Result<Values> convert_embed_norm(NodeContext& node) {
  const double epsilon = node.real("epsilon", 1e-12);
  node.ignore("mask_index_type");
  if (node.rank(0) != 2 || node.rank(3) != 2)
    return broken_rule("input_ids must be (B, S) and position_embedding (places, width), found " + node.type(0).text() +
                       " and " + node.type(3).text() + ".");
  Composer make(node);
  Value* sum = make.gather(node.input(2), node.input(0), 0);
  Value* places =
      node.has(8) ? make.gather(node.input(3), node.input(8), 0) : make.slice(node.input(3), 0, 0, node.shape(0)[1]);
  sum = make.add(sum, places);
  if (node.has(1) && node.has(4)) sum = make.add(sum, make.gather(node.input(4), node.input(1), 0));
  Value* normal = layer_norm(make, sum, node.input(5), node.input(6), epsilon);
  Value* counts = nullptr;
  if (node.output_count() > 1) {  // how many ids the mask keeps
    counts = node.has(7) ? make.reduce("reduce_sum", make.cast(node.input(7), DType::i32), {1}, false)
                         : make.expand(make.number(0, DType::i32), {node.shape(0)[0]});
  }
  return make.results({normal, counts, sum});
}

// x + bias, the front half times gelu of the rear half.
Result<Values> convert_bias_split_gelu(NodeContext& node) {
  Composer make(node);
  Value* sum = make.add(node.input(0), node.input(1));
  const Dim half = floor_div(make.size(sum, -1), Dim(2));
  Value* front = make.slice(sum, -1, 0, half);
  Value* rear = make.slice(sum, -1, half, half);
  return make.results({make.mul(front, make.op("gelu", {rear}))});
}

Result<Values> convert_bias_add(NodeContext& node) {
  Composer make(node);
  return make.results({make.add(make.add(node.input(0), node.input(1)), node.input(2))});
}

}  // namespace

std::vector<Converter> microsoft_norm_converters() {
  constexpr std::string_view domain = "com.microsoft";
  return {
      {"BiasAdd", {1}, 3, 3, convert_bias_add, domain},
      {"BiasSplitGelu", {1}, 2, 2, convert_bias_split_gelu, domain},
      {"EmbedLayerNormalization", {1}, 7, 9, convert_embed_norm, domain},
      {"GroupNorm", {1}, 3, 3, convert_microsoft_group_norm, domain},
      // ONNX Runtime keeps this one among ONNX's own.
      {"SimplifiedLayerNormalization", {1}, 2, 2, convert_simplified_norm},
      {"SkipGroupNorm", {1}, 4, 5, convert_microsoft_group_norm, domain},
      {"SkipLayerNormalization", {1}, 3, 5, convert_skip_norm, domain},
      {"SkipSimplifiedLayerNormalization", {1}, 3, 4, convert_skip_norm, domain},
  };
}

}  // namespace polyphase

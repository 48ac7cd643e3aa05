// fold_batch_norm: a normalisation by given statistics is a scale and a shift, s = scale / sqrt(variance + epsilon).
//
//   %c = conv_transpose(%x, %w)
//   %y = batch_norm(%c, …)          →   %y = conv_transpose(%x, w * s, bias - mean * s)
//
//   %y = batch_norm(%x, …)          →   %m = mul(%x, s)      %y = add(%m, bias - mean * s)
//
// Condition: the statistics and parameters are constants; the weights too, and nobody else reads the convolution, for
// the first form.
#include "passes/affine.h"
#include "passes/passes.h"

namespace polyphase {
namespace {

struct NormMap {
  Value* scale = nullptr;
  Value* shift = nullptr;
};

NormMap map_of_norm(Rewrite& rewrite, const Node& norm) {
  Value* scale = rewrite.cast(norm.input(1), DType::f64);
  Value* bias = rewrite.cast(norm.input(2), DType::f64);
  Value* mean = rewrite.cast(norm.input(3), DType::f64);
  Value* variance = rewrite.cast(norm.input(4), DType::f64);
  Value* epsilon = rewrite.scalar(DType::f64, norm.attributes().get<double>("epsilon"));
  Value* deviation = rewrite.add("sqrt", {}, {rewrite.add("add", {}, {variance, epsilon})});
  NormMap map;
  map.scale = rewrite.add("div", {}, {scale, deviation});
  map.shift = rewrite.add("sub", {}, {bias, rewrite.add("mul", {}, {mean, map.scale})});
  return map;
}

bool fold_norm(Graph& graph, Node* norm) {
  for (std::size_t i = 1; i < 5; ++i) {
    if (!is_constant(norm->input(i))) return false;
  }
  Value* data = norm->input(0);
  Value* result = norm->output();
  const Node* convolution = foldable_convolution(graph, data);
  Rewrite rewrite(graph, norm, convolution == nullptr ? norm->name() : convolution->name());
  const NormMap map = map_of_norm(rewrite, *norm);
  if (!rewrite.ok()) return false;
  if (convolution != nullptr)
    return rewrite.commit(result, convolve_scaled(rewrite, *convolution, map.scale, map.shift));

  std::vector<Dim> sizes{map.scale->type.shape[0]};
  sizes.insert(sizes.end(), static_cast<std::size_t>(data->type.shape.rank() - 2), Dim(1));
  const auto table = [&](Value* vector) {
    return rewrite.reshape(rewrite.cast(vector, data->type.dtype), Shape(sizes));
  };
  Value* scaled = rewrite.add("mul", {}, {data, table(map.scale)});
  return rewrite.commit(result, rewrite.add("add", {}, {scaled, table(map.shift)}));
}

}  // namespace

bool fold_batch_norm(Graph& graph, const Target&) {
  return at_every_node(graph, [](Graph& each, Node* node) { return node->is("batch_norm") && fold_norm(each, node); });
}

}  // namespace polyphase

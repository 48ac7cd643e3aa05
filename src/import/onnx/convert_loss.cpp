// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
//
//   loss[n, d…] = -x[n, target[n, d…], d…] · weight[target[n, d…]],   0 where the target is ignore_index;
//   mean divides their sum by the sum of the weights.
#include "import/compose/composer.h"
#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

using Integers = Composer::Integers;

Value* loss_of(Composer& make, NodeContext& node, Value* logarithms, const std::string& reduction) {
  Value* target = node.input(1);
  Value* weight = nullptr;
  Value* ignored = nullptr;
  if (node.has_attribute("ignore_index")) {
    const auto index = static_cast<double>(node.integer("ignore_index", 0));
    ignored = make.op("equal", {target, make.number(index, make.dtype(target))});
    target = make.where(ignored, make.number(0, make.dtype(target)), target);
  }
  const DType dtype = make.dtype(logarithms);
  if (node.has(2)) weight = make.gather(make.cast(node.input(2), dtype), target, 0);
  if (ignored != nullptr) {
    Value* counts = weight != nullptr ? weight : make.number(1, dtype);
    weight = make.where(ignored, make.number(0, dtype), counts);
  }
  Value* place = make.unsqueeze(target, 1);
  Value* picked = make.op("gather_elements", {logarithms, place}, Attributes({{"axis", std::int64_t{1}}}));
  if (!make.ok()) return nullptr;
  Value* loss = make.op("neg", {make.reshape(picked, make.sizes(target))});
  if (weight != nullptr) {
    // An ignored place counts 0, whatever stands there.
    loss = ignored != nullptr ? make.where(ignored, make.number(0, dtype), make.mul(loss, weight))
                              : make.mul(loss, weight);
  }
  if (reduction == "none" || !make.ok()) return loss;
  Integers axes;
  for (int i = 0; i < make.rank(loss); ++i) axes.push_back(i);
  if (reduction == "mean" && weight == nullptr) return make.reduce("reduce_mean", loss, axes, false);
  Value* sum = make.reduce("reduce_sum", loss, axes, false);
  return reduction == "sum" ? sum : make.div(sum, make.reduce("reduce_sum", weight, axes, false));
}

Result<Values> convert_loss(NodeContext& node) {
  const std::string reduction = node.word("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    return broken_rule("reduction is '" + reduction.substr(0, 40) + "'; it must be mean, sum or none.");
  if (node.rank(0) < 2 || node.rank(1) != node.rank(0) - 1)
    return broken_rule("the operand must be (N, C, d…) and the target (N, d…), found " + node.type(0).text() + " and " +
                       node.type(1).text() + ".");
  const DType own = node.type(0).dtype;
  Composer make(node);
  Value* x = make.cast(node.input(0), size_bytes(own) < 4 ? DType::f32 : own);
  const bool has_softmax = node.op_type() == "SoftmaxCrossEntropyLoss";
  if (has_softmax) x = make.op("log_softmax", {x}, Attributes({{"axis", std::int64_t{1}}}));
  Values results{make.cast(loss_of(make, node, x, reduction), own)};
  if (has_softmax && node.output_count() > 1) results.push_back(make.cast(x, own));
  return make.results(std::move(results));
}

}  // namespace

std::vector<Converter> loss_converters() {
  return {
      {"NegativeLogLikelihoodLoss", {12, 13, 22}, 2, 3, convert_loss},
      {"SoftmaxCrossEntropyLoss", {12, 13}, 2, 3, convert_loss},
  };
}

}  // namespace polyphase

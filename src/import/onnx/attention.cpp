// softmax(cap(scale · Q · Kᵀ) + bias) · V
//
// Where only the result is read it is one operator. Written out, heads of K and V that several heads of Q share stay
// one: the queries of a group lie behind each other, (B, Hkv, G·S, D), so that nothing is repeated.
#include "import/onnx/attention.h"

#include <cmath>
#include <limits>

namespace polyphase {

using Sizes = Composer::Sizes;

Value* split_heads(Composer& make, Value* value, std::int64_t heads) {
  if (!make.ok()) return nullptr;
  const Dim each = floor_div(make.size(value, 2), Dim(heads));
  make.require_equal(
      each * Dim(heads), make.size(value, 2),
      "attention: the heads (" + std::to_string(heads) + ") must divide the last axis of " + value->type.text() + ".");
  return make.transpose(make.reshape(value, {make.size(value, 0), make.size(value, 1), Dim(heads), each}),
                        {0, 2, 1, 3});
}

Value* join_heads(Composer& make, Value* value) {
  const Dim width = make.size(value, 1) * make.size(value, 3);
  return make.reshape(make.transpose(value, {0, 2, 1, 3}), {make.size(value, 0), make.size(value, 2), width});
}

Value* visibility_bias(Composer& make, const VisibleKeys& rule, DType dtype) {
  Value* query = make.reshape(make.counting(rule.queries, DType::i64), {rule.queries, Dim(1)});
  Value* key = make.counting(rule.keys, DType::i64);
  if (rule.offset != nullptr) query = make.add(query, rule.offset);
  Value* behind = make.sub(query, key);  // how many places the key lies behind the query
  Value* visible = nullptr;
  const auto also = [&](const char* relation, std::int64_t bound) {
    Value* holds = make.op(relation, {behind, make.number(static_cast<double>(bound), DType::i64)});
    visible = visible == nullptr ? holds : make.op("and", {visible, holds});
  };
  if (rule.causal) also("greater_equal", 0);
  if (rule.left_window >= 0) also("less_equal", rule.left_window);
  if (rule.right_window >= 0) also("greater_equal", -rule.right_window);
  return make.where(visible, make.number(0, dtype), make.number(-INFINITY, dtype));
}

AttentionResult attend(Composer& make, const AttentionCore& core) {
  AttentionResult out;
  if (!make.ok()) return out;
  const Dim batch = make.size(core.query, 0);
  const Dim heads = make.size(core.query, 1);
  const Dim queries = make.size(core.query, 2);
  const Dim width = make.size(core.query, 3);
  const Dim shared = make.size(core.key, 1);
  const Dim keys = make.size(core.key, 2);
  if (core.scale == 0 && !width.is_constant()) {
    make.refuse(lacking("the size of a head (" + width.text() + ") is not known before the run, and no scale is given.",
                        "Export with a fixed size of the heads."));
    return out;
  }
  const double scale = core.scale != 0 ? core.scale : 1 / std::sqrt(static_cast<double>(width.value()));
  // In f64 the parts have kernels, which the operator has not.
  if (core.only_result && core.softcap == 0 && make.dtype(core.query) == DType::f32) {
    Values operands{core.query, core.key, core.value};
    if (core.bias != nullptr) operands.push_back(core.bias);
    out.result = make.op("attention", std::move(operands),
                         Attributes({{"scale", scale}, {"causal", core.causal}, {"guarded", core.rows_may_be_hidden}}));
    return out;
  }
  const bool grouped = !(heads == shared);
  Value* query = make.mul(core.query, scale);
  if (grouped) query = make.reshape(query, {batch, shared, floor_div(heads, shared) * queries, width});
  const Sizes full{batch, heads, queries, keys};
  out.scores = make.matmul(query, make.swap_last(core.key));
  if (grouped) out.scores = make.reshape(out.scores, full);
  out.capped = out.scores;
  if (core.softcap > 0) {
    out.capped = make.mul(make.op("tanh", {make.mul(out.scores, 1 / core.softcap)}), core.softcap);
  }
  out.biased = core.bias == nullptr ? out.capped : make.add(out.capped, core.bias);
  if (core.causal) {
    VisibleKeys visible{queries, keys};
    visible.causal = true;
    out.biased = make.add(out.biased, visibility_bias(make, visible, make.dtype(core.query)));
  }
  out.weights = make.softmax(out.biased, 3);
  if (core.rows_may_be_hidden && make.ok()) {
    Value* best = make.reduce("reduce_max", core.bias, {make.rank(core.bias) - 1}, true);
    Value* hidden = make.op("equal", {best, make.number(-INFINITY, make.dtype(best))});
    out.weights = make.where(hidden, make.number(0, make.dtype(out.weights)), out.weights);
  }
  Value* weights = out.weights;
  if (grouped) weights = make.reshape(weights, {batch, shared, floor_div(heads, shared) * queries, keys});
  out.result = make.matmul(weights, core.value);
  if (grouped) out.result = make.reshape(out.result, {batch, heads, queries, make.size(core.value, 3)});
  return out;
}

}  // namespace polyphase

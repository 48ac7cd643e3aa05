// Attention and RotaryEmbedding of ONNX; MultiHeadAttention, Attention and RotaryEmbedding of ONNX Runtime.
#include <algorithm>
#include <cmath>

#include "import/onnx/attention.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;
using Integers = Composer::Integers;

// Operand i of the node as (B, H, S, D).
Value* heads_of(Composer& make, NodeContext& node, std::size_t i, std::int64_t heads) {
  Value* value = node.input(i);
  return node.rank(i) == 4 ? value : split_heads(make, value, heads);
}

Result<void> check_attention(NodeContext& node, std::int64_t query_heads, std::int64_t shared_heads) {
  const int rank = node.rank(0);
  const std::string found =
      "found " + node.type(0).text() + ", " + node.type(1).text() + " and " + node.type(2).text() + ".";
  if ((rank != 3 && rank != 4) || node.rank(1) != rank || node.rank(2) != rank)
    return broken_rule("Q, K and V must all be (B, S, H·D) or all (B, H, S, D), " + found);
  if (rank == 3 && (query_heads < 1 || shared_heads < 1))
    return broken_rule("q_num_heads and kv_num_heads must be given, and at least 1, where Q, K and V have rank 3; " +
                       found);
  if (node.has(4) != node.has(5)) return broken_rule("past_key and past_value must both be there, or none.");
  if (node.has(6) && node.has(4)) return broken_rule("nonpad_kv_seqlen and past_key exclude each other.");
  return {};
}

// The mask as an addend: false is minus infinity; what it is too short for is hidden.
Value* mask_bias(Composer& make, Value* mask, const Dim& keys, DType dtype) {
  if (!make.ok()) return nullptr;
  if (make.dtype(mask) == DType::boolean) {
    mask = make.where(mask, make.number(0, dtype), make.number(-INFINITY, dtype));
  }
  mask = make.cast(mask, dtype);
  const Dim width = make.size(mask, -1);
  return width == keys || width == 1 ? mask : make.pad(mask, -1, 0, keys - width, -INFINITY);
}

Value* sum_of(Composer& make, Value* a, Value* b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  return make.add(a, b);
}

Result<Values> convert_attention(NodeContext& node) {
  const std::int64_t query_heads = node.integer("q_num_heads", 0);
  const std::int64_t shared_heads = node.integer("kv_num_heads", 0);
  const std::int64_t output_mode = node.integer("qk_matmul_output_mode", 0);
  node.ignore("softmax_precision");  // ours is never lower than f32
  TRY_VOID(check_attention(node, query_heads, shared_heads));
  if (output_mode < 0 || output_mode > 3)
    return broken_rule("qk_matmul_output_mode is " + std::to_string(output_mode) + "; it must be 0, 1, 2 or 3.");
  Composer make(node);
  const DType own = node.type(0).dtype;
  const DType dtype = computing_dtype(own);
  AttentionCore core;
  core.scale = node.real("scale", 0);
  core.softcap = node.real("softcap", 0);
  core.query = heads_of(make, node, 0, query_heads);
  Value* key = heads_of(make, node, 1, shared_heads);
  Value* value = heads_of(make, node, 2, shared_heads);
  if (node.has(4)) {
    key = make.concat({node.input(4), key}, 2);
    value = make.concat({node.input(5), value}, 2);
  }
  if (!make.ok()) return make.results({});
  const Dim queries = make.size(core.query, 2);
  const Dim keys = make.size(key, 2);
  VisibleKeys visible{queries, keys};
  visible.causal = node.flag("is_causal", false);
  if (node.version() >= 25) {
    visible.left_window = node.integer("left_window_size", -1);
    visible.right_window = node.integer("right_window_size", -1);
  }
  if (node.has(3)) core.bias = mask_bias(make, node.input(3), keys, dtype);
  Value* counts = node.has(6) ? make.reshape(make.cast(node.input(6), DType::i64),
                                             {make.size(core.query, 0), Dim(1), Dim(1), Dim(1)})
                              : nullptr;
  // From the first key on: the operator's own rule.
  core.causal =
      visible.causal && visible.left_window < 0 && visible.right_window < 0 && counts == nullptr && !node.has(4);
  if (core.causal) visible.causal = false;
  if (visible.causal || visible.left_window >= 0 || visible.right_window >= 0) {
    if (counts != nullptr) visible.offset = make.sub(counts, make.dims({queries}, true));
    if (node.has(4)) visible.offset = make.dims({node.shape(4)[2]}, true);
    core.bias = sum_of(make, core.bias, visibility_bias(make, visible, dtype));
  }
  if (counts != nullptr) {
    Value* inside = make.op("less", {make.counting(keys, DType::i64), counts});
    core.bias = sum_of(make, core.bias, make.where(inside, make.number(0, dtype), make.number(-INFINITY, dtype)));
  }
  // A causal rule alone, without a window, leaves every query the first key.
  core.rows_may_be_hidden = node.has(3) || node.has(6) || visible.left_window >= 0 || visible.right_window >= 0;
  core.query = make.cast(core.query, dtype);
  core.key = make.cast(key, dtype);
  core.value = make.cast(value, dtype);
  core.only_result = node.output_count() <= 3;
  const AttentionResult found = attend(make, core);
  Value* result = node.rank(0) == 3 ? join_heads(make, found.result) : found.result;
  Values results{make.cast(result, own)};
  if (node.output_count() > 1) results.push_back(key);
  if (node.output_count() > 2) results.push_back(value);
  if (node.output_count() > 3) {
    Value* const shown[] = {found.scores, found.capped, found.biased, found.weights};
    results.push_back(make.cast(shown[output_mode], own));
  }
  return make.results(std::move(results));
}

// ---------------------------------------------------------------- rotary embedding

// x: (B, H, S, D); cos and sin: (B or 1, 1, S, R / 2). Turns the first R elements of each head: pairs of neighbours, or
// of element i and i + R / 2.
Value* rotated(Composer& make, Value* x, Value* cos, Value* sin, bool interleaved) {
  const Dim width = make.size(x, 3);
  const Dim half = make.size(cos, 3);
  const Dim turned = half * 2;
  Value* front = make.slice(x, 3, 0, turned);
  Sizes pairs = make.sizes(front);
  Value* first = nullptr;
  Value* second = nullptr;
  if (interleaved) {
    if (!make.ok()) return nullptr;
    pairs[3] = half;
    pairs.push_back(2);
    Value* paired = make.reshape(front, pairs);
    pairs.pop_back();
    first = make.reshape(make.slice(paired, 4, 0, 1), pairs);
    second = make.reshape(make.slice(paired, 4, 1, 1), pairs);
  } else {
    first = make.slice(front, 3, 0, half);
    second = make.slice(front, 3, half, half);
  }
  Value* real = make.sub(make.mul(cos, first), make.mul(sin, second));
  Value* imaginary = make.add(make.mul(sin, first), make.mul(cos, second));
  Value* out = nullptr;
  if (interleaved) {
    out = make.reshape(make.concat({make.unsqueeze(real, 4), make.unsqueeze(imaginary, 4)}, 4), make.sizes(front));
  } else {
    out = make.concat({real, imaginary}, 3);
  }
  return turned == width ? out : make.concat({out, make.slice(x, 3, turned, width - turned)}, 3);
}

// `tables` are the operands cos_cache and sin_cache: (B, S, R / 2), or (places, R / 2) looked up by positions.
Result<Values> rotary(NodeContext& node, std::size_t cos_at, Value* positions, std::int64_t heads) {
  const bool interleaved = node.flag("interleaved", false);
  const std::int64_t turned = node.integer("rotary_embedding_dim", 0);
  if (node.rank(0) != 3 && node.rank(0) != 4)
    return broken_rule("X must be (B, S, H·D) or (B, H, S, D), found " + node.type(0).text() + ".");
  const int table_rank = positions == nullptr ? 3 : 2;
  Composer make(node);
  Values tables;
  for (const std::size_t i : {cos_at, cos_at + 1}) {
    if (node.rank(i) != table_rank) {
      return broken_rule("cos_cache and sin_cache must be " +
                         std::string(table_rank == 3 ? "(B, S, half the turned elements)"
                                                     : "(places, half the turned "
                                                       "elements)") +
                         ", found " + node.type(i).text() + ".");
    }
    Value* table = positions == nullptr ? node.input(i) : make.gather(node.input(i), positions, 0);
    tables.push_back(make.unsqueeze(table, 1));
  }
  if (!make.ok()) return make.results({});
  if (node.rank(0) == 3 && heads < 1) {
    // Without num_heads the width of a head is that of the turned elements.
    const Dim width = turned > 0 ? Dim(turned) : make.size(tables[0], 3) * 2;
    const auto count = floor_div(node.shape(0)[2], width).constant();
    if (!count.has_value() || *count < 1) return broken_rule("num_heads must be given where X has rank 3.");
    heads = *count;
  }
  Value* x = heads_of(make, node, 0, heads);
  if (turned > 0) {
    make.require_equal(make.size(tables[0], 3) * 2, turned,
                       "RotaryEmbedding: cos_cache must have half of rotary_embedding_dim (" + std::to_string(turned) +
                           ") columns, found " + node.type(cos_at).text() + ".");
  }
  Value* out = rotated(make, x, tables[0], tables[1], interleaved);
  return make.results({node.rank(0) == 3 ? join_heads(make, out) : out});
}

Result<Values> convert_rotary(NodeContext& node) {
  return rotary(node, 1, node.input(3), node.integer("num_heads", 0));
}

// ONNX Runtime's has the positions before the tables, and one number for all: the position of the first.
Result<Values> convert_microsoft_rotary(NodeContext& node) {
  node.ignore("is_packed_batching");
  const double scale = node.real("scale", 1.0);
  if (scale != 1.0) return lacking("scale is " + std::to_string(scale) + ".", "Export without it.");
  Composer make(node);
  Value* positions = node.input(1);
  if (node.rank(1) < 2) {
    const Dim length = node.shape(0)[node.rank(0) == 4 ? 2 : 1];
    Value* counted = make.add(make.counting(length, DType::i64), make.cast(positions, DType::i64));
    positions = make.reshape(counted, {Dim(1), length});
  }
  if (!make.ok()) return make.results({});
  return rotary(node, 2, positions, node.integer("num_heads", 0));
}

// ---------------------------------------------------------------- ONNX Runtime's attention

// 1 keeps a key, 0 hides it: (B, T), (B, S, T), (B, 1, S, T), or the number of keys, (B). As an addend.
Result<Value*> padding_bias(NodeContext& node, Composer& make, std::size_t i, const Dim& keys, DType dtype,
                            double hidden) {
  Value* mask = node.input(i);
  Sizes shape = mask->type.shape.dims();
  if (shape.size() == 1) {
    make.require_equal(
        shape[0], node.shape(0)[0],
        "attention: a mask of rank 1 must have one number of keys per batch, found " + mask->type.text() + ".");
    mask = make.op("less", {make.counting(keys, make.dtype(mask)), make.reshape(mask, {shape[0], Dim(1)})});
    shape = {shape[0], keys};
  }
  if (shape.size() < 2 || shape.size() > 4)
    return broken_rule("the mask must be (B), (B, T), (B, S, T) or (B, 1, S, T), found " + mask->type.text() + ".");
  mask = make.cast(mask, DType::boolean);
  if (shape.size() < 4) shape.insert(shape.begin() + 1, 4 - shape.size(), Dim(1));
  return make.where(make.reshape(mask, shape), make.number(0, dtype), make.number(hidden, dtype));
}

// A packed operand's part k: (B, S, H, parts, D) → (B, H, S, D).
Value* unpacked(Composer& make, Value* packed, std::int64_t k) {
  if (!make.ok()) return nullptr;
  Sizes shape = make.sizes(packed);
  shape.erase(shape.begin() + 3);
  return make.transpose(make.reshape(make.slice(packed, 3, k, 1), shape), {0, 2, 1, 3});
}

Result<Values> finish_microsoft(NodeContext& node, Composer& make, AttentionCore core, bool causal, Value* offset,
                                DType own) {
  const DType dtype = computing_dtype(own);
  Value* key = core.key;
  Value* value = core.value;
  core.only_result = true;
  core.causal = causal && offset == nullptr;
  if (causal && offset != nullptr) {
    VisibleKeys visible{make.size(core.query, 2), make.size(key, 2)};
    visible.causal = true;
    visible.offset = offset;
    core.bias = sum_of(make, core.bias, visibility_bias(make, visible, dtype));
  }
  core.query = make.cast(core.query, dtype);
  core.key = make.cast(key, dtype);
  core.value = make.cast(value, dtype);
  const AttentionResult found = attend(make, core);
  Values results{make.cast(join_heads(make, found.result), own)};
  if (node.output_count() > 1) results.push_back(key);
  if (node.output_count() > 2) results.push_back(value);
  return make.results(std::move(results));
}

Result<Values> convert_multi_head(NodeContext& node) {
  const std::int64_t heads = node.integer("num_heads", 0);
  const double hidden = node.real("mask_filter_value", -10000.0);
  const bool causal = node.flag("unidirectional", false);
  if (heads < 1) return broken_rule("num_heads is missing or below 1.");
  if (node.has(8) || node.has(9))
    return lacking("a shared cache of keys and values is given (operands 8 and 9).",
                   "Export without ONNX Runtime's optimiser for generation.");
  Composer make(node);
  AttentionCore core;
  core.scale = node.real("scale", 0);
  // (B, S, H·D) with its part of the bias, as (B, H, S, D).
  Dim bias_at(0);
  const auto part = [&](Value* value) {
    if (make.rank(value) == 4) return value;
    const Dim width = make.size(value, 2);
    if (node.has(3)) value = make.add(value, make.slice(node.input(3), 0, bias_at, width));
    bias_at = bias_at + width;
    return split_heads(make, value, heads);
  };
  if (node.rank(0) == 5) {
    core.query = unpacked(make, node.input(0), 0);
    core.key = unpacked(make, node.input(0), 1);
    core.value = unpacked(make, node.input(0), 2);
  } else {
    if (node.rank(0) != 3 || !node.has(1))
      return broken_rule("the operands must be query, key and value, or a packed query of rank 5.");
    core.query = part(node.input(0));
    if (node.rank(1) == 5) {
      core.key = unpacked(make, node.input(1), 0);
      core.value = unpacked(make, node.input(1), 1);
    } else {
      if (!node.has(2)) return broken_rule("the operand value is missing.");
      core.key = part(node.input(1));
      core.value = part(node.input(2));
    }
  }
  Value* offset = nullptr;
  if (node.has(6) && node.has(7)) {
    core.key = make.concat({node.input(6), core.key}, 2);
    core.value = make.concat({node.input(7), core.value}, 2);
    offset = make.dims({node.shape(6)[2]}, true);
  }
  const DType own = node.type(0).dtype;
  const DType dtype = computing_dtype(own);
  if (!make.ok()) return make.results({});
  if (node.has(4)) {
    TRY(core.bias, padding_bias(node, make, 4, make.size(core.key, 2), dtype, hidden));
  }
  if (node.has(5)) core.bias = sum_of(make, core.bias, make.cast(node.input(5), dtype));
  return finish_microsoft(node, make, core, causal, offset, own);
}

// One product makes Q, K and V: x · W + b.
Result<Values> convert_packed_attention(NodeContext& node) {
  const std::int64_t heads = node.integer("num_heads", 0);
  const double hidden = node.real("mask_filter_value", -10000.0);
  const bool causal = node.flag("unidirectional", false);
  if (heads < 1) return broken_rule("num_heads is missing or below 1.");
  if (node.flag("do_rotary", false) || node.has(6))
    return lacking("do_rotary or a shared cache is set.", "Export without ONNX Runtime's optimiser.");
  node.ignore("past_present_share_buffer");
  node.ignore("rotary_embedding_dim");
  if (node.rank(0) != 3 || node.rank(1) != 2)
    return broken_rule("the operand must be (B, S, width) and the weight (width, 3 · hidden), found " +
                       node.type(0).text() + " and " + node.type(1).text() + ".");
  Composer make(node);
  AttentionCore core;
  core.scale = node.real("scale", 0);
  Value* packed = make.matmul(node.input(0), node.input(1));
  if (node.has(2)) packed = make.add(packed, node.input(2));
  if (!make.ok()) return make.results({});
  const Dim third = floor_div(make.size(packed, 2), Dim(3));
  Sizes widths{third, third, third};
  if (const auto given = node.integers("qkv_hidden_sizes"); given.has_value() && !given->empty()) {
    if (given->size() != 3) return broken_rule("qkv_hidden_sizes must have three entries.");
    widths.assign(given->begin(), given->end());
  }
  Value* parts[3] = {};
  Dim at(0);
  for (std::size_t i = 0; i < 3; ++i) {
    parts[i] = split_heads(make, make.slice(packed, 2, at, widths[i]), heads);
    at = at + widths[i];
  }
  core.query = parts[0];
  core.key = parts[1];
  core.value = parts[2];
  Value* offset = nullptr;
  if (node.has(4)) {  // (2, B, H, P, D)
    Sizes one = node.shape(4).dims();
    if (one.size() != 5) return broken_rule("past must be (2, B, H, P, D), found " + node.type(4).text() + ".");
    one.erase(one.begin());
    core.key = make.concat({make.reshape(make.slice(node.input(4), 0, 0, 1), one), core.key}, 2);
    core.value = make.concat({make.reshape(make.slice(node.input(4), 0, 1, 1), one), core.value}, 2);
    offset = make.dims({one[2]}, true);
  }
  const DType own = node.type(0).dtype;
  const DType dtype = computing_dtype(own);
  if (!make.ok()) return make.results({});
  if (node.has(3)) {
    TRY(core.bias, padding_bias(node, make, 3, make.size(core.key, 2), dtype, hidden));
  }
  if (node.has(5)) core.bias = sum_of(make, core.bias, make.cast(node.input(5), dtype));
  Value* key = core.key;
  Value* value = core.value;
  TRY(Values results, finish_microsoft(node, make, core, causal, offset, own));
  if (results.size() > 1) {
    results.resize(2);
    results[1] = make.concat({make.unsqueeze(key, 0), make.unsqueeze(value, 0)}, 0);
  }
  return make.results(std::move(results));
}

}  // namespace

std::vector<Converter> attention_converters() {
  return {
      {"Attention", {23, 24, 25}, 3, 7, convert_attention},
      {"Attention", {1}, 2, 7, convert_packed_attention, "com.microsoft"},
      {"MultiHeadAttention", {1}, 1, 10, convert_multi_head, "com.microsoft"},
      {"RotaryEmbedding", {23}, 3, 4, convert_rotary},
      {"RotaryEmbedding", {1}, 4, 4, convert_microsoft_rotary, "com.microsoft"},
  };
}

}  // namespace polyphase

// Attention, by its operator or from matrix products and a softmax: what ONNX's Attention and ONNX Runtime's share.
#pragma once

#include <optional>

#include "import/compose/composer.h"
#include "import/onnx/node_context.h"

namespace polyphase {

// (B, S, H·D) → (B, H, S, D)
Value* split_heads(Composer& make, Value* value, std::int64_t heads);
// (B, H, S, D) → (B, S, H·D)
Value* join_heads(Composer& make, Value* value);

// 0 where key j may be seen by query i, minus infinity elsewhere, (queries, keys) or (B, 1, queries, keys): j <= i +
// offset, and |j - i - offset| within the window. `offset` is rank 0 or (B, 1, 1, 1); a bound below 0 does not bind.
struct VisibleKeys {
  Dim queries;
  Dim keys;
  Value* offset = nullptr;  // i64
  bool causal = false;
  std::int64_t left_window = -1;
  std::int64_t right_window = -1;
};
Value* visibility_bias(Composer& make, const VisibleKeys& rule, DType dtype);

struct AttentionCore {
  Value* query = nullptr;           // (B, Hq, S, D)
  Value* key = nullptr;             // (B, Hkv, T, D), Hkv divides Hq
  Value* value = nullptr;           // (B, Hkv, T, Dv)
  Value* bias = nullptr;            // broadcasts to (B, Hq, S, T); null: none
  bool rows_may_be_hidden = false;  // a query may see no key at all: it gets zeros
  bool causal = false;              // query i sees the keys 0 to i, besides what the bias hides
  bool only_result = false;         // nobody reads scores or weights
  double scale = 0;                 // 0: 1 / sqrt(D)
  double softcap = 0;               // 0: none
};

struct AttentionResult {
  Value* result = nullptr;  // (B, Hq, S, Dv)
  // Null where only the result is wanted:
  Value* scores = nullptr;   // (B, Hq, S, T): scaled products,
  Value* capped = nullptr;   // after softcap,
  Value* biased = nullptr;   // with the bias,
  Value* weights = nullptr;  // after softmax
};
AttentionResult attend(Composer& make, const AttentionCore& core);

}  // namespace polyphase

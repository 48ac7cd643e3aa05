// Attention in FP32 without the matrix of scores: a tile is some queries of one head, and walks the keys block by
// block.
//
//            keys of one block                     m: largest score so far     l: sum of exp(score - m) so far
//   queries [ scores, then weights ] · V  → o      o: weighted sum of values so far
//
// When a block has a larger score, what was summed before is scaled by exp(old m - new m); y = o / l at the end. The
// result does not depend on which block held the largest score, up to rounding.
#pragma once

#include <cstdint>

namespace polyphase::cpu {

// An operand that is added to the scores, or none.
struct AttentionBias {
  bool present;
  int64_t strides[4];  // by (batch, head, query, key); 0 where it is broadcast
};

// Strides in elements by (batch, head, place, element of a head).
struct AttentionPlan {
  static constexpr int biases = 2;
  static constexpr int64_t inner_block = 256;  // sums of this many products are added up: shorter chains of roundings
  int64_t heads;
  int64_t heads_per_key;  // heads of q that share one of k and v
  int64_t queries;
  int64_t keys;
  int64_t width;
  int64_t value_width;
  int64_t q[4];
  int64_t k[4];
  int64_t v[4];
  int64_t y[4];
  AttentionBias bias[biases];
  int64_t tile_queries;
  int64_t query_tiles;
  int64_t block_keys;
  int64_t tiles;
  float scale;
  int32_t causal;
  int32_t guarded;
  // The worker's scratch, in floats from its start.
  int64_t rows;  // of q, scores and o: tile_queries and what the last group of rows computes beyond
  int64_t q_pitch;
  int64_t score_pitch;
  int64_t o_pitch;
  int64_t k_at;
  int64_t score_at;
  int64_t v_at;
  int64_t o_at;
  int64_t state_at;  // m, l, and the factors of this block: `rows` each
  int64_t scratch;
};

}  // namespace polyphase::cpu

// Distances between rows.
#include <cmath>

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"

namespace polyphase {
namespace {

// The p-norm over the last axis; with p = 0 how many are not 0.
Value* distance_norm(Composer& c, Value* difference, double p) {
  const std::int64_t last = c.rank(difference) - 1;
  if (p == 2) return c.reduce("reduce_l2", difference, {last}, false);
  if (p == 1) return c.reduce("reduce_l1", difference, {last}, false);
  Value* const size = c.op("abs", {difference});
  if (p == 0)
    return c.reduce("reduce_sum", c.op("min", {c.op("ceil", {size}), c.number(1, c.dtype(size))}), {last}, false);
  if (std::isinf(p)) return c.reduce("reduce_max", size, {last}, false);
  Value* const sum = c.reduce("reduce_sum", c.op("pow", {size, c.number(p, c.dtype(size))}), {last}, false);
  return c.op("pow", {sum, c.number(1 / p, c.dtype(sum))});
}

// Distances of all rows of x1 from all rows of x2: (…, P, M), (…, R, M) → (…, P, R).
Result<Values> convert_cdist(AtenNode& node) {
  Composer c(node);
  Value* const a = node.tensor("x1");
  Value* const b = node.tensor("x2");
  if (c.rank(a) < 2 || c.rank(b) < 2) return broken_program("cdist expects both operands to have two axes at least");
  const double p = node.real("p");
  if (p < 0) return broken_program("cdist only supports non-negative p values");
  return c.results({distance_norm(c, c.sub(c.unsqueeze(a, c.rank(a) - 1), c.unsqueeze(b, c.rank(b) - 2)), p)});
}

// Of every pair of rows i < j, in the order (0, 1), (0, 2), …, (1, 2), …: pair k is of row
//
//   i = floor((2n - 1 - sqrt((2n - 1)² - 8k)) / 2),   before which i·(2n - i - 1) / 2 pairs stand.
//
// The root of a square is exact in FP64, and where a row begins there stands one.
Result<Values> convert_pdist(AtenNode& node) {
  Composer c(node);
  Value* const x = node.tensor("self");
  if (c.rank(x) != 2) return broken_program("pdist only supports 2D tensors, got: " + std::to_string(c.rank(x)) + "D");
  const double p = node.real("p");
  if (p < 0) return broken_program("pdist only supports non-negative p values");
  const Dim rows = c.size(x, 0);
  const Dim pairs = floor_div(rows * (rows - 1), 2);
  Value* const pair = c.counting(pairs, DType::f64);
  Value* const twice = c.cast(c.dims({rows * 2 - 1}, true), DType::f64);
  Value* const root = c.op("sqrt", {c.sub(c.op("square", {twice}), c.mul(pair, 8))});
  Value* const first = c.op("floor", {c.mul(c.sub(twice, root), 0.5)});
  Value* const before = c.mul(c.mul(first, c.sub(twice, first)), 0.5);
  Value* const second = c.add(c.add(c.sub(pair, before), first), 1.0);
  Value* const from = c.gather(x, c.cast(first, DType::i64), 0);
  Value* const to = c.gather(x, c.cast(second, DType::i64), 0);
  return c.results({distance_norm(c, c.sub(from, to), p)});
}

}  // namespace

std::vector<AtenEntry> aten_distance_entries() {
  return {
      {"_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor", convert_cdist},
      {"_pdist_forward(Tensor self, float p=2.) -> Tensor", convert_pdist},
      {"cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor", convert_cdist},
      {"pdist(Tensor self, float p=2.) -> Tensor", convert_pdist},
  };
}

}  // namespace polyphase

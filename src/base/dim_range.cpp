// What the ranges of symbols say about a Dim: its own range, comparisons that surely hold, and min and max.
#include <algorithm>

#include "base/dim_expression.h"

namespace polyphase {
namespace {

std::int64_t saturate(__int128 value) {
  if (value > INT64_MAX) return INT64_MAX;
  if (value < INT64_MIN) return INT64_MIN;
  return static_cast<std::int64_t>(value);
}

// Ends at the int64 limits mean "unbounded"; they stay there.
std::int64_t add_end(std::int64_t a, std::int64_t b) {
  for (const std::int64_t end : {INT64_MAX, INT64_MIN}) {
    if (a == end || b == end) return end;
  }
  return saturate(static_cast<__int128>(a) + b);
}

std::int64_t multiply_end(std::int64_t a, std::int64_t b) { return saturate(static_cast<__int128>(a) * b); }

DimRange multiply_ranges(DimRange a, DimRange b) {
  const std::int64_t products[] = {multiply_end(a.low, b.low), multiply_end(a.low, b.high), multiply_end(a.high, b.low),
                                   multiply_end(a.high, b.high)};
  return {*std::min_element(std::begin(products), std::end(products)),
          *std::max_element(std::begin(products), std::end(products))};
}

DimRange range_of(const DimAtom& atom) {
  if (atom.kind == DimAtom::Kind::symbol) return atom.range;
  const DimRange a = atom.left.range();
  const DimRange b = atom.right.range();
  if (atom.kind == DimAtom::Kind::minimum) return {std::min(a.low, b.low), std::min(a.high, b.high)};
  if (atom.kind == DimAtom::Kind::maximum) return {std::max(a.low, b.low), std::max(a.high, b.high)};
  if (b.low <= 0) return {INT64_MIN, INT64_MAX};
  const auto divide = [](std::int64_t x, std::int64_t y) {
    return (x == INT64_MAX || x == INT64_MIN) ? x : floor_div(x, y);
  };
  return {std::min(divide(a.low, b.low), divide(a.low, b.high)),
          std::max(divide(a.high, b.low), divide(a.high, b.high))};
}

}  // namespace

DimRange Dim::range() const {
  if (poisoned_) return {INT64_MIN, INT64_MAX};
  if (expression_ == nullptr) return {constant_, constant_};
  DimRange sum{expression_->constant, expression_->constant};
  for (const Monomial& term : expression_->terms) {
    DimRange product{term.coefficient, term.coefficient};
    for (const AtomRef& atom : term.atoms) product = multiply_ranges(product, range_of(*atom));
    sum = {add_end(sum.low, product.low), add_end(sum.high, product.high)};
  }
  return sum;
}

Dim min(const Dim& a, const Dim& b) {
  if (a.overflowed() || b.overflowed()) return Dim::poisoned();
  if (a == b || surely_less_equal(a, b)) return a;
  if (surely_less_equal(b, a)) return b;
  const bool swap = b.text() < a.text();
  return DimExpression::from_atom(make_atom(DimAtom::Kind::minimum, swap ? b : a, swap ? a : b));
}

Dim max(const Dim& a, const Dim& b) {
  if (a.overflowed() || b.overflowed()) return Dim::poisoned();
  if (a == b || surely_less_equal(b, a)) return a;
  if (surely_less_equal(a, b)) return b;
  const bool swap = b.text() < a.text();
  return DimExpression::from_atom(make_atom(DimAtom::Kind::maximum, swap ? b : a, swap ? a : b));
}

bool surely_less_equal(const Dim& a, const Dim& b) {
  const Dim difference = b - a;
  return !difference.overflowed() && difference.range().low >= 0;
}

bool surely_different(const Dim& a, const Dim& b) {
  const Dim difference = b - a;
  if (difference.overflowed()) return false;
  const DimRange range = difference.range();
  return range.low > 0 || range.high < 0;
}

}  // namespace polyphase

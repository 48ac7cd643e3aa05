// Division of Dims: by a constant, and of one polynomial by another, so that equal quotients look equal.
#include <algorithm>
#include <numeric>

#include "base/dim_expression.h"

namespace polyphase {
namespace {

std::optional<Monomial> divide_terms(const Monomial& a, const Monomial& b) {
  if (b.coefficient == 0 || a.coefficient % b.coefficient != 0) return std::nullopt;
  Monomial out{a.coefficient / b.coefficient, a.atoms};
  for (const AtomRef& atom : b.atoms) {
    auto place =
        std::find_if(out.atoms.begin(), out.atoms.end(), [&](const AtomRef& x) { return x->key == atom->key; });
    if (place == out.atoms.end()) return std::nullopt;
    out.atoms.erase(place);
  }
  return out;
}

// Polynomial long division: a = quotient·b + remainder, taking out every leading term that divides.
bool divide_out(const Dim& a, const Dim& b, Dim& quotient, Dim& remainder) {
  const DimExpression divisor = DimExpression::expand(b);
  const std::vector<Monomial> divisor_terms = all_terms(divisor);
  quotient = Dim(0);
  remainder = Dim(0);
  Dim rest = a;
  for (std::size_t step = 0; step < 256 && !(rest == 0); ++step) {
    if (rest.overflowed()) return false;
    const std::vector<Monomial> terms = all_terms(DimExpression::expand(rest));
    const auto part = divide_terms(terms.front(), divisor_terms.front());
    DimExpression piece;
    if (!part.has_value()) {
      add_term(piece, terms.front());
      const Dim head = DimExpression::wrap(piece);
      remainder += head;
      rest -= head;
      continue;
    }
    add_term(piece, *part);
    const Dim factor = DimExpression::wrap(piece);
    quotient += factor;
    rest -= factor * b;
  }
  remainder += rest;
  return !remainder.overflowed() && !quotient.overflowed();
}

// floor(a / k) for a constant k > 0: takes the whole multiples of k out of every coefficient, then common factors, then
// a nested division by a constant, so that equal quotients look equal.
Dim divide_by_constant(const Dim& a, std::int64_t k) {
  DimExpression whole;
  DimExpression rest;
  for (const Monomial& term : all_terms(DimExpression::expand(a))) {
    const std::int64_t quotient = floor_div(term.coefficient, k);
    if (quotient != 0 && !add_term(whole, {quotient, term.atoms})) return Dim::poisoned();
    std::int64_t left = term.coefficient % k;  // quotient * k may leave int64
    if (left < 0) left += k;
    if (left != 0 && !add_term(rest, {left, term.atoms})) return Dim::poisoned();
  }
  const Dim taken = DimExpression::wrap(whole);
  if (rest.terms.empty()) return taken;  // 0 <= rest.constant < k
  std::int64_t common = k;
  for (const Monomial& term : rest.terms) common = std::gcd(common, term.coefficient);
  if (common > 1) {
    for (Monomial& term : rest.terms) term.coefficient /= common;
    rest.constant = floor_div(rest.constant, common);
    return taken + floor_div(DimExpression::wrap(rest), Dim(k / common));
  }
  if (rest.terms.size() == 1 && rest.constant == 0 && rest.terms[0].coefficient == 1 &&
      rest.terms[0].atoms.size() == 1) {
    const DimAtom& atom = *rest.terms[0].atoms[0];
    std::int64_t product = 0;
    if (atom.kind == DimAtom::Kind::quotient && atom.right.is_constant() &&
        multiply_checked(atom.right.value(), k, product)) {
      return taken + floor_div(atom.left, Dim(product));
    }
  }
  const Dim remainder = DimExpression::wrap(rest);
  const DimRange range = remainder.range();
  if (range.low >= 0 && range.high < k) return taken;
  return taken + DimExpression::from_atom(make_atom(DimAtom::Kind::quotient, remainder, Dim(k)));
}

}  // namespace

Dim floor_div(const Dim& a, const Dim& b) {
  if (a.overflowed() || b.overflowed() || b == 0) return Dim::poisoned();
  if (a.is_constant() && b.is_constant()) {
    return a.value() == INT64_MIN && b.value() == -1 ? Dim::poisoned() : Dim(floor_div(a.value(), b.value()));
  }
  if (b.is_constant()) return b.value() > 0 ? divide_by_constant(a, b.value()) : divide_by_constant(-a, -b.value());
  Dim quotient;
  Dim remainder;
  if (!divide_out(a, b, quotient, remainder)) return Dim::poisoned();
  if (remainder == 0) return quotient;
  const DimRange left = remainder.range();
  if (left.low >= 0 && surely_less_equal(remainder + 1, b)) return quotient;
  return quotient + DimExpression::from_atom(make_atom(DimAtom::Kind::quotient, remainder, b));
}

Dim floor_mod(const Dim& a, const Dim& b) { return a - b * floor_div(a, b); }
Dim ceil_div(const Dim& a, const Dim& b) { return -floor_div(-a, b); }

}  // namespace polyphase

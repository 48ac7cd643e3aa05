// The terms of Dim's normal form: their order, sums and products, and the text that names an atom.
#include "base/dim_expression.h"

#include <algorithm>

namespace polyphase {

int compare_atoms(const std::vector<AtomRef>& a, const std::vector<AtomRef>& b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const int order = a[i]->key.compare(b[i]->key);
    if (order != 0) return order;
  }
  return 0;
}

bool add_term(DimExpression& sum, const Monomial& term) {
  if (term.atoms.empty()) return add_checked(sum.constant, term.coefficient, sum.constant);
  auto place = std::lower_bound(sum.terms.begin(), sum.terms.end(), term, [](const Monomial& a, const Monomial& b) {
    return compare_atoms(a.atoms, b.atoms) < 0;
  });
  if (place != sum.terms.end() && compare_atoms(place->atoms, term.atoms) == 0) {
    if (!add_checked(place->coefficient, term.coefficient, place->coefficient)) return false;
    if (place->coefficient == 0) sum.terms.erase(place);
  } else if (term.coefficient != 0) {
    sum.terms.insert(place, term);
  }
  return true;
}

bool multiply_terms(const Monomial& a, const Monomial& b, Monomial& out) {
  if (!multiply_checked(a.coefficient, b.coefficient, out.coefficient)) return false;
  out.atoms = a.atoms;
  out.atoms.insert(out.atoms.end(), b.atoms.begin(), b.atoms.end());
  std::sort(out.atoms.begin(), out.atoms.end(), [](const AtomRef& x, const AtomRef& y) { return x->key < y->key; });
  return true;
}

std::vector<Monomial> all_terms(const DimExpression& expression) {
  std::vector<Monomial> terms = expression.terms;
  if (expression.constant != 0) terms.push_back({expression.constant, {}});
  return terms;
}

namespace {

std::string parenthesised(const Dim& dim) {
  return dim.is_constant() || dim.is_symbol() ? dim.text() : "(" + dim.text() + ")";
}

}  // namespace

DimAtom make_atom(DimAtom::Kind kind, const Dim& a, const Dim& b) {
  std::string key;
  if (kind == DimAtom::Kind::quotient) {
    key = parenthesised(a) + "//" + parenthesised(b);
  } else {
    key = (kind == DimAtom::Kind::minimum ? "min(" : "max(") + a.text() + ", " + b.text() + ")";
  }
  return {kind, std::move(key), {}, a, b};
}

}  // namespace polyphase

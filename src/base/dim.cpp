// Dim: its arithmetic, its values and its text, over the normal form of dim_expression.h.
#include "base/dim.h"

#include <algorithm>

#include "base/check.h"
#include "base/dim_expression.h"

namespace polyphase {

namespace {

constexpr std::size_t max_terms = 4096;  // a hostile model could multiply sums without end

std::optional<std::int64_t> evaluate_atom(const DimAtom& atom, const DimBindings& bindings) {
  if (atom.kind == DimAtom::Kind::symbol) {
    const auto found = bindings.find(atom.key);
    return found == bindings.end() ? std::nullopt : std::optional<std::int64_t>(found->second);
  }
  const auto a = atom.left.evaluate(bindings);
  const auto b = atom.right.evaluate(bindings);
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  if (atom.kind == DimAtom::Kind::minimum) return std::min(*a, *b);
  if (atom.kind == DimAtom::Kind::maximum) return std::max(*a, *b);
  if (*b == 0 || (*a == INT64_MIN && *b == -1)) return std::nullopt;
  return floor_div(*a, *b);
}

}  // namespace

Dim::Dim(std::int64_t value) : constant_(value) {}

Dim Dim::poisoned() {
  Dim out;
  out.poisoned_ = true;
  return out;
}

Dim Dim::symbol(std::string_view name, DimRange range) {
  CHECK(!name.empty());
  if (range.low == range.high) return {range.low};
  return DimExpression::from_atom({DimAtom::Kind::symbol, std::string(name), range, {}, {}});
}

std::optional<std::int64_t> Dim::constant() const {
  return is_constant() ? std::optional<std::int64_t>(constant_) : std::nullopt;
}

std::int64_t Dim::value() const {
  CHECK(is_constant());
  return constant_;
}

bool Dim::is_symbol() const {
  return expression_ != nullptr && expression_->constant == 0 && expression_->terms.size() == 1 &&
         expression_->terms[0].coefficient == 1 && expression_->terms[0].atoms.size() == 1 &&
         expression_->terms[0].atoms[0]->kind == DimAtom::Kind::symbol;
}

std::string Dim::symbol_name() const {
  CHECK(is_symbol());
  return expression_->terms[0].atoms[0]->key;
}

Dim Dim::operator+(const Dim& other) const {
  if (poisoned_ || other.poisoned_) return poisoned();
  if (is_constant() && other.is_constant()) {
    std::int64_t sum = 0;
    return add_checked(constant_, other.constant_, sum) ? Dim(sum) : poisoned();
  }
  DimExpression sum = DimExpression::expand(*this);
  for (const Monomial& term : all_terms(DimExpression::expand(other))) {
    if (!add_term(sum, term) || sum.terms.size() > max_terms) return poisoned();
  }
  return DimExpression::wrap(std::move(sum));
}

Dim Dim::operator-() const { return *this * Dim(-1); }
Dim Dim::operator-(const Dim& other) const { return *this + (-other); }

Dim Dim::operator*(const Dim& other) const {
  if (poisoned_ || other.poisoned_) return poisoned();
  if (is_constant() && other.is_constant()) {
    std::int64_t product = 0;
    return multiply_checked(constant_, other.constant_, product) ? Dim(product) : poisoned();
  }
  DimExpression sum;
  for (const Monomial& a : all_terms(DimExpression::expand(*this))) {
    for (const Monomial& b : all_terms(DimExpression::expand(other))) {
      Monomial product;
      if (!multiply_terms(a, b, product) || product.atoms.size() > 64) return poisoned();
      if (!add_term(sum, product) || sum.terms.size() > max_terms) return poisoned();
    }
  }
  return DimExpression::wrap(std::move(sum));
}

bool Dim::operator==(const Dim& other) const {
  if (poisoned_ || other.poisoned_) return false;
  if (expression_ == other.expression_) return expression_ != nullptr || constant_ == other.constant_;
  if (expression_ == nullptr || other.expression_ == nullptr) return false;
  const DimExpression& a = *expression_;
  const DimExpression& b = *other.expression_;
  return a.constant == b.constant && std::equal(a.terms.begin(), a.terms.end(), b.terms.begin(), b.terms.end(),
                                                [](const Monomial& x, const Monomial& y) {
                                                  return x.coefficient == y.coefficient &&
                                                         compare_atoms(x.atoms, y.atoms) == 0;
                                                });
}

std::optional<std::int64_t> Dim::evaluate(const DimBindings& bindings) const {
  if (poisoned_) return std::nullopt;
  if (expression_ == nullptr) return constant_;
  std::int64_t sum = expression_->constant;
  for (const Monomial& term : expression_->terms) {
    std::int64_t product = term.coefficient;
    for (const AtomRef& atom : term.atoms) {
      const auto value = evaluate_atom(*atom, bindings);
      if (!value.has_value() || !multiply_checked(product, *value, product)) return std::nullopt;
    }
    if (!add_checked(sum, product, sum)) return std::nullopt;
  }
  return sum;
}

Dim Dim::substitute(const std::map<std::string, Dim, std::less<>>& sizes) const {
  if (expression_ == nullptr) return *this;
  Dim sum(expression_->constant);
  for (const Monomial& term : expression_->terms) {
    Dim product(term.coefficient);
    for (const AtomRef& atom : term.atoms) {
      DimExpression single;
      single.terms.push_back({1, {atom}});
      switch (atom->kind) {
        case DimAtom::Kind::symbol: {
          const auto found = sizes.find(atom->key);
          product *= found == sizes.end() ? DimExpression::wrap(std::move(single)) : found->second;
          break;
        }
        case DimAtom::Kind::quotient:
          product *= floor_div(atom->left.substitute(sizes), atom->right.substitute(sizes));
          break;
        case DimAtom::Kind::minimum:
          product *= min(atom->left.substitute(sizes), atom->right.substitute(sizes));
          break;
        case DimAtom::Kind::maximum:
          product *= max(atom->left.substitute(sizes), atom->right.substitute(sizes));
          break;
      }
    }
    sum += product;
  }
  return sum;
}

void Dim::collect_symbols(std::map<std::string, DimRange, std::less<>>& into) const {
  if (expression_ == nullptr) return;
  for (const Monomial& term : expression_->terms) {
    for (const AtomRef& atom : term.atoms) {
      if (atom->kind == DimAtom::Kind::symbol) {
        into.emplace(atom->key, atom->range);
      } else {
        atom->left.collect_symbols(into);
        atom->right.collect_symbols(into);
      }
    }
  }
}

std::string Dim::text() const {
  if (poisoned_) return "overflow";
  if (expression_ == nullptr) return std::to_string(constant_);
  std::string out;
  for (const Monomial& term : all_terms(*expression_)) {
    const bool negative = term.coefficient < 0;
    if (!out.empty()) {
      out += negative ? " - " : " + ";
    } else if (negative) {
      out += "-";
    }
    std::string magnitude = std::to_string(term.coefficient);
    if (negative) magnitude.erase(0, 1);
    const bool shows_number = term.atoms.empty() || magnitude != "1";
    if (shows_number) out += magnitude;
    for (std::size_t i = 0; i < term.atoms.size(); ++i) {
      if (shows_number || i > 0) out += "*";
      const DimAtom& atom = *term.atoms[i];
      // A leading minus would bind to the dividend.
      const bool lone = term.atoms.size() == 1 && !shows_number && !negative && expression_->terms.size() == 1;
      out += atom.kind == DimAtom::Kind::quotient && !lone ? "(" + atom.key + ")" : atom.key;
    }
  }
  return out;
}

}  // namespace polyphase

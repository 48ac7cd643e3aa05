// Dim's normal form: a sorted sum of monomials over atoms, each atom known by its text. Seen by the files of Dim alone.
#pragma once

#include <vector>

#include "base/dim.h"

namespace polyphase {

struct DimAtom {
  enum class Kind : std::uint8_t { symbol, quotient, minimum, maximum };
  Kind kind;
  std::string key;  // the text; equal text means equal atom
  DimRange range;   // of a symbol
  Dim left, right;  // of the others
};

using AtomRef = std::shared_ptr<const DimAtom>;

// coefficient × product of atoms (sorted by key; powers repeat the atom)
struct Monomial {
  std::int64_t coefficient = 0;
  std::vector<AtomRef> atoms;
};

struct DimExpression {
  // a mod b repeats a, so nested ones double in size each time: without this bound a line of text could fill the
  // memory.
  static constexpr std::size_t max_text_size = 65536;

  std::int64_t constant = 0;
  std::vector<Monomial> terms;  // sorted, no zero coefficient, never empty in a Dim

  static std::size_t text_size(const DimExpression& expression) {
    std::size_t size = 0;
    for (const Monomial& term : expression.terms) {
      for (const AtomRef& atom : term.atoms) size += atom->key.size();
    }
    return size;
  }

  static const DimExpression* of(const Dim& dim) { return dim.expression_.get(); }
  static DimExpression expand(const Dim& dim) {
    if (dim.expression_ != nullptr) return *dim.expression_;
    return {dim.constant_, {}};
  }
  static Dim wrap(DimExpression expression) {
    Dim out;
    if (expression.terms.empty()) {
      out.constant_ = expression.constant;
    } else if (text_size(expression) > max_text_size) {
      return Dim::poisoned();
    } else {
      out.expression_ = std::make_shared<const DimExpression>(std::move(expression));
    }
    return out;
  }
  static Dim from_atom(DimAtom atom) {
    DimExpression expression;
    expression.terms.push_back({1, {std::make_shared<const DimAtom>(std::move(atom))}});
    return wrap(std::move(expression));
  }
};

inline bool add_checked(std::int64_t a, std::int64_t b, std::int64_t& out) {
  return !__builtin_add_overflow(a, b, &out);
}
inline bool multiply_checked(std::int64_t a, std::int64_t b, std::int64_t& out) {
  return !__builtin_mul_overflow(a, b, &out);
}

// By their texts, products of more atoms first: any total order would do; this one prints H*W before H before 1.
int compare_atoms(const std::vector<AtomRef>& a, const std::vector<AtomRef>& b);
// Adds to the sum, or multiplies; false: a coefficient leaves int64.
bool add_term(DimExpression& sum, const Monomial& term);
bool multiply_terms(const Monomial& a, const Monomial& b, Monomial& out);
// The terms in order, the constant last if it is not 0.
std::vector<Monomial> all_terms(const DimExpression& expression);
DimAtom make_atom(DimAtom::Kind kind, const Dim& a, const Dim& b);

}  // namespace polyphase

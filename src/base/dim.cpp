// Dim's normal form: a sorted sum of monomials over atoms, each atom known by its text.
#include "base/dim.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

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
  static constexpr std::size_t max_text_size = 8192;

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

namespace {

bool add_checked(std::int64_t a, std::int64_t b, std::int64_t& out) { return !__builtin_add_overflow(a, b, &out); }
bool multiply_checked(std::int64_t a, std::int64_t b, std::int64_t& out) { return !__builtin_mul_overflow(a, b, &out); }

// Graded order: more atoms first, then by text. Any total order would do; this one prints H*W before H before 1.
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

constexpr std::size_t max_terms = 4096;  // a hostile model could multiply sums without end

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

std::string parenthesised(const Dim& dim) {
  return dim.is_constant() || dim.is_symbol() ? dim.text() : "(" + dim.text() + ")";
}

DimAtom make_atom(DimAtom::Kind kind, const Dim& a, const Dim& b) {
  std::string key;
  if (kind == DimAtom::Kind::quotient) {
    key = parenthesised(a) + "//" + parenthesised(b);
  } else {
    key = (kind == DimAtom::Kind::minimum ? "min(" : "max(") + a.text() + ", " + b.text() + ")";
  }
  return {kind, std::move(key), {}, a, b};
}

// floor(a / k) for a constant k > 0: takes the whole multiples of k out of every coefficient, then common factors, then
// a nested division by a constant, so that equal quotients look equal.
Dim divide_by_constant(const Dim& a, std::int64_t k) {
  DimExpression whole;
  DimExpression rest;
  for (const Monomial& term : all_terms(DimExpression::expand(a))) {
    const std::int64_t quotient = floor_div(term.coefficient, k);
    if (quotient != 0 && !add_term(whole, {quotient, term.atoms})) return Dim::poisoned();
    const std::int64_t left = term.coefficient - quotient * k;
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

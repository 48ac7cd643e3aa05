// A recursive reader of calls: Name(argument, …, keyword=word), integers, quoted names.
#include "import/torch/sym_expr.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>

#include "wire/printable.h"

namespace polyphase {
namespace {

constexpr int max_expression_depth = 100;
constexpr const char* advice =
    "Mark that size as static for torch.export, or compute it from the inputs' shapes with +, -, *, // and %.";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

class TermReader {
 public:
  explicit TermReader(std::string_view text) : text_(text) {}

  Result<SymbolicTerm> read() {
    TRY(SymbolicTerm term, term_at(0));
    skip();
    if (at_ != text_.size()) return refuse();
    return term;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Error refuse() const {
    return Error{ErrorCode::unsupported, "the symbolic size " + wire::quoted_name(text_) + " cannot be read.", advice};
  }
  std::string_view word() {
    skip();
    const std::size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Result<SymbolicTerm> term_at(int depth) {
    if (depth > max_expression_depth) return refuse();
    SymbolicTerm out;
    out.word = word();
    if (out.word.empty()) return refuse();
    if (!take('(')) return out;
    while (!take(')')) {
      if (!out.parts.empty() || !out.quoted.empty()) {
        if (!take(',')) return refuse();
      }
      if (take('\'')) {
        const std::size_t end = text_.find('\'', at_);
        if (end == std::string_view::npos) return refuse();
        out.quoted = text_.substr(at_, end - at_);
        at_ = end + 1;
        continue;
      }
      TRY(SymbolicTerm part, term_at(depth + 1));
      if (take('=')) {
        (void)word();  // an assumption of sympy: positive=True
        if (out.parts.empty() && out.quoted.empty()) return refuse();
        continue;
      }
      out.parts.push_back(std::move(part));
    }
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<std::int64_t> integer_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// numerator / denominator, which only the roundings turn into a size.
struct Quotient {
  Dim numerator;
  Dim denominator = 1;
};

class Evaluator {
 public:
  Evaluator(std::string_view text, const SymbolMeaning& meaning) : text_(text), meaning_(meaning) {}

  Result<Dim> size(const SymbolicTerm& term) {
    TRY(const Quotient value, quotient(term));
    if (value.denominator == 1) return value.numerator;
    return floor_div(value.numerator, value.denominator);  // sympy knows that it divides exactly
  }

  Result<std::vector<SymbolicRelation>> relations(const SymbolicTerm& term) {
    using Relation = DimCheck::Relation;
    if (term.word == "true" || term.word == "True") return std::vector<SymbolicRelation>{};
    if (term.word == "And") {
      std::vector<SymbolicRelation> out;
      for (const SymbolicTerm& part : term.parts) {
        TRY(std::vector<SymbolicRelation> more, relations(part));
        out.insert(out.end(), more.begin(), more.end());
      }
      return out;
    }
    if (term.parts.size() != 2) return refuse();
    TRY(const Dim left, size(term.parts[0]));
    TRY(const Dim right, size(term.parts[1]));
    const auto one = [](Dim a, Relation relation, Dim b) {
      return std::vector<SymbolicRelation>{{std::move(a), relation, std::move(b)}};
    };
    if (term.word == "Equality" || term.word == "Eq") return one(left, Relation::equal, right);
    if (term.word == "LessThan" || term.word == "Le") return one(left, Relation::less_equal, right);
    if (term.word == "GreaterThan" || term.word == "Ge") return one(right, Relation::less_equal, left);
    if (term.word == "StrictLessThan" || term.word == "Lt") return one(left + 1, Relation::less_equal, right);
    if (term.word == "StrictGreaterThan" || term.word == "Gt") return one(right + 1, Relation::less_equal, left);
    return refuse();
  }

 private:
  Error refuse() const {
    return Error{ErrorCode::unsupported,
                 "the symbolic size " + wire::quoted_name(text_) + " is beyond the arithmetic of sizes.", advice};
  }

  Result<Quotient> quotient(const SymbolicTerm& term) {
    if (const auto number = integer_of(term.word); number.has_value() && term.parts.empty()) return Quotient{*number};
    if (term.word == "Float") return fraction(std::strtod(std::string(term.quoted).c_str(), nullptr));
    if (!term.quoted.empty()) {
      TRY(Dim dim, meaning_(term.quoted));
      return Quotient{std::move(dim)};
    }
    if (term.word == "Rational" && term.parts.size() == 2) {
      TRY(const Dim above, size(term.parts[0]));
      TRY(const Dim below, size(term.parts[1]));
      return Quotient{above, below};
    }
    if (term.word == "Mul") {
      Quotient product{1};
      for (const SymbolicTerm& part : term.parts) {
        TRY(const Quotient factor, quotient(part));
        product.numerator *= factor.numerator;
        product.denominator *= factor.denominator;
      }
      return product;
    }
    if ((term.word == "IntTrueDiv" || term.word == "FloatTrueDiv") && term.parts.size() == 2) {
      TRY(const Quotient above, quotient(term.parts[0]));
      TRY(const Quotient below, quotient(term.parts[1]));
      return Quotient{above.numerator * below.denominator, above.denominator * below.numerator};
    }
    if (term.word == "ToFloat" && term.parts.size() == 1) return quotient(term.parts[0]);
    if ((term.word == "CeilToInt" || term.word == "ceiling") && term.parts.size() == 1) {
      TRY(const Quotient value, quotient(term.parts[0]));
      return Quotient{ceil_div(value.numerator, value.denominator)};
    }
    TRY(Dim whole, whole_size(term));
    return Quotient{std::move(whole)};
  }

  // A float that is a fraction with a small power of two below, such as 1.5: with it floors and ceilings stay exact.
  Result<Quotient> fraction(double number) const {
    constexpr double largest = 1 << 20;
    for (std::int64_t below = 1; below <= (1 << 10); below *= 2) {
      const double above = number * static_cast<double>(below);
      if (std::abs(above) <= largest && above == std::floor(above))
        return Quotient{static_cast<std::int64_t>(above), below};
    }
    return refuse();
  }

  Result<Dim> whole_size(const SymbolicTerm& term) {
    std::vector<Dim> parts;
    for (const SymbolicTerm& part : term.parts) {
      TRY(Dim value, size(part));
      parts.push_back(std::move(value));
    }
    if (parts.empty()) return refuse();
    const std::string_view word = term.word;
    if (parts.size() == 1 && (word == "Integer" || word == "Identity" || word == "FloorToInt" || word == "TruncToInt" ||
                              word == "ToFloat" || word == "floor"))
      return parts[0];
    if (word == "Add") return fold(parts, [](const Dim& a, const Dim& b) { return a + b; });
    if (word == "Max") return fold(parts, [](const Dim& a, const Dim& b) { return max(a, b); });
    if (word == "Min") return fold(parts, [](const Dim& a, const Dim& b) { return min(a, b); });
    if (parts.size() == 2 && (word == "FloorDiv" || word == "CleanDiv")) return floor_div(parts[0], parts[1]);
    if (parts.size() == 2 && (word == "Mod" || word == "PythonMod")) return floor_mod(parts[0], parts[1]);
    constexpr std::int64_t most_factors = 8;
    if (parts.size() == 2 && (word == "Pow" || word == "PowByNatural") && parts[1].is_constant() &&
        parts[1].value() >= 0 && parts[1].value() <= most_factors) {
      Dim power = 1;
      for (std::int64_t i = 0; i < parts[1].value(); ++i) power *= parts[0];
      return power;
    }
    return refuse();
  }

  template <typename F>
  static Dim fold(const std::vector<Dim>& parts, F f) {
    Dim out = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) out = f(out, parts[i]);
    return out;
  }

  std::string_view text_;
  const SymbolMeaning& meaning_;
};

}  // namespace

Result<SymbolicTerm> parse_term(std::string_view expression) { return TermReader(expression).read(); }

Result<Dim> symbolic_size(const SymbolicTerm& term, std::string_view expression, const SymbolMeaning& meaning) {
  return Evaluator(expression, meaning).size(term);
}

namespace {

void collect_unknown(const SymbolicTerm& term, const std::function<bool(std::string_view)>& known,
                     std::set<std::string_view>& found) {
  if (term.word == "Symbol" && !known(term.quoted)) found.insert(term.quoted);
  for (const SymbolicTerm& part : term.parts) collect_unknown(part, known, found);
}

}  // namespace

std::string only_unknown(std::string_view expression, const std::function<bool(std::string_view)>& known) {
  const auto term = parse_term(expression);
  std::set<std::string_view> found;
  if (term.ok()) collect_unknown(*term, known, found);
  return found.size() == 1 ? std::string(*found.begin()) : "";
}

Result<Dim> parse_symbolic(std::string_view expression, const SymbolMeaning& meaning) {
  TRY(const SymbolicTerm term, parse_term(expression));
  return symbolic_size(term, expression, meaning);
}

Result<std::vector<SymbolicRelation>> parse_condition(std::string_view expression, const SymbolMeaning& meaning) {
  TRY(const SymbolicTerm term, TermReader(expression).read());
  return Evaluator(expression, meaning).relations(term);
}

}  // namespace polyphase

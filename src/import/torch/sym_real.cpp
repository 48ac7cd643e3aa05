// Floats: constants are computed here, all else by nodes in f64, as Python computes.
#include "import/torch/sym_real.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "import/compose/composer.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

class RealBuilder {
 public:
  RealBuilder(std::string_view text, Emitter& node, const SymbolMeaning& size,
              const std::map<std::string, Value*, std::less<>>& reals)
      : text_(text), node_(node), size_(size), reals_(reals) {}

  Result<SymbolicReal> build(const SymbolicTerm& term) {
    if (term.word == "Float") return SymbolicReal{std::strtod(std::string(term.quoted).c_str(), nullptr)};
    if (term.word == "Symbol") {
      const auto found = reals_.find(term.quoted);
      if (found != reals_.end()) return SymbolicReal{0, found->second};
      return of_size(term);
    }
    // Whole numbers stay exact as long as they are sizes.
    if (term.word == "ToFloat" || term.word == "Integer" || term.parts.empty()) return of_size(term);
    std::vector<SymbolicReal> parts;
    for (const SymbolicTerm& part : term.parts) {
      TRY(const SymbolicReal one, build(part));
      parts.push_back(one);
    }
    return combined(term.word, parts);
  }

 private:
  Error refuse() const {
    return lacking("the symbolic float " + wire::quoted_name(text_) + " is beyond the arithmetic of floats.",
                   "Compute it from fixed numbers, or export the program with fixed sizes.");
  }

  Result<SymbolicReal> of_size(const SymbolicTerm& term) {
    TRY(const Dim size, symbolic_size(term, text_, size_));
    if (size.is_constant()) return SymbolicReal{static_cast<double>(size.value())};
    TRY(Value * data, node_.emit("cast", Attributes({{"to", DType::f64}}), {node_.sizes_as_data({size}, true)}));
    return SymbolicReal{0, data};
  }

  Value* value(const SymbolicReal& real) {
    return real.data != nullptr ? real.data : node_.scalar(DType::f64, real.number);
  }

  template <typename F>
  Result<SymbolicReal> joined(std::string_view op, const std::vector<SymbolicReal>& parts, F known) {
    SymbolicReal out = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (out.data == nullptr && parts[i].data == nullptr) {
        out.number = known(out.number, parts[i].number);
      } else {
        TRY(out.data, node_.emit(op, {}, {value(out), value(parts[i])}));
      }
    }
    return out;
  }

  template <typename F>
  Result<SymbolicReal> applied(std::string_view op, SymbolicReal real, F known) {
    if (real.data == nullptr) return SymbolicReal{known(real.number)};
    TRY(real.data, node_.emit(op, {}, {real.data}));
    return real;
  }

  Result<SymbolicReal> combined(std::string_view word, const std::vector<SymbolicReal>& parts) {
    if (word == "Add") return joined("add", parts, [](double a, double b) { return a + b; });
    if (word == "Mul") return joined("mul", parts, [](double a, double b) { return a * b; });
    if (word == "Max") return joined("max", parts, [](double a, double b) { return std::max(a, b); });
    if (word == "Min") return joined("min", parts, [](double a, double b) { return std::min(a, b); });
    if (parts.size() == 2) {
      if (word == "FloatTrueDiv" || word == "IntTrueDiv" || word == "Rational")
        return joined("div", parts, [](double a, double b) { return a / b; });
      if (word == "Pow" || word == "FloatPow" || word == "PowByNatural")
        return joined("pow", parts, [](double a, double b) { return std::pow(a, b); });
    }
    if (parts.size() == 1) {
      if (word == "OpaqueUnaryFn_sqrt") return applied("sqrt", parts[0], [](double x) { return std::sqrt(x); });
      if (word == "OpaqueUnaryFn_exp" || word == "exp")
        return applied("exp", parts[0], [](double x) { return std::exp(x); });
      if (word == "OpaqueUnaryFn_log" || word == "log")
        return applied("log", parts[0], [](double x) { return std::log(x); });
      if (word == "Abs") return applied("abs", parts[0], [](double x) { return std::abs(x); });
      if (word == "FloorToInt" || word == "floor")
        return applied("floor", parts[0], [](double x) { return std::floor(x); });
      if (word == "CeilToInt" || word == "ceiling")
        return applied("ceil", parts[0], [](double x) { return std::ceil(x); });
    }
    return refuse();
  }

  std::string_view text_;
  Emitter& node_;
  const SymbolMeaning& size_;
  const std::map<std::string, Value*, std::less<>>& reals_;
};

}  // namespace

Result<SymbolicReal> build_real(std::string_view expression, Emitter& node, const SymbolMeaning& size,
                                const std::map<std::string, Value*, std::less<>>& reals) {
  TRY(const SymbolicTerm term, parse_term(expression));
  return RealBuilder(expression, node, size, reals).build(term);
}

}  // namespace polyphase

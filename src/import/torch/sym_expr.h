// Symbolic numbers of a program: sympy's srepr becomes Dims and conditions on Dims.
//
//   "Add(FloorDiv(Add(Symbol('s53', positive=True, integer=True), Integer(-1)), Integer(2)), Integer(1))" = (s53 -
//   1)//2 + 1
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dim.h"
#include "base/result.h"
#include "ops/op.h"

namespace polyphase {

// A call or a number: "Add" with parts, "17" without.
struct SymbolicTerm {
  std::string_view word;
  std::string_view quoted;  // the quoted argument of Symbol('s0', …)
  std::vector<SymbolicTerm> parts;
};
// The terms point into the expression.
Result<SymbolicTerm> parse_term(std::string_view expression);

// What a symbol stands for; an Error if it has no meaning here.
using SymbolMeaning = std::function<Result<Dim>(std::string_view name)>;

Result<Dim> parse_symbolic(std::string_view expression, const SymbolMeaning& meaning);
// The same of a part of an expression, which messages show.
Result<Dim> symbolic_size(const SymbolicTerm& term, std::string_view expression, const SymbolMeaning& meaning);
// The only symbol that `known` does not name; empty: there is none, or more than one.
std::string only_unknown(std::string_view expression, const std::function<bool(std::string_view)>& known);

// left RELATION right.
struct SymbolicRelation {
  Dim left;
  DimCheck::Relation relation = DimCheck::Relation::equal;
  Dim right;
};
// The relations that must all hold for the condition to be true. Error: unsupported, for what is no such list (or, not
// equal).
Result<std::vector<SymbolicRelation>> parse_condition(std::string_view expression, const SymbolMeaning& meaning);

}  // namespace polyphase

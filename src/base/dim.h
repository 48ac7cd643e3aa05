// Dim: a tensor size as exact arithmetic over named symbols, in one normal form, so that equal sizes compare equal.
//
//   dim  := integer | polynomial over atoms with int64 coefficients
//   atom := symbol | floor(dim / dim) | min(dim, dim) | max(dim, dim)
//
// a mod b is written a - b*floor(a/b), so it needs no atom. Division is floor division (towards minus infinity).
// Arithmetic is checked: what leaves int64, divides by the constant 0 or grows beyond all reason becomes the poisoned
// Dim, which stays so (overflowed()); shape rules turn it into an Error.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace polyphase {

// The values a size may take, both ends included.
struct DimRange {
  std::int64_t low = 0;
  std::int64_t high = INT64_MAX;
  bool operator==(const DimRange&) const = default;
};

// Symbol name → value, for evaluation.
using DimBindings = std::map<std::string, std::int64_t, std::less<>>;

struct DimExpression;  // the polynomial; internal

class Dim {
 public:
  Dim() = default;          // 0
  Dim(std::int64_t value);  // NOLINT(google-explicit-constructor): integers are sizes
  static Dim symbol(std::string_view name, DimRange range = {});
  static Dim poisoned();

  bool is_constant() const { return expression_ == nullptr && !poisoned_; }
  bool overflowed() const { return poisoned_; }
  std::optional<std::int64_t> constant() const;
  std::int64_t value() const;       // CHECKs is_constant()
  bool is_symbol() const;           // exactly one symbol, nothing else
  std::string symbol_name() const;  // CHECKs is_symbol()

  Dim operator+(const Dim& other) const;
  Dim operator-(const Dim& other) const;
  Dim operator*(const Dim& other) const;
  Dim operator-() const;
  Dim& operator+=(const Dim& other) { return *this = *this + other; }
  Dim& operator-=(const Dim& other) { return *this = *this - other; }
  Dim& operator*=(const Dim& other) { return *this = *this * other; }

  // Same normal form: the sizes are equal for every value of the symbols. (False does not prove a difference.)
  bool operator==(const Dim& other) const;
  bool operator==(std::int64_t other) const { return *this == Dim(other); }

  // Interval that surely holds every value, from the symbols' ranges.
  DimRange range() const;

  // The value under the bindings; nothing if a symbol is unbound, a divisor is 0, or the arithmetic leaves int64.
  std::optional<std::int64_t> evaluate(const DimBindings& bindings) const;
  // Replaces symbols by sizes; what is not in the map stays.
  Dim substitute(const std::map<std::string, Dim, std::less<>>& sizes) const;
  void collect_symbols(std::map<std::string, DimRange, std::less<>>& into) const;

  // "2*H + 1", "(H + 1)//2", "max(H, 3)"; parse_dim reads it back.
  std::string text() const;

 private:
  friend struct DimExpression;
  std::int64_t constant_ = 0;
  bool poisoned_ = false;
  std::shared_ptr<const DimExpression> expression_;  // null: constant_
};

Dim floor_div(const Dim& a, const Dim& b);
Dim floor_mod(const Dim& a, const Dim& b);
Dim ceil_div(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);

bool surely_less_equal(const Dim& a, const Dim& b);  // a <= b for all values in range
bool surely_different(const Dim& a, const Dim& b);   // a != b for all values in range

// Reads the text form. Symbols found in `symbols` keep their ranges; unknown ones get the default range.
Result<Dim> parse_dim(std::string_view text, const std::map<std::string, DimRange, std::less<>>& symbols = {});

// Integer forms of the same division, for kernels and references. b > 0.
constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
constexpr std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return a % b + (a % b < 0 ? b : 0); }
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

}  // namespace polyphase

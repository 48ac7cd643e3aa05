// Reads Dim's text form by recursive descent: sum := product (('+'|'-') product)*, product := unary (('*'|'//'|'%')
// unary)*.
#include <cctype>
#include <charconv>

#include "base/dim.h"

namespace polyphase {
namespace {

class DimParser {
 public:
  DimParser(std::string_view text, const std::map<std::string, DimRange, std::less<>>& symbols)
      : text_(text), symbols_(symbols) {}

  Result<Dim> parse() {
    TRY(Dim dim, sum());
    skip_space();
    if (at_ != text_.size()) return refuse("an operator or the end");
    if (dim.overflowed())
      return Error{ErrorCode::invalid_argument, "size expression '" + shown() + "' leaves 64-bit arithmetic.",
                   "Use smaller numbers."};
    return dim;
  }

 private:
  static constexpr int max_depth = 100;

  std::string shown() const { return std::string(text_.substr(0, 200)); }
  Error refuse(const std::string& expected) const {
    return {
        ErrorCode::invalid_argument,
        "size expression '" + shown() + "': expected " + expected + " at character " + std::to_string(at_ + 1) + ".",
        "Write integers, names, + - * // % ( ), min(a, b) and max(a, b)."};
  }
  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  Result<Dim> sum() {
    if (++depth_ > max_depth) return refuse("at most 100 nested brackets");
    TRY(Dim left, product());
    for (;;) {
      if (take("+")) {
        TRY(const Dim right, product());
        left += right;
      } else if (take("-")) {
        TRY(const Dim right, product());
        left -= right;
      } else {
        --depth_;
        return left;
      }
    }
  }

  Result<Dim> product() {
    TRY(Dim left, unary());
    for (;;) {
      if (take("//")) {
        TRY(const Dim right, unary());
        left = floor_div(left, right);
      } else if (take("*")) {
        TRY(const Dim right, unary());
        left *= right;
      } else if (take("%")) {
        TRY(const Dim right, unary());
        left = floor_mod(left, right);
      } else {
        return left;
      }
    }
  }

  Result<Dim> unary() {
    bool negative = false;
    while (take("-")) negative = !negative;
    skip_space();
    // The least integer has no positive counterpart to negate.
    if (negative && next_is_digit()) return number(true);
    TRY(Dim value, primary());
    return negative ? -value : value;
  }

  bool next_is_digit() const { return at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0; }

  Result<Dim> primary() {
    if (take("(")) {
      TRY(Dim inner, sum());
      if (!take(")")) return refuse("')'");
      return inner;
    }
    skip_space();
    if (next_is_digit()) return number(false);
    const std::string_view name = word();
    if (name.empty()) return refuse("a number, a name or '('");
    if (name == "min" || name == "max") return extremum(name == "min");
    const auto found = symbols_.find(name);
    return Dim::symbol(name, found == symbols_.end() ? DimRange{} : found->second);
  }

  std::string_view word() {
    const std::size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    return text_.substr(start, at_ - start);
  }

  Result<Dim> number(bool negative) {
    const std::size_t start = at_;
    const std::string digits = (negative ? "-" : "") + std::string(word());
    std::int64_t value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (status != std::errc() || end != digits.data() + digits.size()) {
      at_ = start;
      return refuse("a 64-bit integer");
    }
    return Dim(value);
  }

  Result<Dim> extremum(bool minimum) {
    if (!take("(")) return refuse("'('");
    TRY(Dim found, sum());
    if (!take(",")) return refuse("','");
    do {
      TRY(const Dim more, sum());
      found = minimum ? min(found, more) : max(found, more);
    } while (take(","));
    if (!take(")")) return refuse("')'");
    return found;
  }

  std::string_view text_;
  const std::map<std::string, DimRange, std::less<>>& symbols_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<Dim> parse_dim(std::string_view text, const std::map<std::string, DimRange, std::less<>>& symbols) {
  return DimParser(text, symbols).parse();
}

}  // namespace polyphase

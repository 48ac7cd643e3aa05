// Scanner: reads the small text forms (IR, attributes, cases): words, numbers, quoted strings, and errors with line and
// column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace polyphase {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // Skips spaces, line ends and comments (# to the end of the line) and tells whether anything is left.
  bool at_end();
  // Takes the token if it stands next. A word token must not be followed by a word character.
  bool take(std::string_view token);
  bool peek(std::string_view token);
  Result<void> expect(std::string_view token);
  // Letters, digits, '_', '.', starting with a letter or '_'.
  Result<std::string> word();
  bool next_is_word();
  Result<std::int64_t> integer();
  Result<std::uint64_t> natural();
  Result<double> real();  // decimal, inf, -inf, nan
  // A double-quoted string with \" \\ \n \t \xHH.
  Result<std::string> quoted();
  // Everything up to, not including, the first of `stops` outside brackets and quotes.
  std::string_view until(std::string_view stops);

  std::size_t position() const { return at_; }
  std::size_t characters_left() const { return text_.size() - at_; }
  Error refuse(std::string_view expected) const;  // "line 3, column 7: expected EXPECTED, found 'xyz'"

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

// The quoted form that Scanner::quoted reads.
std::string quote(std::string_view text);
// Shortest decimal that reads back as the same double; "inf", "-inf", "nan".
std::string shortest(double value);
std::string shortest(float value);

}  // namespace polyphase

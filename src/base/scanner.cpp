// The scanner's words and numbers.
#include "base/scanner.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace polyphase {
namespace {

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }
bool is_word_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

bool Scanner::at_end() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else {
      return false;
    }
  }
  return true;
}

bool Scanner::peek(std::string_view token) {
  if (at_end() || text_.substr(at_, token.size()) != token) return false;
  const std::size_t after = at_ + token.size();
  return token.back() == '.' || !is_word_character(token.back()) || after >= text_.size() ||
         !is_word_character(text_[after]);
}

bool Scanner::take(std::string_view token) {
  if (!peek(token)) return false;
  at_ += token.size();
  return true;
}

Result<void> Scanner::expect(std::string_view token) {
  if (!take(token)) return refuse("'" + std::string(token) + "'");
  return {};
}

bool Scanner::next_is_word() { return !at_end() && is_word_start(text_[at_]); }

Result<std::string> Scanner::word() {
  if (!next_is_word()) return refuse("a name");
  const std::size_t start = at_;
  while (at_ < text_.size() && is_word_character(text_[at_])) ++at_;
  return std::string(text_.substr(start, at_ - start));
}

namespace {

template <typename T>
std::from_chars_result read_number(std::string_view text, std::size_t at, T& value) {
  return std::from_chars(text.data() + at, text.data() + text.size(), value);
}

}  // namespace

Result<std::int64_t> Scanner::integer() {
  if (at_end()) return refuse("an integer");
  std::int64_t value = 0;
  const auto [end, status] = read_number(text_, at_, value);
  if (status != std::errc()) return refuse("a 64-bit integer");
  at_ = static_cast<std::size_t>(end - text_.data());
  return value;
}

Result<std::uint64_t> Scanner::natural() {
  if (at_end()) return refuse("an integer");
  std::uint64_t value = 0;
  const auto [end, status] = read_number(text_, at_, value);
  if (status != std::errc()) return refuse("an unsigned 64-bit integer");
  at_ = static_cast<std::size_t>(end - text_.data());
  return value;
}

Result<double> Scanner::real() {
  if (at_end()) return refuse("a number");
  double value = 0;
  const auto [end, status] = read_number(text_, at_, value);
  if (status != std::errc()) return refuse("a number");
  at_ = static_cast<std::size_t>(end - text_.data());
  return value;
}

Result<std::string> Scanner::quoted() {
  TRY_VOID(expect("\""));
  std::string out;
  while (at_ < text_.size() && text_[at_] != '"') {
    char c = text_[at_++];
    if (c == '\\') {
      if (at_ >= text_.size()) return refuse("a character after '\\'");
      c = text_[at_++];
      if (c == 'n') {
        c = '\n';
      } else if (c == 't') {
        c = '\t';
      } else if (c == 'x') {
        int code = 0;
        const auto [end, status] =
            std::from_chars(text_.data() + at_, text_.data() + std::min(at_ + 2, text_.size()), code, 16);
        if (status != std::errc()) return refuse("two hexadecimal digits after '\\x'");
        at_ = static_cast<std::size_t>(end - text_.data());
        c = static_cast<char>(code);
      }
    }
    out.push_back(c);
  }
  TRY_VOID(expect("\""));
  return out;
}

std::string_view Scanner::until(std::string_view stops) {
  at_end();
  const std::size_t start = at_;
  int depth = 0;
  bool quoted_text = false;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (quoted_text && c == '\\' && at_ + 1 < text_.size()) {
      ++at_;  // an escaped character closes nothing
      continue;
    }
    if (c == '"') quoted_text = !quoted_text;
    if (quoted_text) continue;
    if (depth == 0 && stops.find(c) != std::string_view::npos) break;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
  }
  return text_.substr(start, at_ - start);
}

Error Scanner::refuse(std::string_view expected) const {
  std::size_t line = 1;
  std::size_t column = 1;
  for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) {
    column = text_[i] == '\n' ? 1 : column + 1;
    if (text_[i] == '\n') ++line;
  }
  std::string found = at_ < text_.size() ? "'" + std::string(text_.substr(at_, 20)) + "'" : "the end";
  if (const std::size_t newline = found.find('\n'); newline != std::string::npos)
    found = found.substr(0, newline) + "'";
  return {ErrorCode::invalid_argument,
          "line " + std::to_string(line) + ", column " + std::to_string(column) + ": expected " +
              std::string(expected) + ", found " + found + ".",
          "The text form is what --print-after prints; docs/operators.md has each operator's attributes."};
}

std::string quote(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (code < 0x20 || code == 0x7f) {
      out += "\\x";
      out += digits[code >> 4U];
      out += digits[code & 15U];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

namespace {

template <typename T>
std::string shortest_of(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char digits[64];
  const auto [end, status] = std::to_chars(digits, digits + sizeof(digits), value);
  CHECK(status == std::errc());
  return {digits, end};
}

}  // namespace

std::string shortest(double value) { return shortest_of(value); }
std::string shortest(float value) { return shortest_of(value); }

}  // namespace polyphase

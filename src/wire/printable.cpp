// Escapes what a terminal or a log must not see raw.
#include "wire/printable.h"

namespace polyphase::wire {
namespace {

// Length of the well-formed UTF-8 sequence at the start of `text`; 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  std::size_t length = 0;
  if (first < 0x80) length = 1;
  if (first >= 0xc2 && first <= 0xdf) length = 2;
  if (first >= 0xe0 && first <= 0xef) length = 3;
  if (first >= 0xf0 && first <= 0xf4) length = 4;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (length == 3 && ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f))) return 0;
  if (length == 4 && ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f))) return 0;
  return length;
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  std::size_t i = 0;
  while (i < text.size() && out.size() < limit) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::size_t length = utf8_length(text.substr(i));
    const bool plain = length > 1 || (length == 1 && c >= 0x20 && c != 0x7f);
    if (plain) {
      out += text.substr(i, length);
      i += length;
    } else {
      out += "\\x";
      out += digits[c >> 4U];
      out += digits[c & 15U];
      ++i;
    }
  }
  if (i < text.size()) out += "…(" + std::to_string(text.size()) + " bytes)";
  return out;
}

std::string quoted_name(std::string_view text) { return "'" + printable(text) + "'"; }

}  // namespace polyphase::wire

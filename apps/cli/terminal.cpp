// Colour, progress, and the small text forms.
#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace polyphase::cli {
namespace {

bool is_terminal(int file) {
  const char* kind = std::getenv("TERM");
  return ::isatty(file) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

std::string coloured(std::string_view word, const char* code) {
  return colour_on_stderr() ? fmt::format("\x1b[{}m{}\x1b[0m", code, word) : std::string(word);
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool reader_left = false;  // who reads stdout closed it

}  // namespace

bool colour_on_stderr() {
  const char* no_colour = std::getenv("NO_COLOR");
  return (no_colour == nullptr || *no_colour == '\0') && is_terminal(STDERR_FILENO);
}

void say(std::string_view line) { std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data()); }

void warn(std::string_view line) { say(coloured("polyphase: warning: ", "33") + std::string(line)); }

void report_error(const Error& error) {
  std::string text = coloured("polyphase: error: ", "31");
  const std::string words = error.text();
  for (std::size_t at = 0; at <= words.size();) {  // lists have lines of their own
    const std::size_t end = std::min(words.find('\n', at), words.size());
    text += (at == 0 ? "" : "\n") + plain(std::string_view(words).substr(at, end - at));
    at = end + 1;
  }
  say(text);
}

void put(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && errno == EPIPE) reader_left = true;
}

bool flush_results() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  if (errno == EPIPE || reader_left) return true;
  report_error({ErrorCode::io, "the results could not be written to stdout.",
                "Free space on the disk, or send stdout elsewhere."});
  return false;
}

// RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF.
std::size_t character_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool beyond = (first == 0xED && byte(1) > 0x9F) || (first == 0xF4 && byte(1) > 0x8F);
  return overlong || beyond ? 0 : length;
}

std::string plain(std::string_view name) {
  std::string out;
  while (!name.empty()) {
    const auto code = static_cast<unsigned char>(name[0]);
    const std::size_t length = character_bytes(name);
    // U+0080 to U+009F are control characters too.
    const bool control =
        code < 32 || code == 127 || (code == 0xC2 && length == 2 && static_cast<unsigned char>(name[1]) < 0xA0);
    if (length == 0 || control) {
      for (const char c : name.substr(0, std::max<std::size_t>(length, 1)))
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += name.substr(0, length);
    }
    name.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string human_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  for (const char* unit : {"KiB", "MiB", "GiB"}) {
    value /= 1024;
    if (value < 1000) return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, unit);
  }
  return fmt::format("{:.1f} TiB", value / 1024);
}

std::string human_time(double seconds) {
  const double magnitude = std::abs(seconds);
  if (magnitude >= 1) return fmt::format("{:.3g} s", seconds);
  if (magnitude >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

std::string shape_text(const std::vector<std::string>& sizes) {
  if (sizes.empty()) return "scalar";
  std::string out;
  for (const std::string& size : sizes) {
    const bool simple = size.find_first_of(" *+-/") == std::string::npos;
    out += (out.empty() ? "" : "x") + (simple ? size : "(" + size + ")");
  }
  return plain(out);
}

std::string shape_text(const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> words;
  for (const std::int64_t size : sizes) words.push_back(std::to_string(size));
  return shape_text(words);
}

Progress::Progress() : on_terminal_(is_terminal(STDERR_FILENO)) {}

Progress::~Progress() { erase(); }

void Progress::erase() {
  if (shown_) std::fputs("\r\x1b[2K", stderr);
  shown_ = false;
}

void Progress::show(std::string_view stage, double done) {
  if (!on_terminal_) return;
  const std::int64_t now = now_ms();
  if (shown_ && now - last_ms_ < 50) return;
  last_ms_ = now;
  const double share = std::clamp(done, 0.0, 1.0);
  const int filled = static_cast<int>(share * 24);
  erase();
  std::fputs(
      fmt::format("[{}{}] {:3.0f} % {}", std::string(static_cast<std::size_t>(filled), '#'),
                  std::string(static_cast<std::size_t>(24 - filled), '.'), share * 100, plain(stage.substr(0, 40)))
          .c_str(),
      stderr);
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace polyphase::cli

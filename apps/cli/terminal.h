// Words for people: stderr, with colour and a progress bar on a terminal, plain in a pipe. Results: stdout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "polyphase/polyphase.h"

namespace polyphase::cli {

// NO_COLOR (https://no-color.org) and TERM=dumb turn colour off.
bool colour_on_stderr();

void say(std::string_view line);
void warn(std::string_view line);
void report_error(const Error& error);
// Writes a result to stdout.
void put(std::string_view text);
// Flushes stdout; false, with a word on stderr, if what was put could not be written. A reader who went away had
// enough: that is no failure.
bool flush_results();

// Names come out of models: control characters and what is not UTF-8 become \xHH, so that none reaches the terminal.
std::string plain(std::string_view name);
// The length of the UTF-8 character that `text` begins with; 0: it begins with none.
std::size_t character_bytes(std::string_view text);

std::string human_bytes(std::uint64_t bytes);  // "12.3 MiB"
std::string human_time(double seconds);        // "1.23 ms"
std::string join(const std::vector<std::string>& words, std::string_view separator);
std::string shape_text(const std::vector<std::int64_t>& sizes);  // "1x3x64x64", "scalar"
std::string shape_text(const std::vector<std::string>& sizes);

// One line that redraws itself on a terminal; nothing in a pipe. Erased when it goes.
class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();
  void show(std::string_view stage, double done);

 private:
  void erase();
  bool on_terminal_;
  bool shown_ = false;
  std::int64_t last_ms_ = 0;
};

}  // namespace polyphase::cli

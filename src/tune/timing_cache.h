// TimingCache: what rows took, by machine and step, in a file that people can read and delete.
//
//   polyphase timing cache 1
//   Intel Xeon 8481C, avx512, 1 thread, kernels 1f…⇥conv{…}(0 1)* : f32[1, 3, 64, 64]@0,2,3,1 … > …⇥conv_gemm 5120
//   conv_pixels 6210
//
// One line for each step: machine, step, rows with nanoseconds, with tabs between them. Lines are in the order in which
// they came; beyond a size the first ones go. Writers merge what they measured into what the file holds by then, under
// a lock beside it, and replace it by renaming: any number of processes may share one file, and none ever sees half.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace polyphase {

// Row → nanoseconds.
using StepTimes = std::map<std::string, std::uint64_t, std::less<>>;

class TimingCache {
 public:
  struct Limits {
    std::uint64_t file_bytes = std::uint64_t{16} << 20;
    double lock_seconds = 10;  // how long a writer waits for another
  };

  // `path` empty: in memory only. A file that is not there is an empty one. Errors: io (unreadable, no file);
  // corrupt (it is no timing cache, or larger than one can be: nothing of it is read, and it is never written).
  static Result<TimingCache> open(std::string path) { return open(std::move(path), Limits()); }
  static Result<TimingCache> open(std::string path, const Limits& limits);

  // null: nothing is known of it.
  const StepTimes* look_up(std::string_view machine, std::string_view step) const;
  // Adds rows that the step does not have yet. Texts that no line can hold stay in memory.
  void remember(std::string_view machine, std::string_view step, const StepTimes& times);
  // Writes what was added since open or save; what another process wrote meanwhile is kept, also in place of ours.
  // Errors: io (cannot be written, or another process keeps the lock), corrupt (it has become another file).
  Result<void> save();

  const std::string& path() const { return path_; }
  std::size_t damaged_lines() const { return damaged_; }  // of the file as opened: they are left out, and go at a save

 private:
  struct Line {
    std::string key;  // machine, tab, step
    StepTimes times;
  };
  TimingCache(std::string path, Limits limits) : path_(std::move(path)), limits_(limits) {}

  Result<void> read();
  void read_line(std::string_view line);
  void merge(const Line& line);
  std::string text() const;

  std::string path_;
  Limits limits_;
  std::vector<Line> lines_;
  std::map<std::string, std::size_t, std::less<>> index_;  // key → line
  std::vector<Line> fresh_;                                // added, not written yet
  std::size_t damaged_ = 0;
};

// $POLYPHASE_CACHE_DIR, else $XDG_CACHE_HOME/polyphase, else ~/.cache/polyphase; then "timings.txt". Empty: the
// environment names no folder.
std::string default_timing_cache();

}  // namespace polyphase

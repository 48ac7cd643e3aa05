// Lines in, lines out, and a lock.
#include "tune/timing_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <thread>

#include "engine/new_file.h"
#include "wire/printable.h"
#include "wire/regular_file.h"

namespace polyphase {
namespace {

constexpr std::string_view first_line = "polyphase timing cache 1\n";
constexpr std::size_t max_line = 16384;
constexpr std::size_t max_rows = 64;                         // of one step
constexpr std::uint64_t max_nanoseconds = 3600'000'000'000;  // an hour

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 100 &&
         std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) <= ' '; });
}

bool fits_a_line(std::string_view text) {
  return !text.empty() && text.size() <= max_line &&
         std::none_of(text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n' || c == '\0'; });
}

// "conv_gemm 5120 conv_pixels 6210"; nothing where it is anything else.
std::optional<StepTimes> times_in(std::string_view text) {
  StepTimes out;
  while (!text.empty()) {
    const std::size_t gap = text.find(' ');
    if (gap == 0 || gap == std::string_view::npos || out.size() == max_rows) return std::nullopt;
    const std::size_t end = std::min(text.find(' ', gap + 1), text.size());
    const std::string_view number = text.substr(gap + 1, end - gap - 1);
    if (!is_word(text.substr(0, gap))) return std::nullopt;
    std::uint64_t nanoseconds = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), nanoseconds);
    if (read.ec != std::errc() || read.ptr != number.data() + number.size() || nanoseconds == 0 ||
        nanoseconds > max_nanoseconds || !out.emplace(text.substr(0, gap), nanoseconds).second)
      return std::nullopt;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (out.empty()) return std::nullopt;
  return out;
}

// A lock of its own file: the cache itself is replaced by renaming, so a lock on it would be of the one before.
class FileLock {
 public:
  FileLock() = default;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() {
    if (file_ >= 0) ::close(file_);
  }

  Result<void> take(const std::string& path, double seconds) {
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (file_ < 0) {
      return Error{ErrorCode::io, "cannot open the lock " + wire::quoted_name(path) + ": " + std::strerror(errno) + ".",
                   "Choose a timing cache in a folder that exists and can be written."};
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (std::chrono::steady_clock::now() > end) {
        return Error{ErrorCode::io, "another process keeps the lock " + wire::quoted_name(path) + ".",
                     "End that process, or choose another timing cache."};
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return {};
  }

 private:
  int file_ = -1;
};

}  // namespace

Result<TimingCache> TimingCache::open(std::string path, const Limits& limits) {
  TimingCache out(std::move(path), limits);
  if (!out.path_.empty()) TRY_VOID(out.read());
  return out;
}

Result<void> TimingCache::read() {
  std::error_code ignored;
  if (std::filesystem::symlink_status(path_, ignored).type() == std::filesystem::file_type::not_found) return {};
  TRY(const auto file, wire::RegularFile::open(path_));
  const Error foreign{ErrorCode::corrupt, "the file " + wire::quoted_name(path_) + " is no timing cache.",
                      "Name another file, or delete this one if it was meant to be a timing cache."};
  if (file->size_bytes() == 0) return {};
  if (static_cast<std::uint64_t>(file->size_bytes()) > 2 * limits_.file_bytes) return foreign;
  TRY(const auto bytes, file->read(0, file->size_bytes()));
  std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size_bytes());
  if (text.substr(0, first_line.size()) != first_line) return foreign;
  text.remove_prefix(first_line.size());
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      ++damaged_;  // cut off
      break;
    }
    read_line(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return {};
}

void TimingCache::read_line(std::string_view line) {
  const std::size_t step = line.find('\t');
  const std::size_t times = step == std::string_view::npos ? step : line.find('\t', step + 1);
  const bool whole = times != std::string_view::npos && step > 0 && times > step + 1 && line.size() <= max_line &&
                     line.find('\0') == std::string_view::npos;
  auto read = whole ? times_in(line.substr(times + 1)) : std::nullopt;
  if (!read.has_value()) {
    ++damaged_;
    return;
  }
  merge({std::string(line.substr(0, times)), std::move(*read)});
}

void TimingCache::merge(const Line& line) {
  const auto [known, is_new] = index_.emplace(line.key, lines_.size());
  if (is_new) {
    lines_.push_back(line);
  } else {
    lines_[known->second].times.insert(line.times.begin(), line.times.end());
  }
}

const StepTimes* TimingCache::look_up(std::string_view machine, std::string_view step) const {
  const auto known = index_.find(std::string(machine) + "\t" + std::string(step));
  return known == index_.end() ? nullptr : &lines_[known->second].times;
}

void TimingCache::remember(std::string_view machine, std::string_view step, const StepTimes& times) {
  Line line{std::string(machine) + "\t" + std::string(step), times};
  merge(line);
  std::erase_if(line.times, [](const auto& time) { return !is_word(time.first); });
  if (line.times.empty()) return;
  if (fits_a_line(machine) && fits_a_line(step)) fresh_.push_back(line);
}

std::string TimingCache::text() const {
  std::vector<std::string> out;
  std::size_t size = first_line.size();
  // The last ones first, until it is full.
  for (std::size_t i = lines_.size(); i-- > 0;) {
    std::string line = lines_[i].key + "\t";
    const char* gap = "";
    for (const auto& [row, nanoseconds] : lines_[i].times) {
      line += gap + row + " " + std::to_string(nanoseconds);
      gap = " ";
    }
    line += "\n";
    if (line.size() > max_line) continue;
    if (size + line.size() > limits_.file_bytes) break;
    size += line.size();
    out.push_back(std::move(line));
  }
  std::string all(first_line);
  for (std::size_t i = out.size(); i-- > 0;) all += out[i];
  return all;
}

Result<void> TimingCache::save() {
  if (path_.empty() || fresh_.empty()) return {};
  TRY(const std::string path, writable_path(path_));
  FileLock lock;
  TRY_VOID(lock.take(path + ".lock", limits_.lock_seconds));
  TRY(TimingCache now, open(path, limits_));
  for (const Line& line : fresh_) now.merge(line);
  NewFile file(path);
  TRY_VOID(file.open());
  const std::string text = now.text();
  TRY_VOID(file.write(std::as_bytes(std::span(text))));
  TRY_VOID(file.publish());
  fresh_.clear();
  return {};
}

std::string default_timing_cache() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const std::filesystem::path file = "timings.txt";
  if (const std::string own = variable("POLYPHASE_CACHE_DIR"); !own.empty()) return (own / file).string();
  if (const std::string base = variable("XDG_CACHE_HOME"); !base.empty())
    return (std::filesystem::path(base) / "polyphase" / file).string();
  if (const std::string home = variable("HOME"); !home.empty())
    return (std::filesystem::path(home) / ".cache" / "polyphase" / file).string();
  return {};
}

}  // namespace polyphase

// Seconds of the clock that never jumps.
#pragma once

#include <chrono>

namespace polyphase::cli {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace polyphase::cli

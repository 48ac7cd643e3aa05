// How much of a large suite runs: under a sanitizer a slice, because the release build runs the whole; POLYPHASE_FULL=1
// (`make test-all`) asks for everything everywhere.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace polyphase::test {

inline bool full_size() {
  const char* full = std::getenv("POLYPHASE_FULL");
  return full != nullptr && std::string_view(full) == "1";
}

inline bool sliced() { return POLYPHASE_SANITIZED != 0 && !full_size(); }

// What the environment's variable `name` says, else `slice` of the `whole` where suites are sliced.
inline std::uint64_t suite_size(const char* name, std::uint64_t slice, std::uint64_t whole) {
  const char* wished = std::getenv(name);
  if (wished != nullptr) return std::strtoull(wished, nullptr, 10);
  return sliced() ? slice : whole;
}

}  // namespace polyphase::test

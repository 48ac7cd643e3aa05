// CHECK: our own mistakes. Aborts with file, line and the broken condition; never reachable from what a user gives us.
#pragma once

namespace polyphase {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* why);

}  // namespace polyphase

// CHECK(condition) or CHECK(condition, "why this must hold"); always on, also in release builds.
#define CHECK(condition, ...)                          \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::polyphase::check_failed(__FILE__, __LINE__, #condition, "" __VA_ARGS__))

// Result<T> and Error as the public header defines them, and what our own code adds: TRY and CHECK.
#pragma once

#include "base/check.h"
#include "polyphase/result.h"

#define POLYPHASE_JOIN_(a, b) a##b
#define POLYPHASE_JOIN(a, b) POLYPHASE_JOIN_(a, b)
#define POLYPHASE_TRY_(temporary, declaration, ...)         \
  auto temporary = (__VA_ARGS__);                           \
  if (!temporary.ok()) return std::move(temporary).error(); \
  declaration = std::move(temporary).value()

// TRY(auto x, f()): x = the value of f(), or return f's Error from the enclosing function.
#define TRY(declaration, ...) POLYPHASE_TRY_(POLYPHASE_JOIN(try_result_, __LINE__), declaration, __VA_ARGS__)

// TRY_VOID(f()): return f's Error from the enclosing function, if it has one.
#define TRY_VOID(...)                                                     \
  do {                                                                    \
    auto try_void_result = (__VA_ARGS__);                                 \
    if (!try_void_result.ok()) return std::move(try_void_result).error(); \
  } while (false)

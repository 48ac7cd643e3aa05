// IO_TRY(auto x, f()): x = the value of f(), or return f's Error from the enclosing function.
#pragma once

#include <utility>

#define IO_JOIN_(a, b) a##b
#define IO_JOIN(a, b) IO_JOIN_(a, b)
#define IO_TRY_(temporary, declaration, ...)                \
  auto temporary = (__VA_ARGS__);                           \
  if (!temporary.ok()) return std::move(temporary).error(); \
  declaration = std::move(temporary).value()
#define IO_TRY(declaration, ...) IO_TRY_(IO_JOIN(io_result_, __LINE__), declaration, __VA_ARGS__)
#define IO_TRY_VOID(...)                                                \
  do {                                                                  \
    auto io_void_result = (__VA_ARGS__);                                \
    if (!io_void_result.ok()) return std::move(io_void_result).error(); \
  } while (false)

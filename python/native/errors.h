// Polyphase's errors as Python's.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "polyphase/result.h"

namespace polyphase::python {

// Raises polyphase.Error, or the class below it that fits the code.
[[noreturn]] void raise(const Error& error);
// The same for what a caller of Python gave.
[[noreturn]] void refuse(const std::string& message, const std::string& hint);

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return std::move(result).value();
}
inline void ok_or_raise(const Result<void>& result) {
  if (!result.ok()) raise(result.error());
}

}  // namespace polyphase::python

// Pickle: the values that a Python pickle describes, as data. A pickle is a program for a small stack machine, and in
// Python it may call anything. Here nothing is called: a call stays a value {function, arguments}, and a function that
// the reader does not expect ends the reading.
//
// Source: Lib/pickletools.py of CPython, protocols 2 to 5.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace polyphase {

// Values refer to each other by number, so neither depth nor cycles cost a stack.
struct PickleValue {
  enum class Kind { none, boolean, integer, real, text, tuple, list, dict, function, call, persistent };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  // of boolean and integer; which of the functions allowed
  std::string_view text;     // into the pickle's bytes
  // tuple, list: the entries. dict: key, value, key, value, … persistent: {identity}.
  // call: function, arguments, and what was put into its result as into a dictionary: key, value, …
  std::vector<std::uint32_t> entries;
};

struct Pickle {
  std::vector<PickleValue> values;
  std::uint32_t root = 0;
  const PickleValue& operator[](std::uint32_t value) const { return values[value]; }
};

// `functions` are the names that may occur: "torch._utils _rebuild_tensor_v2". The bytes must outlive the result.
// Errors: unsupported (another name, or what else would run code), corrupt.
Result<Pickle> read_pickle(std::string_view bytes, std::span<const std::string_view> functions);

}  // namespace polyphase

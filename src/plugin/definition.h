// What a plugin says of its operators, read with care.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "ops/op.h"
#include "polyphase/polyphase_op.h"

namespace polyphase {

// What a callback may write as its message, with the zero.
inline constexpr std::size_t plugin_message_bytes = 512;

// A struct of a plugin's that begins with its size: what its header did not know is 0. Nothing: it is smaller than
// ABI 1 has it, or says something in members that are newer than we are.
template <typename T>
std::optional<T> read_struct(const T* given, std::size_t struct_size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(given);
  if (struct_size < sizeof(T)) return std::nullopt;
  const bool plain =
      std::all_of(bytes + sizeof(T), bytes + struct_size, [](std::byte byte) { return byte == std::byte{0}; });
  return plain && struct_size <= sizeof(T) + 4096 ? std::optional<T>(*given) : std::nullopt;
}

// A text of a plugin's as one printable line of at most 500 bytes; "" for NULL.
std::string plain_text(const char* text);

// The definition of operator `given` of the plugin called `plugin`, which `library` keeps loaded.
Result<std::shared_ptr<const OpDef>> define_operator(const polyphase_op* given, const std::string& plugin,
                                                     std::shared_ptr<void> library);

bool is_plugin_word(const char* name);

}  // namespace polyphase

// Fields of onnx.proto that are found and written without protobuf, byte by byte.
#pragma once

#include <cstdint>
#include <string>

namespace polyphase::wire {

inline constexpr std::uint32_t model_graph = 7;
inline constexpr std::uint32_t model_opset_import = 8;
inline constexpr std::uint32_t model_function = 25;
inline constexpr std::uint32_t graph_node = 1;
inline constexpr std::uint32_t graph_initializer = 5;
inline constexpr std::uint32_t tensor_raw_data = 9;
inline constexpr std::uint32_t length_delimited = 2;  // the wire type of messages, texts and bytes

inline std::string varint_text(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

// Tag and length of a message.
inline std::string message_head(std::uint32_t number, std::uint64_t length) {
  return varint_text(number << 3U | length_delimited) + varint_text(length);
}

}  // namespace polyphase::wire

// ONNX models as protobuf: from bytes or a file to a ModelProto, within hard limits.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "base/result.h"
#include "wire/large_data.h"

namespace onnx {
class ModelProto;
}

namespace polyphase::wire {

// Deletes a ModelProto where its type is known, so that headers need not know it.
struct ModelDeleter {
  void operator()(onnx::ModelProto* model) const;
};
using ModelPointer = std::unique_ptr<onnx::ModelProto, ModelDeleter>;

// Protobuf's own bound on one message.
inline constexpr std::int64_t max_model_bytes = INT64_C(0x7fffffff);
// Messages in messages: about 30 subgraphs in one another.
inline constexpr int max_message_depth = 100;

// Parses the whole range. A file of another kind, a truncated or damaged one, or one without a graph is an Error that
// says so.
Result<ModelPointer> parse_model(std::span<const std::byte> bytes);
Result<ModelPointer> read_model(const std::filesystem::path& path);

// The same, with what is large beside it: to be taken by take_tensor (ExternalData::set_apart).
struct ModelApart {
  ModelPointer model;
  LargeData data;
};
Result<ModelApart> parse_model_apart(std::span<const std::byte> bytes);
Result<ModelApart> read_model_apart(const std::filesystem::path& path);

}  // namespace polyphase::wire

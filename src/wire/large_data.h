// The raw data of large initialisers, apart from the model that they belong to: weights are most of a model, and
// protobuf would copy them once more, into memory page by page.
//
//   model{… graph{… initializer{name, dims, raw_data} …} …}
//     →   model{… graph{… initializer{name, dims} …} …}   and   initializer 7: raw_data, in memory of its own
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "base/tensor.h"

namespace onnx {
class TensorProto;
}

namespace polyphase::wire {

// By the initialiser that lacks its raw_data.
using LargeData = std::unordered_map<const onnx::TensorProto*, std::shared_ptr<Buffer>>;

// A model's bytes somewhere.
struct ModelBytes {
  std::int64_t size_bytes = 0;
  // Copies out.size() bytes from an offset on, all of them inside the model.
  std::function<Result<void>(std::int64_t offset, std::span<std::byte> out)> read;
};

struct Skeleton {
  std::string bytes;                                              // a model again
  std::unordered_map<int, std::shared_ptr<Buffer>> initializers;  // by their place in the graph
};

using MaybeSkeleton = std::optional<Skeleton>;
// Cuts out raw data of `large_bytes` or more. Nothing: there are none, or the bytes are no regular model, such as one
// with two graphs; protobuf shall read them whole. What comes out is as hostile as the model. Errors: those of `read`;
// out_of_memory.
Result<MaybeSkeleton> skeleton_of(const ModelBytes& model, std::int64_t large_bytes = 1 << 16);

}  // namespace polyphase::wire

// convert_opset: an ONNX model in the words of another opset; what means the same there stays byte for byte.
#pragma once

#include <cstdint>

#include "export/legalise.h"

namespace polyphase::legal {

inline constexpr std::int64_t oldest_opset = 7;
inline constexpr std::int64_t newest_opset = 28;

// Of ONNX's own operators, from one version to the next by opset_steps and, where an operator has none there, by what
// operator_versions knows. Changes are named "Softmax-13". Errors: a node cannot be said in that opset, or its types
// are not known; the model has functions of its own.
Result<Legalised> convert_opset(std::span<const std::byte> model, TensorFacts facts, std::int64_t opset,
                                const std::optional<std::filesystem::path>& folder);

}  // namespace polyphase::legal

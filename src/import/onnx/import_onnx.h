// import_onnx: an ONNX model, from a file or from bytes, becomes a Graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "base/result.h"
#include "import/imported_model.h"
#include "wire/onnx_model.h"

namespace polyphase {

// The opsets of the default domain that the converters are written for.
inline constexpr std::int64_t oldest_onnx_opset = 7;
inline constexpr std::int64_t newest_onnx_opset = 28;
inline constexpr std::int64_t newest_onnx_ir_version = 14;

// Errors: io and corrupt (the file), invalid_model (it breaks ONNX's rules), unsupported (we lack something: the
// message lists everything that is missing, not only the first), invalid_argument (options that do not fit the model).
Result<ImportedModel> import_onnx(const std::filesystem::path& path, const Registry& registry,
                                  const ImportOptions& options = {});
// From memory; tensors in files beside the model are looked for in `folder` and refused without one.
Result<ImportedModel> import_onnx(std::span<const std::byte> bytes, const Registry& registry,
                                  const ImportOptions& options = {},
                                  const std::optional<std::filesystem::path>& folder = std::nullopt);
// From a parsed model, which is consumed.
Result<ImportedModel> import_onnx(wire::ModelApart model, const Registry& registry, const ImportOptions& options = {},
                                  const std::optional<std::filesystem::path>& folder = std::nullopt);

// Whether the nodes of this claim (ops/custom.h) are converted without a plugin.
bool converts_onnx(std::string_view claim);

}  // namespace polyphase

// import_model: a model file or its bytes, of whatever kind, becomes a Graph.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>

#include "base/result.h"
#include "import/imported_model.h"

namespace polyphase {

// ONNX, or a program of torch.export; told apart by content. Errors: those of import_onnx and import_torch.
Result<ImportedModel> import_model(const std::filesystem::path& path, const Registry& registry,
                                   const ImportOptions& options = {});
// Tensors that an ONNX model keeps in files beside it are looked for in `folder`.
Result<ImportedModel> import_model(std::span<const std::byte> bytes, const Registry& registry,
                                   const ImportOptions& options = {},
                                   const std::optional<std::filesystem::path>& folder = std::nullopt);

}  // namespace polyphase

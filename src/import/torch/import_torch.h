// import_torch: a program that torch.export saved (.pt2), from a file or from bytes, becomes a Graph. Nothing in the
// file is run: what is pickled in it is not read, or read as tensors only.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/result.h"
#include "import/imported_model.h"

namespace polyphase {

// Whether the file or the bytes are a zip archive of PyTorch's: such a program, or what else is saved as one
// (TorchScript, a state_dict), which import_torch refuses with advice. False if it cannot be opened.
bool is_torch_archive(const std::filesystem::path& path);
bool is_torch_archive(std::span<const std::byte> bytes);

// Inputs are named after forward's parameters ("x", "features.0"), outputs "output_0", "output_1", …
// Errors: io and corrupt (the file), invalid_model (it breaks a rule of PyTorch's), unsupported (we lack something: the
// message lists all of it), invalid_argument (options that do not fit the program).
Result<ImportedModel> import_torch(const std::filesystem::path& path, const Registry& registry,
                                   const ImportOptions& options = {});
Result<ImportedModel> import_torch(std::span<const std::byte> bytes, const Registry& registry,
                                   const ImportOptions& options = {});

}  // namespace polyphase

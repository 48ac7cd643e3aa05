// import_torch: a program that torch.export saved (.pt2) becomes a Graph. Nothing in the file is run: what is pickled
// in it is not read, or read as tensors only.
#pragma once

#include "base/result.h"
#include "import/imported_model.h"
#include "wire/zip_archive.h"

namespace polyphase {

// Inputs are named after forward's parameters ("x", "features.0"), outputs "output_0", "output_1", …
// Errors: io and corrupt (the file), invalid_model (it breaks a rule of PyTorch's), unsupported (we lack something: the
// message lists all of it), invalid_argument (options that do not fit the program).
Result<ImportedModel> import_torch(wire::ZipArchive archive, const Registry& registry,
                                   const ImportOptions& options = {});

// Whether PyTorch wrote the archive: such a program, or what else is saved so (TorchScript, a state_dict), which
// import_torch refuses with advice.
bool is_of_torch(const wire::ZipArchive& archive);

// Whether the nodes of this claim (ops/custom.h) are converted without a plugin.
bool converts_torch(std::string_view claim);

}  // namespace polyphase

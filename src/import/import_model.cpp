// Which importer.
#include "import/import_model.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "import/onnx/import_onnx.h"
#include "import/torch/import_torch.h"
#include "wire/zip_archive.h"

namespace polyphase {
namespace {

constexpr std::array zip_begin = {'P', 'K', '\x03', '\x04'};

bool begins_like_zip(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::array<char, 4> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  return head == zip_begin;
}

// Nothing: the archive is none of PyTorch's. One that cannot be opened most likely is, and was cut on its way.
std::optional<Result<ImportedModel>> import_archive(Result<wire::ZipArchive> archive, const Registry& registry,
                                                    const ImportOptions& options) {
  if (!archive.ok()) return std::move(archive).error();
  if (!is_of_torch(*archive)) return std::nullopt;
  return import_torch(std::move(archive).value(), registry, options);
}

// Which of the two would be taken is nothing to guess: the results of a model may not change with a plugin beside it.
Result<void> refuse_claims_of_ours(const Registry& registry) {
  for (const auto& [claim, op] : registry.claims()) {
    if (!converts_onnx(claim) && !converts_torch(claim)) continue;
    return Error{
        ErrorCode::invalid_argument,
        "the plugin's operator '" + op->name + "' claims the nodes '" + claim + "', which Polyphase converts itself.",
        "Give the operator a domain or a library of its own, in the plugin and in the model."};
  }
  return {};
}

}  // namespace

Result<ImportedModel> import_model(const std::filesystem::path& path, const Registry& registry,
                                   const ImportOptions& options) {
  TRY_VOID(refuse_claims_of_ours(registry));
  if (begins_like_zip(path)) {
    auto imported = import_archive(wire::ZipArchive::open(path), registry, options);
    if (imported.has_value() && !imported->ok())
      return std::move(*imported).error().within("while reading " + path.string());
    if (imported.has_value()) return std::move(*imported);
  }
  return import_onnx(path, registry, options);
}

Result<ImportedModel> import_model(std::span<const std::byte> bytes, const Registry& registry,
                                   const ImportOptions& options, const std::optional<std::filesystem::path>& folder) {
  TRY_VOID(refuse_claims_of_ours(registry));
  const bool zip = bytes.size() >= zip_begin.size() &&
                   std::equal(zip_begin.begin(), zip_begin.end(), reinterpret_cast<const char*>(bytes.data()));
  if (zip) {
    auto imported = import_archive(wire::ZipArchive::of_bytes(bytes), registry, options);
    if (imported.has_value()) return std::move(*imported);
  }
  return import_onnx(bytes, registry, options, folder);
}

}  // namespace polyphase

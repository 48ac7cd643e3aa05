// Which importer.
#include "import/import_model.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "import/onnx/import_onnx.h"
#include "import/torch/import_torch.h"

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

}  // namespace

Result<ImportedModel> import_model(const std::filesystem::path& path, const Registry& registry,
                                   const ImportOptions& options) {
  if (begins_like_zip(path) && is_torch_archive(path)) return import_torch(path, registry, options);
  return import_onnx(path, registry, options);
}

Result<ImportedModel> import_model(std::span<const std::byte> bytes, const Registry& registry,
                                   const ImportOptions& options, const std::optional<std::filesystem::path>& folder) {
  const bool zip = bytes.size() >= zip_begin.size() &&
                   std::equal(zip_begin.begin(), zip_begin.end(), reinterpret_cast<const char*>(bytes.data()));
  if (zip && is_torch_archive(bytes)) return import_torch(bytes, registry, options);
  return import_onnx(bytes, registry, options, folder);
}

}  // namespace polyphase

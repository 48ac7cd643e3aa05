// The three doors of the importer.
#include "import/onnx/import_onnx.h"

#include <new>
#include <utility>

#include "import/onnx/importer.h"
#include "import/onnx/sequence.h"
#include "ops/custom.h"

namespace polyphase {

Result<ImportedModel> import_onnx(wire::ModelApart model, const Registry& registry, const ImportOptions& options,
                                  const std::optional<std::filesystem::path>& folder) {
  try {
    return Importer(*model.model, std::move(model.data), registry, options, folder).run();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "there is not enough memory to import the model.",
                 "Use a machine with more memory."};
  }
}

Result<ImportedModel> import_onnx(std::span<const std::byte> bytes, const Registry& registry,
                                  const ImportOptions& options, const std::optional<std::filesystem::path>& folder) {
  TRY(auto model, wire::parse_model_apart(bytes));
  return import_onnx(std::move(model), registry, options, folder);
}

Result<ImportedModel> import_onnx(const std::filesystem::path& path, const Registry& registry,
                                  const ImportOptions& options) {
  const std::string step = "while reading " + path.string();
  auto model = wire::read_model_apart(path);
  if (!model.ok()) return std::move(model).error().within(step);
  auto imported = import_onnx(std::move(model).value(), registry, options, path.parent_path());
  if (!imported.ok()) return std::move(imported).error().within(step);
  return imported;
}

bool converts_onnx(std::string_view claim) {
  const ConverterTable table;
  for (const auto& [key, converter] : table.all()) {
    if (claim == onnx_claim(key.first, key.second)) return true;
  }
  const std::string own = onnx_claim("", "");
  if (claim.substr(0, own.size()) != own) return false;
  const std::string_view op_type = claim.substr(own.size());
  return is_structural(op_type) || sequence_converter(op_type) != nullptr;
}

}  // namespace polyphase

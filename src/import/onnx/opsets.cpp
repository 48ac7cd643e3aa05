// Reads opset_import.
#include "import/onnx/opsets.h"

#include "import/onnx/functions.h"
#include "import/onnx/import_onnx.h"
#include "onnx/onnx.pb.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

Result<void> check_version(std::int64_t version) {
  const std::string range = std::to_string(oldest_onnx_opset) + " to " + std::to_string(newest_onnx_opset);
  if (version < 1) {
    return Error{ErrorCode::invalid_model,
                 "the model's opset is " + std::to_string(version) + ", which is not a version.",
                 "Export the model again with an opset from " + range + "."};
  }
  if (version < oldest_onnx_opset) {
    return Error{ErrorCode::unsupported,
                 "the model is written in opset " + std::to_string(version) + "; Polyphase reads " + range + ".",
                 "Convert it: onnx.version_converter.convert_version(model, 17)."};
  }
  if (version > newest_onnx_opset) {
    return Error{ErrorCode::unsupported,
                 "the model is written in opset " + std::to_string(version) + "; Polyphase reads " + range + ".",
                 "Export it with opset_version=" + std::to_string(newest_onnx_opset) + " or lower."};
  }
  return {};
}

template <typename Imports>
Result<Opsets> read(const Imports& imports) {
  Opsets opsets;
  for (const auto& import : imports) {
    const std::string domain(domain_of(import.domain()));
    const auto [found, fresh] = opsets.emplace(domain, import.version());
    if (!fresh && found->second != import.version()) {
      return Error{ErrorCode::invalid_model,
                   "the operator domain " + wire::quoted_name(domain) + " is imported twice, in the versions " +
                       std::to_string(found->second) + " and " + std::to_string(import.version()) + ".",
                   "Export the model again."};
    }
    if (domain.empty()) TRY_VOID(check_version(import.version()));
  }
  return opsets;
}

}  // namespace

Result<Opsets> opsets_of(const onnx::ModelProto& model) {
  TRY(Opsets opsets, read(model.opset_import()));
  if (opsets.empty()) {
    return Error{ErrorCode::invalid_model, "the model does not say which opset it is written in.",
                 "Export it again, or set model.opset_import to the opset it was made for."};
  }
  return opsets;
}

Result<Opsets> opsets_of(const onnx::FunctionProto& function, const Opsets& of_model) {
  TRY(Opsets opsets, read(function.opset_import()));
  for (const auto& [domain, version] : of_model) opsets.emplace(domain, version);
  return opsets;
}

}  // namespace polyphase

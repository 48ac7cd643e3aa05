// ExternalData: the bytes of tensors that an ONNX model keeps in files beside it, or that were set apart when it was
// read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "base/result.h"
#include "base/tensor.h"
#include "wire/large_data.h"
#include "wire/regular_file.h"

namespace onnx {
class TensorProto;
}

namespace polyphase::wire {

class ExternalData {
 public:
  // No folder (the model came as bytes): every external tensor is refused.
  explicit ExternalData(std::optional<std::filesystem::path> folder, LargeData set_apart = {})
      : folder_(std::move(folder)), set_apart_(std::move(set_apart)) {}

  // The raw data that the tensor lacks because they are large, given away; null: it has them itself.
  std::shared_ptr<Buffer> take_set_apart(const onnx::TensorProto& tensor);

  // The `size_bytes` bytes that the tensor's external_data entries name. Tensors that name the same bytes share them; a
  // file's bytes are read at most twice over in all, so that a small model cannot ask for a large one's memory many
  // times.
  Result<std::shared_ptr<Buffer>> read(const onnx::TensorProto& tensor, std::int64_t size_bytes);

 private:
  struct OpenFile {
    std::shared_ptr<RegularFile> file;
    std::int64_t read_bytes = 0;
  };
  Result<OpenFile*> open(const std::string& location);

  std::optional<std::filesystem::path> folder_;
  LargeData set_apart_;
  std::map<std::string, OpenFile> files_;
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::shared_ptr<Buffer>> regions_;
};

}  // namespace polyphase::wire

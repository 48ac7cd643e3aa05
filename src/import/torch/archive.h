// ProgramArchive: where the parts of a program lie in an archive of torch.export.save. Of PyTorch 2.9 and newer:
//
//   ROOT/archive_format  "pt2"      ROOT/archive_version  "0"      ROOT/byteorder  "little"
//   ROOT/models/NAME.json                        the program
//   ROOT/data/weights/NAME_weights_config.json   parameter or buffer → file and strides; files weight_N are raw
//   storages ROOT/data/constants/NAME_constants_config.json, tensor_N                     the same of constants
//
// PyTorch 2.8 has pickled tensors in their places: ROOT/data/weights/NAME.pt, ROOT/data/constants/NAME.pt. PyTorch 2.7
// and older: serialized_exported_program.json, serialized_state_dict.pt, serialized_constants.pt, without a root.
//
// Source: docs/source/export/pt2_archive.md and torch/export/pt2_archive of PyTorch.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/tensor.h"
#include "import/torch/pickled_tensors.h"
#include "import/torch/program.h"
#include "wire/zip_archive.h"

namespace polyphase {

class ProgramArchive {
 public:
  // Errors: unsupported (pickles that hold more than tensors, other kinds of PyTorch's archives: says what to do),
  // corrupt.
  static Result<ProgramArchive> open(wire::ZipArchive archive);

  const std::string& name() const { return name_; }
  Result<TorchProgram> program() const;
  // A parameter, buffer or constant by its name in the module. Tensors that share a storage share its bytes.
  Result<Tensor> tensor(const std::string& target);
  bool has_tensor(const std::string& target) const { return payloads_.count(target) != 0; }
  // Where its elements lie and how: equal of tensors that are one under several names (tied weights).
  std::string place_of(const std::string& target) const;

 private:
  ProgramArchive(wire::ZipArchive archive, std::string root, std::string name)
      : archive_(std::move(archive)), root_(std::move(root)), name_(std::move(name)) {}
  Result<void> read_lists();
  Result<void> read_pickled(const std::string& member, std::optional<PickledTensors>& into);
  Result<std::shared_ptr<Buffer>> storage(const std::string& path);

  wire::ZipArchive archive_;
  std::string root_;  // "net/"
  std::string name_;
  std::string program_member_;
  std::map<std::string, ProgramPayload, std::less<>> payloads_;  // path_name holds the whole path
  std::map<std::string, std::shared_ptr<Buffer>, std::less<>> storages_;
  std::optional<PickledTensors> pickled_weights_;
  std::optional<PickledTensors> pickled_constants_;
};

}  // namespace polyphase

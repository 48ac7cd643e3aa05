// PickledTensors: the tensors of a dictionary that torch.save wrote, by name. Programs of PyTorch 2.8 and older keep
// their weights so: a zip archive of its own inside the program's.
//
//   ROOT/data.pkl   the dictionary as a pickle, each tensor a call of _rebuild_tensor_v2 on a storage's key
//   ROOT/data/KEY   the storage's bytes          ROOT/byteorder  "little"
//
// Source: torch/serialization.py, torch/_utils.py.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "import/torch/storage.h"
#include "wire/zip_archive.h"

namespace polyphase {

class PickledTensors {
 public:
  // The bytes of the inner archive. Errors: corrupt; unsupported (what is in it is more than tensors).
  static Result<PickledTensors> open(std::shared_ptr<Buffer> bytes);

  bool has(const std::string& name) const { return tensors_.find(name) != tensors_.end(); }
  // Tensors that share a storage share its bytes.
  Result<Tensor> tensor(const std::string& name);

 private:
  struct Entry {
    std::string storage;  // its key
    StoredLayout layout;
  };
  PickledTensors(std::shared_ptr<Buffer> bytes, wire::ZipArchive archive, std::string root)
      : bytes_(std::move(bytes)), archive_(std::move(archive)), root_(std::move(root)) {}
  Result<void> read_names();
  friend class PickledDictionary;

  std::shared_ptr<Buffer> bytes_;  // behind archive_
  wire::ZipArchive archive_;
  std::string root_;
  std::map<std::string, Entry, std::less<>> tensors_;
  std::map<std::string, std::shared_ptr<Buffer>, std::less<>> storages_;
};

}  // namespace polyphase

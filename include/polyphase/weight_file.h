// Polyphase: tensors by name out of a safetensors file or an archive of NumPy's (.npz), for networks that are written
// layer by layer and for refit.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "polyphase/polyphase.h"

namespace polyphase::api {

// The file is mapped, not read: it must stay as it is while it or a tensor of it is in use. Copies are the same file.
class WeightFile {
 public:
  // Errors: io, corrupt (every size and place that the file claims is compared with its length).
  static Result<WeightFile> open(const std::string& path);
  // In the order of the file.
  std::vector<std::string> names() const;
  // Shares the file's memory; of an archive it is read each time. Errors: invalid_argument (no tensor of that name),
  // unsupported (its dtype, rank above 8), corrupt (a member of an archive).
  Result<Tensor> tensor(std::string_view name) const;
  const std::string& path() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace polyphase::api

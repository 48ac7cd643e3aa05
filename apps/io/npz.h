// NumPy's .npz: a zip archive of .npy arrays, one per name.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "polyphase/polyphase.h"

namespace polyphase::io {

struct NamedTensor {
  std::string name;
  api::Tensor tensor;
};

// In the archive's order; names without ".npy". Errors: io, corrupt (not a zip, a broken member, a name twice).
Result<std::vector<NamedTensor>> read_npz(const std::string& path);
// Stored without compression and without times: the same tensors give the same bytes. Replaces the file by rename.
Result<void> write_npz(const std::string& path, std::span<const NamedTensor> tensors);

}  // namespace polyphase::io

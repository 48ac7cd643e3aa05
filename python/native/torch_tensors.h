// PyTorch's tensors by way of the C functions that it lends (DLPack's exchange API): without a call of Python for each.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "polyphase/dlpack.h"
#include "polyphase/polyphase.h"

namespace polyphase::python {

bool is_torch_tensor(nanobind::handle given);

struct ReturnShared {
  void operator()(DLManagedTensorVersioned* shared) const {
    if (shared->deleter != nullptr) shared->deleter(shared);
  }
};
using SharedTensor = std::unique_ptr<DLManagedTensorVersioned, ReturnShared>;

// A plain tensor's memory, which stays also if the tensor is given another meanwhile. Null: this PyTorch has no such
// functions, it is a tensor of another kind, or DLPack cannot say what it is; the slower ways tell which.
SharedTensor share_tensor(nanobind::handle given);

// A torch.Tensor that shares the memory; an invalid object if this PyTorch has no such functions. Raises what PyTorch
// raises.
nanobind::object make_tensor(const api::Tensor& tensor);

}  // namespace polyphase::python

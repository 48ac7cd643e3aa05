// PyTorch's tensors by way of the C functions that it lends.
#include "native/torch_tensors.h"

#include "native/errors.h"

namespace nb = nanobind;

namespace polyphase::python {
namespace {

// The beginning of DLPackExchangeAPI, which the capsule torch.Tensor.__dlpack_c_exchange_api__ holds; 0 and nothing
// raised is success. What stands behind is left out.
struct ExchangeApi {
  DLPackVersion version;
  ExchangeApi* older;
  void* allocate;
  int (*managed_from_object)(void* object, DLManagedTensorVersioned** out);
  int (*object_from_managed)(DLManagedTensorVersioned* taken_over, void** out);
};
constexpr std::uint32_t known_major = 1;

// What torch.Tensor is; PyTorch cannot be unloaded.
struct Torch {
  PyTypeObject* type = nullptr;
  const ExchangeApi* api = nullptr;
};
Torch torch;

const ExchangeApi* api_of(nb::handle type) {
  const nb::object capsule = nb::getattr(type, "__dlpack_c_exchange_api__", nb::none());
  constexpr const char* name = "dlpack_exchange_api";
  if (!PyCapsule_IsValid(capsule.ptr(), name)) return nullptr;
  const auto* api = static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), name));
  while (api != nullptr && api->version.major != known_major) api = api->older;
  return api;
}

// With a null type until somebody imports PyTorch.
const Torch& find_torch() {
  if (torch.type != nullptr) return torch;
  const nb::object module = nb::steal(PyImport_GetModule(nb::str("torch").ptr()));
  if (!module.is_valid()) {
    PyErr_Clear();
    return torch;
  }
  const nb::object type = nb::getattr(module, "Tensor", nb::none());
  if (!PyType_Check(type.ptr())) return torch;  // it is being imported
  torch.api = api_of(type);
  torch.type = reinterpret_cast<PyTypeObject*>(type.ptr());
  return torch;
}

}  // namespace

// Not isinstance: torch.Tensor's is slow, and answers for strangers.
bool is_torch_tensor(nb::handle given) {
  const PyTypeObject* const type = find_torch().type;
  return type != nullptr && PyType_IsSubtype(Py_TYPE(given.ptr()), const_cast<PyTypeObject*>(type)) != 0;
}

SharedTensor share_tensor(nb::handle given) {
  const Torch& found = find_torch();
  // Subclasses may mean something else by their memory, or have none.
  if (found.api == nullptr || Py_TYPE(given.ptr()) != found.type) return nullptr;
  DLManagedTensorVersioned* shared = nullptr;
  if (found.api->managed_from_object(given.ptr(), &shared) == 0) return SharedTensor(shared);
  PyErr_Clear();
  return nullptr;
}

nb::object make_tensor(const api::Tensor& tensor) {
  const Torch& found = find_torch();
  if (found.api == nullptr) return {};
  DLManagedTensorVersioned* const shared = value_or_raise(tensor.to_dlpack());
  void* made = nullptr;
  if (found.api->object_from_managed(shared, &made) != 0) throw nb::python_error();
  return nb::steal(static_cast<PyObject*>(made));
}

}  // namespace polyphase::python

// Arrays of Python as tensors, and back, without copying an element.
#include "native/arrays.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <optional>

#include "native/errors.h"

namespace nb = nanobind;

namespace polyphase::python {
namespace {

using Code = nb::dlpack::dtype_code;

struct Known {
  DType dtype;
  const char* name;
  Code code;
  std::uint8_t bits;
};
// The 4-bit integers take one byte each, and have no array of their own: bytes stand for them.
constexpr std::array<Known, dtype_count> known_dtypes{{{DType::f32, "float32", Code::Float, 32},
                                                       {DType::f64, "float64", Code::Float, 64},
                                                       {DType::f16, "float16", Code::Float, 16},
                                                       {DType::bf16, "bfloat16", Code::Bfloat, 16},
                                                       {DType::f8e4m3, "float8_e4m3fn", Code::Float8_E4M3FN, 8},
                                                       {DType::f8e5m2, "float8_e5m2", Code::Float8_E5M2, 8},
                                                       {DType::i8, "int8", Code::Int, 8},
                                                       {DType::u8, "uint8", Code::UInt, 8},
                                                       {DType::i16, "int16", Code::Int, 16},
                                                       {DType::u16, "uint16", Code::UInt, 16},
                                                       {DType::i32, "int32", Code::Int, 32},
                                                       {DType::u32, "uint32", Code::UInt, 32},
                                                       {DType::i64, "int64", Code::Int, 64},
                                                       {DType::u64, "uint64", Code::UInt, 64},
                                                       {DType::boolean, "bool", Code::Bool, 8},
                                                       {DType::i4, "int4", Code::Int, 8},
                                                       {DType::u4, "uint4", Code::UInt, 8}}};

const Known& known(DType dtype) { return known_dtypes[static_cast<std::size_t>(dtype)]; }

std::optional<DType> dtype_of(nb::dlpack::dtype type) {
  for (const Known& candidate : known_dtypes) {
    const bool same = static_cast<std::uint8_t>(candidate.code) == type.code && candidate.bits == type.bits;
    if (same && type.lanes == 1) return candidate.dtype;
  }
  return std::nullopt;
}

bool import_array(nb::handle given, bool writable, nb::ndarray<nb::ro>& out) {
  if (!writable) return nb::try_cast(given, out, false);
  nb::ndarray<> both;
  if (!nb::try_cast(given, both, false)) return false;
  out = nb::ndarray<nb::ro>(both);
  return true;
}

nb::object array_helper(const char* name) { return nb::module_::import_("polyphase._arrays").attr(name); }

// Bytes from the first to behind the last element.
struct Extent {
  std::intptr_t begin = 0;
  std::intptr_t end = 0;
};
Extent extent_of(const api::TensorView& view) {
  Extent out{reinterpret_cast<std::intptr_t>(view.data), reinterpret_cast<std::intptr_t>(view.data)};
  const auto element = static_cast<std::int64_t>(size_bytes(view.dtype));
  for (std::size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] == 0) return {};
    const std::int64_t way = (view.sizes[i] - 1) * view.strides[i] * element;
    (way < 0 ? out.begin : out.end) += way;
  }
  out.end += element;
  return out;
}

// Calls f with the address of every element; along an axis of stride 0 all have the same.
template <typename F>
void each_element(api::TensorView view, const F& f) {
  const auto element = static_cast<std::int64_t>(size_bytes(view.dtype));
  for (std::size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.strides[i] == 0) view.sizes[i] = 1;
  }
  std::vector<std::int64_t> at(view.sizes.size(), 0);
  for (auto place = reinterpret_cast<std::intptr_t>(view.data);;) {
    f(place);
    std::size_t axis = view.sizes.size();
    for (; axis-- > 0; at[axis] = 0) {
      place += view.strides[axis] * element;
      if (++at[axis] < view.sizes[axis]) break;
      place -= view.strides[axis] * element * view.sizes[axis];
    }
    if (axis == static_cast<std::size_t>(-1)) return;
  }
}

// Two halves of one picture lie between each other's first and last element without sharing one: so bytes are marked.
bool share_memory(const api::TensorView& one, const api::TensorView& other) {
  const Extent a = extent_of(one);
  const Extent b = extent_of(other);
  const Extent both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  if (both.begin >= both.end) return false;
  std::vector<bool> taken(static_cast<std::size_t>(both.end - both.begin), false);
  const auto bytes_in = [&](const api::TensorView& view, const auto& f) {
    const auto element = static_cast<std::intptr_t>(size_bytes(view.dtype));
    each_element(view, [&](std::intptr_t place) {
      const std::intptr_t end = std::min(both.end, place + element);
      for (std::intptr_t byte = std::max(both.begin, place); byte < end; ++byte)
        f(static_cast<std::size_t>(byte - both.begin));
    });
  };
  bytes_in(one, [&](std::size_t byte) { taken[byte] = true; });
  bool shared = false;
  bytes_in(other, [&](std::size_t byte) { shared = shared || taken[byte]; });
  return shared;
}

template <typename Framework>
nb::object export_array(const api::Tensor& tensor, nb::dlpack::dtype type) {
  std::vector<std::size_t> shape;
  for (const std::int64_t size : tensor.sizes()) shape.push_back(static_cast<std::size_t>(size));
  // A handle of the tensor, which shares its memory.
  auto* const held = new api::Tensor(tensor);
  const nb::capsule owner(held, [](void* pointer) noexcept { delete static_cast<api::Tensor*>(pointer); });
  const std::int64_t* strides = tensor.strides().empty() ? nullptr : tensor.strides().data();
  return nb::cast(nb::ndarray<Framework>(tensor.data(), shape.size(), shape.data(), owner, strides, type,
                                         nb::device::cpu::value, 0, 'C'),
                  nb::rv_policy::reference);
}

}  // namespace

const char* numpy_name(DType dtype) { return known(dtype).name; }

DType dtype_of_name(const std::string& name) {
  for (const Known& candidate : known_dtypes) {
    if (name == candidate.name) return candidate.dtype;
  }
  refuse("there is no dtype '" + name + "'.", "Use NumPy's names: float32, bfloat16, int64, bool.");
}

namespace {

// Tensors that PyTorch shares without a call of Python.
bool take_tensor(nb::handle given, GivenArray& out) {
  SharedTensor shared = share_tensor(given);
  if (shared == nullptr) return false;
  const DLTensor& tensor = shared->dl_tensor;
  const auto dtype = dtype_of({tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes});
  const auto rank = static_cast<std::size_t>(tensor.ndim);
  const bool described = rank == 0 || (tensor.shape != nullptr && tensor.strides != nullptr);
  if (tensor.device.device_type != kDLCPU || !dtype.has_value() || !described) return false;
  out.view.dtype = *dtype;
  if (rank > 0) {
    out.view.sizes.assign(tensor.shape, tensor.shape + rank);
    out.view.strides.assign(tensor.strides, tensor.strides + rank);
  }
  out.view.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  out.shared = std::move(shared);
  return true;
}

// The view of anything else, with its strides.
void take_other(nb::handle given, const std::string& what, bool writable, GivenArray& out) {
  std::optional<DType> dtype;
  if (import_array(given, writable, out.array)) dtype = dtype_of(out.array.dtype());
  if (!dtype.has_value()) {
    // What neither DLPack nor buffers can say: the same memory as integers of that width, or the reason why not.
    const nb::object plain = array_helper("reinterpret")(given, what, writable);
    if (!import_array(plain[0], writable, out.array))
      refuse(what + " cannot be read as an array.", "Give an array of NumPy or PyTorch.");
    dtype = dtype_of_name(nb::cast<std::string>(plain[1]));
  }
  if (out.array.device_type() != nb::device::cpu::value && out.array.device_type() != nb::device::cuda_host::value) {
    refuse(what + " lies on DLPack device type " + std::to_string(out.array.device_type()) +
               "; expected the memory of the CPU.",
           "Copy it to the CPU first, as with .cpu().");
  }
  out.view.dtype = *dtype;
  const std::size_t rank = out.array.ndim();
  if (rank > 0) {
    out.view.sizes.assign(out.array.shape_ptr(), out.array.shape_ptr() + rank);
    out.view.strides.assign(out.array.stride_ptr(), out.array.stride_ptr() + rank);
  }
  out.view.data = const_cast<void*>(out.array.data());
}

// A view of PyTorch that is negated when read: DLPack has no word for it.
bool is_negated(nb::handle tensor) {
  static PyObject* const method = PyUnicode_InternFromString("is_neg");
  const nb::object answer = nb::steal(PyObject_CallMethodObjArgs(tensor.ptr(), method, nullptr));
  if (!answer.is_valid()) throw nb::python_error();
  return answer.is(nb::handle(Py_True));
}

}  // namespace

GivenArray take_array(nb::handle given, const std::string& what, DType wanted, bool writable) {
  GivenArray out;
  out.is_torch = is_torch_tensor(given);
  nb::object held = nb::borrow(given);
  if (out.is_torch && is_negated(given)) {
    if (writable) refuse(what + " is a negated view of PyTorch.", "Give memory of its own.");
    held = held.attr("resolve_neg")();
  }
  if (!out.is_torch || !take_tensor(held, out)) take_other(held, what, writable, out);
  if (wanted == DType::i4 && out.view.dtype == DType::i8) out.view.dtype = wanted;
  if (wanted == DType::u4 && out.view.dtype == DType::u8) out.view.dtype = wanted;
  return out;
}

void expect_apart(const std::vector<GivenArray>& inputs, const std::vector<GivenArray>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (share_memory(outputs[j].view, outputs[i].view))
        refuse(
            "the memory given for output " + std::to_string(i) + " overlaps that of output " + std::to_string(j) + ".",
            "Give each output memory of its own.");
    }
    for (std::size_t j = 0; j < inputs.size(); ++j) {
      if (share_memory(inputs[j].view, outputs[i].view))
        refuse("the memory given for output " + std::to_string(i) + " overlaps input " + std::to_string(j) + ".",
               "Give each output memory of its own.");
    }
  }
}

nb::object give_array(const api::Tensor& tensor, bool as_torch) {
  const Known& as = known(tensor.dtype());
  nb::dlpack::dtype type{static_cast<std::uint8_t>(as.code), as.bits, 1};
  const bool is_f8 = tensor.dtype() == DType::f8e4m3 || tensor.dtype() == DType::f8e5m2;
  const bool is_plain = !is_f8 && (as_torch || tensor.dtype() != DType::bf16);
  if (!is_plain) type.code = static_cast<std::uint8_t>(Code::UInt);
  const bool is_4_bits = tensor.dtype() == DType::i4 || tensor.dtype() == DType::u4;
  if (as_torch && is_plain && !is_4_bits) {
    if (nb::object made = make_tensor(tensor); made.is_valid()) return made;
  }
  nb::object array = as_torch ? export_array<nb::pytorch>(tensor, type) : export_array<nb::numpy>(tensor, type);
  return is_plain ? array : array_helper("name_dtype")(array, as.name, as_torch);
}

}  // namespace polyphase::python

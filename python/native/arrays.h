// Arrays of Python as tensors, and back, without copying an element.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
#include <vector>

#include "native/torch_tensors.h"
#include "polyphase/polyphase.h"

namespace polyphase::python {

// numpy's name for a dtype: "float32", "bfloat16", "bool", …; i4 and u4 are "int4" and "uint4".
const char* numpy_name(DType dtype);
// Raises if there is none.
DType dtype_of_name(const std::string& name);

// A caller's array while it is in use.
struct GivenArray {
  nanobind::ndarray<nanobind::ro> array;  // one of these two keeps the memory
  SharedTensor shared;
  api::TensorView view;
  bool is_torch = false;
};

// Takes anything with __dlpack__ or a buffer, on the CPU, with any strides; `what` names it in what is raised.
// `writable`: read-only memory is refused. `wanted`: where a type has no name of its own in Python (i4), bytes of the
// same width do.
GivenArray take_array(nanobind::handle given, const std::string& what, DType wanted, bool writable);

// Raises if one of `outputs` shares an element with another or with one of `inputs`.
void expect_apart(const std::vector<GivenArray>& inputs, const std::vector<GivenArray>& outputs);

// Whose name a key is, as an index; raises if there is none. `word`: "input", "output".
std::size_t port_of(const std::vector<api::Port>& ports, nanobind::handle key, const std::string& word);
// A caller's arrays, by position and by name, in the order of the inputs.
std::vector<GivenArray> gather(const std::vector<api::Port>& ports, nanobind::object args, nanobind::dict named);

// The tensor's memory as an array, of PyTorch or NumPy, that keeps it alive.
nanobind::object give_array(const api::Tensor& tensor, bool as_torch);

}  // namespace polyphase::python

// Polyphase's errors as Python's.
#include "native/errors.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace polyphase::python {

void raise(const Error& error) {
  const nb::object made =
      nb::module_::import_("polyphase._errors")
          .attr("from_native")(name_of(error.code), error.message, error.hint, error.node, error.trail);
  PyErr_SetObject(made.type().ptr(), made.ptr());
  throw nb::python_error();
}

void refuse(const std::string& message, const std::string& hint) {
  raise(Error{ErrorCode::invalid_argument, message, hint});
}

}  // namespace polyphase::python

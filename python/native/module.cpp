// The extension module polyphase._native: what the Python package has in C++.
#include "native/module.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include "native/arrays.h"

namespace nb = nanobind;

namespace polyphase::python {
namespace {

unsigned generation = 0;

}  // namespace

unsigned fork_generation() { return generation; }

const api::Session& SessionHandle::get() const {
  if (!is_here()) {
    refuse("the session was made before this process was forked, and its threads stayed behind.",
           "Make a session in the child, or start processes by spawn instead of fork.");
  }
  return session_;
}

}  // namespace polyphase::python

NB_MODULE(_native, module) {
  namespace pp = polyphase::python;
  pthread_atfork(nullptr, nullptr, [] { ++pp::generation; });
  nanobind::set_leak_warnings(false);  // PyTorch keeps what it has compiled until the process is gone
  module.doc() = "Polyphase's C++ part. Use the package polyphase instead.";
  module.attr("version") = nb::str(polyphase::api::version().data(), polyphase::api::version().size());
  pp::bind_engine(module);
  pp::bind_session(module);
  pp::bind_compile(module);
  pp::bind_diagnose(module);
  pp::bind_export(module);
  pp::bind_network(module);
}

// Structs as Python's plain data.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vector>

namespace polyphase::python {

// [make(item) for item in items]
template <typename T, typename Make>
nanobind::list list_of(const std::vector<T>& items, const Make& make) {
  nanobind::list out;
  for (const T& item : items) out.append(make(item));
  return out;
}

// {"a": …, "b": …}
class Fields {
 public:
  template <typename T>
  Fields& operator()(const char* name, const T& value) {
    made_[name] = value;
    return *this;
  }
  operator nanobind::dict() const { return made_; }  // NOLINT(google-explicit-constructor): the end of a chain

 private:
  nanobind::dict made_;
};

}  // namespace polyphase::python

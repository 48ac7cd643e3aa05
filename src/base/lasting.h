// Tables that live as long as the process.
#pragma once

#include <utility>

namespace polyphase {

// The value as an object that is never destroyed. What a table is initialised with where a thread may still read it
// while the process ends: Python's daemon threads and detached ones go on while static objects are destroyed.
template <typename T>
const T& lasting(T value) {
  return *new T(std::move(value));
}

}  // namespace polyphase

// Whether an element of any type is no number: never, of integers.
#pragma once

#include <cmath>
#include <type_traits>

namespace polyphase::cpu {

template <typename T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  return false;
}

}  // namespace polyphase::cpu

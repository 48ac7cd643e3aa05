// Conversion between views of any dtype and dense buffers of the reference's type.
#include "ops/dense.h"

#include <type_traits>

namespace polyphase {
namespace {

template <typename T>
T load_as(const std::byte* element, DType dtype) {
  if constexpr (std::is_same_v<T, double>) {
    return load_double(element, dtype);
  } else {
    return load_integer(element, dtype);
  }
}

template <typename T>
void store_as(std::byte* element, DType dtype, T value) {
  if constexpr (std::is_same_v<T, double>) {
    store_double(element, dtype, value);
  } else {
    store_integer(element, dtype, value);
  }
}

template <typename T>
void store_all(const std::vector<T>& values, const TensorView& to) {
  CHECK(to.element_count() == static_cast<std::int64_t>(values.size()));
  const auto size = static_cast<std::int64_t>(size_bytes(to.dtype));
  const T* next = values.data();
  for_each_index<1>(to.size_span(), {to.strides.data()}, [&](const std::array<std::int64_t, 1>& at) {
    store_as<T>(to.data + at[0] * size, to.dtype, *next++);
  });
}

}  // namespace

template <typename T>
std::vector<T> dense_values(const TensorView& view) {
  std::vector<T> out(static_cast<std::size_t>(view.element_count()));
  const auto size = static_cast<std::int64_t>(size_bytes(view.dtype));
  T* next = out.data();
  for_each_index<1>(view.size_span(), {view.strides.data()}, [&](const std::array<std::int64_t, 1>& at) {
    *next++ = load_as<T>(view.data + at[0] * size, view.dtype);
  });
  return out;
}

template std::vector<double> dense_values(const TensorView& view);
template std::vector<std::int64_t> dense_values(const TensorView& view);

void store_values(const std::vector<double>& values, const TensorView& to) { store_all(values, to); }
void store_values(const std::vector<std::int64_t>& values, const TensorView& to) { store_all(values, to); }

}  // namespace polyphase

// Conversion between views of any dtype and dense buffers of the reference's type.
#include "ops/dense.h"

#include "ops/elements.h"

namespace polyphase {
namespace {

template <typename T>
void store_all(const std::vector<T>& values, const TensorView& to) {
  CHECK(to.element_count() == static_cast<std::int64_t>(values.size()));
  const T* next = values.data();
  for_each_row<1>(
      to.size_span(), {to.strides.data()}, RowOrder::logical,
      [&](const std::array<std::int64_t, 1>& at, std::int64_t count, const std::array<std::int64_t, 1>& step) {
        write_block(element_at(to, at[0]), to.dtype, step[0], count, next);
        next += count;
      });
}

}  // namespace

template <typename T>
std::vector<T> dense_values(const TensorView& view) {
  std::vector<T> out(static_cast<std::size_t>(view.element_count()));
  T* next = out.data();
  for_each_row<1>(
      view.size_span(), {view.strides.data()}, RowOrder::logical,
      [&](const std::array<std::int64_t, 1>& at, std::int64_t count, const std::array<std::int64_t, 1>& step) {
        read_block(element_at(view, at[0]), view.dtype, step[0], count, next);
        next += count;
      });
  return out;
}

template std::vector<double> dense_values(const TensorView& view);
template std::vector<std::int64_t> dense_values(const TensorView& view);

void store_values(const std::vector<double>& values, const TensorView& to) { store_all(values, to); }
void store_values(const std::vector<std::int64_t>& values, const TensorView& to) { store_all(values, to); }

}  // namespace polyphase

// Tensor data: a strided view (TensorView), the bytes behind it (Buffer), and both together (Tensor).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/layout.h"
#include "base/result.h"
#include "base/shape.h"

namespace polyphase {

// Sizes and strides of a tensor in logical order; no pointer. Strides are in elements and may be 0 (broadcast) or
// negative.
struct TensorDesc {
  DType dtype = DType::f32;
  int rank = 0;
  std::array<std::int64_t, max_rank> sizes{};
  std::array<std::int64_t, max_rank> strides{};

  TensorDesc() = default;
  TensorDesc(DType element, std::span<const std::int64_t> logical_sizes, const Layout& layout);
  static TensorDesc row_major(DType element, std::span<const std::int64_t> logical_sizes);

  std::span<const std::int64_t> size_span() const { return {sizes.data(), static_cast<std::size_t>(rank)}; }
  std::span<const std::int64_t> stride_span() const { return {strides.data(), static_cast<std::size_t>(rank)}; }
  std::int64_t element_count() const;  // CHECKs against overflow: sizes come from checked shapes
  bool empty() const;                  // some size is 0
  bool is_row_major() const;           // dense, strides of unit axes ignored
  bool is_dense(const Layout& layout) const;
  // Elements from the first to one past the last that the view can touch (strides >= 0), 0 when empty.
  std::int64_t extent() const;
};

// A borrowed tensor: `data` points at the element with index (0, …, 0).
struct TensorView : TensorDesc {
  std::byte* data = nullptr;

  TensorView() = default;
  TensorView(const TensorDesc& desc, std::byte* first) : TensorDesc(desc), data(first) {}
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

// Owner of bytes; what it frees depends on where they came from (heap, mapped file, a string).
class Buffer {
 public:
  // 64-byte aligned, zero-filled heap memory. An Error(out_of_memory) if the system refuses.
  static Result<std::shared_ptr<Buffer>> allocate(std::size_t size_bytes);
  // The same, of any contents: for what is written completely.
  static Result<std::shared_ptr<Buffer>> allocate_raw(std::size_t size_bytes);
  // The same, for what is let go soon (base/memory.h).
  static Result<std::shared_ptr<Buffer>> allocate_brief(std::size_t size_bytes);
  // Bytes that `owner` keeps alive.
  static std::shared_ptr<Buffer> borrow(std::shared_ptr<const void> owner, const std::byte* data,
                                        std::size_t size_bytes);

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  static Result<std::shared_ptr<Buffer>> from_memory(std::shared_ptr<std::byte> memory, std::size_t size_bytes);

  std::shared_ptr<const void> owner_;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

// A tensor with shared ownership of its bytes. Copies share them; treat as immutable once shared.
class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<Buffer> buffer, TensorView view) : buffer_(std::move(buffer)), view_(view) {}
  // Row-major, zero-filled. Error: too large for memory.
  static Result<Tensor> allocate(DType dtype, std::span<const std::int64_t> sizes);
  static Result<Tensor> allocate(const TensorDesc& desc);  // dense strides of the desc are kept
  // Small tensors from values (converted to dtype), for constants and tests. sizes' product must be values.size().
  static Tensor from_values(DType dtype, std::span<const std::int64_t> sizes, std::span<const double> values);
  static Tensor from_integers(DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> values);

  bool valid() const { return buffer_ != nullptr; }
  const TensorView& view() const { return view_; }
  DType dtype() const { return view_.dtype; }
  std::vector<std::int64_t> sizes() const { return {view_.size_span().begin(), view_.size_span().end()}; }
  Type type() const { return {view_.dtype, Shape::from_sizes(sizes())}; }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }

 private:
  std::shared_ptr<Buffer> buffer_;
  TensorView view_;
};

// One element as double or int64 (integers and bool exactly), and back with one rounding. Out of range integers wrap as
// C++ conversions of the two's complement value do; floats to integers truncate towards zero and saturate, NaN gives 0.
double load_double(const std::byte* element, DType dtype);
std::int64_t load_integer(const std::byte* element, DType dtype);  // u64 above 2^63-1 wraps
void store_double(std::byte* element, DType dtype, double value);
void store_integer(std::byte* element, DType dtype, std::int64_t value);

// Copies values between views of equal sizes (any strides); dtypes must be equal.
void copy_elements(const TensorView& from, const TensorView& to);
// The same bits, or both NaN, in every element; sizes and dtypes equal.
bool equal_elements(const TensorView& a, const TensorView& b);

// Calls f(offsets…) for each index of `sizes` in logical order: the loop under every reference implementation.
// `strides` lists one stride array per operand; f gets a std::array of element offsets.
template <std::size_t Operands, typename F>
void for_each_index(std::span<const std::int64_t> sizes, const std::array<const std::int64_t*, Operands>& strides,
                    F&& f) {
  const auto rank = sizes.size();
  for (const std::int64_t size : sizes) {
    if (size == 0) return;
  }
  std::array<std::int64_t, max_rank> index{};
  std::array<std::int64_t, Operands> offset{};
  for (;;) {
    f(static_cast<const std::array<std::int64_t, Operands>&>(offset));
    std::size_t axis = rank;
    for (;;) {
      if (axis == 0) return;
      --axis;
      if (++index[axis] < sizes[axis]) {
        for (std::size_t i = 0; i < Operands; ++i) offset[i] += strides[i][axis];
        break;
      }
      for (std::size_t i = 0; i < Operands; ++i) offset[i] -= strides[i][axis] * (sizes[axis] - 1);
      index[axis] = 0;
    }
  }
}

}  // namespace polyphase

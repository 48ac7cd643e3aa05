// Views, buffers and element access.
#include "base/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/float16.h"
#include "base/memory.h"
#include "base/rows.h"

namespace polyphase {

namespace {

// Axes in memory, the outermost first, are axis_at(0), axis_at(1), …: row-major ones, which every run asks about, need
// no list of them.
template <class AxisAt>
void lay_densely(TensorDesc& desc, const AxisAt& axis_at) {
  std::int64_t step = 1;
  for (auto i = static_cast<std::size_t>(desc.rank); i-- > 0;) {
    const std::size_t axis = axis_at(i);
    desc.strides[axis] = step;
    step *= std::max<std::int64_t>(desc.sizes[axis], 1);
  }
}

template <class AxisAt>
bool lies_densely(const TensorDesc& desc, const AxisAt& axis_at) {
  if (desc.empty()) return true;
  std::int64_t step = 1;
  for (auto i = static_cast<std::size_t>(desc.rank); i-- > 0;) {
    const std::size_t axis = axis_at(i);
    if (desc.sizes[axis] != 1 && desc.strides[axis] != step) return false;
    step *= desc.sizes[axis];
  }
  return true;
}

}  // namespace

TensorDesc::TensorDesc(DType element, std::span<const std::int64_t> logical_sizes, const Layout& layout)
    : dtype(element), rank(static_cast<int>(logical_sizes.size())) {
  CHECK(rank <= max_rank && layout.rank() == rank);
  std::copy(logical_sizes.begin(), logical_sizes.end(), sizes.begin());
  lay_densely(*this, [&](std::size_t i) { return layout.order()[i]; });
}

TensorDesc TensorDesc::row_major(DType element, std::span<const std::int64_t> logical_sizes) {
  CHECK(logical_sizes.size() <= static_cast<std::size_t>(max_rank));
  TensorDesc out;
  out.dtype = element;
  out.rank = static_cast<int>(logical_sizes.size());
  std::copy(logical_sizes.begin(), logical_sizes.end(), out.sizes.begin());
  lay_densely(out, [](std::size_t i) { return i; });
  return out;
}

std::int64_t TensorDesc::element_count() const {
  std::int64_t count = 1;
  for (const std::int64_t size : size_span()) CHECK(!__builtin_mul_overflow(count, size, &count));
  return count;
}

bool TensorDesc::empty() const {
  for (const std::int64_t size : size_span()) {
    if (size == 0) return true;
  }
  return false;
}

bool TensorDesc::is_row_major() const {
  return lies_densely(*this, [](std::size_t i) { return i; });
}

bool TensorDesc::is_dense(const Layout& layout) const {
  return layout.rank() == rank && lies_densely(*this, [&](std::size_t i) { return layout.order()[i]; });
}

std::int64_t TensorDesc::extent() const {
  if (empty()) return 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i) last += (sizes[i] - 1) * strides[i];
  return last + 1;
}

Result<std::shared_ptr<Buffer>> Buffer::allocate(std::size_t size_bytes) {
  return from_memory(allocate_memory(size_bytes, FreshMemory::zeros), size_bytes);
}

Result<std::shared_ptr<Buffer>> Buffer::allocate_raw(std::size_t size_bytes) {
  return from_memory(allocate_memory(size_bytes, FreshMemory::any), size_bytes);
}

Result<std::shared_ptr<Buffer>> Buffer::allocate_brief(std::size_t size_bytes) {
  return from_memory(allocate_memory(size_bytes, FreshMemory::brief), size_bytes);
}

Result<std::shared_ptr<Buffer>> Buffer::from_memory(std::shared_ptr<std::byte> memory, std::size_t size_bytes) {
  if (memory == nullptr) {
    return Error{ErrorCode::out_of_memory,
                 "a buffer of " + std::to_string(size_bytes) + " bytes could not be allocated.",
                 "Use smaller inputs, or a machine with more memory."};
  }
  const std::byte* const data = memory.get();
  return borrow(std::move(memory), data, size_bytes);
}

std::shared_ptr<Buffer> Buffer::borrow(std::shared_ptr<const void> owner, const std::byte* data,
                                       std::size_t size_bytes) {
  auto buffer = std::make_shared<Buffer>();
  buffer->owner_ = std::move(owner);
  buffer->data_ = const_cast<std::byte*>(data);
  buffer->size_bytes_ = size_bytes;
  return buffer;
}

Result<Tensor> Tensor::allocate(DType dtype, std::span<const std::int64_t> sizes) {
  if (sizes.size() > max_rank) {
    return Error{ErrorCode::unsupported,
                 "a tensor of rank " + std::to_string(sizes.size()) + " is beyond the highest rank, " +
                     std::to_string(max_rank) + ".",
                 "Join axes of the tensor."};
  }
  std::int64_t bytes = static_cast<std::int64_t>(polyphase::size_bytes(dtype));
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    if (size < 0)
      return Error{ErrorCode::invalid_argument, "a tensor size is negative: " + std::to_string(size) + ".",
                   "Sizes are 0 or more."};
    if (__builtin_mul_overflow(count, size, &count) ||
        __builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes)) {
      return Error{ErrorCode::out_of_memory, "a tensor's size in bytes leaves 64-bit arithmetic.",
                   "Use smaller inputs."};
    }
  }
  return allocate(TensorDesc::row_major(dtype, sizes));
}

Result<Tensor> Tensor::allocate(const TensorDesc& desc) {
  TRY(auto buffer, Buffer::allocate(static_cast<std::size_t>(desc.extent()) * polyphase::size_bytes(desc.dtype)));
  std::byte* data = buffer->data();
  return Tensor(std::move(buffer), TensorView(desc, data));
}

Tensor Tensor::from_values(DType dtype, std::span<const std::int64_t> sizes, std::span<const double> values) {
  Tensor out = allocate(dtype, sizes).value();
  CHECK(out.view_.element_count() == static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    store_double(out.view_.data + i * size_bytes(dtype), dtype, values[i]);
  return out;
}

Tensor Tensor::from_integers(DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> values) {
  Tensor out = allocate(dtype, sizes).value();
  CHECK(out.view_.element_count() == static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    store_integer(out.view_.data + i * size_bytes(dtype), dtype, values[i]);
  return out;
}

namespace {

template <typename T>
T read(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return value;
}

template <typename T>
void write(std::byte* element, T value) {
  std::memcpy(element, &value, sizeof(T));
}

template <typename T>
T saturated(double value) {
  if (std::isnan(value)) return 0;
  const double truncated = std::trunc(value);
  if (truncated <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (truncated >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(truncated);
}

}  // namespace

double load_double(const std::byte* element, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return static_cast<double>(read<float>(element));
    case DType::f64:
      return read<double>(element);
    case DType::f16:
      return static_cast<double>(static_cast<float>(read<Half>(element)));
    case DType::bf16:
      return static_cast<double>(static_cast<float>(read<BFloat16>(element)));
    case DType::f8e4m3:
      return static_cast<double>(static_cast<float>(read<Float8E4M3>(element)));
    case DType::f8e5m2:
      return static_cast<double>(static_cast<float>(read<Float8E5M2>(element)));
    case DType::u64:
      return static_cast<double>(read<std::uint64_t>(element));
    default:
      return static_cast<double>(load_integer(element, dtype));
  }
}

std::int64_t load_integer(const std::byte* element, DType dtype) {
  switch (dtype) {
    case DType::i8:
    case DType::i4:
      return read<std::int8_t>(element);
    case DType::u8:
    case DType::u4:
    case DType::boolean:
      return read<std::uint8_t>(element);
    case DType::i16:
      return read<std::int16_t>(element);
    case DType::u16:
      return read<std::uint16_t>(element);
    case DType::i32:
      return read<std::int32_t>(element);
    case DType::u32:
      return read<std::uint32_t>(element);
    case DType::i64:
      return read<std::int64_t>(element);
    case DType::u64:
      return static_cast<std::int64_t>(read<std::uint64_t>(element));
    default:
      return saturated<std::int64_t>(load_double(element, dtype));
  }
}

void store_double(std::byte* element, DType dtype, double value) {
  switch (dtype) {
    case DType::f32:
      return write(element, static_cast<float>(value));
    case DType::f64:
      return write(element, value);
    case DType::f16:
      return write(element, Half(value));
    case DType::bf16:
      return write(element, BFloat16(value));
    case DType::f8e4m3:
      return write(element, Float8E4M3(value));
    case DType::f8e5m2:
      return write(element, Float8E5M2(value));
    case DType::boolean:
      return write(element, static_cast<std::uint8_t>(value != 0 ? 1 : 0));
    case DType::i8:
      return write(element, saturated<std::int8_t>(value));
    case DType::u8:
      return write(element, saturated<std::uint8_t>(value));
    case DType::i16:
      return write(element, saturated<std::int16_t>(value));
    case DType::u16:
      return write(element, saturated<std::uint16_t>(value));
    case DType::i32:
      return write(element, saturated<std::int32_t>(value));
    case DType::u32:
      return write(element, saturated<std::uint32_t>(value));
    case DType::u64:
      return write(element, saturated<std::uint64_t>(value));
    case DType::i64:
      return write(element, saturated<std::int64_t>(value));
    case DType::i4:
      return store_integer(element, dtype,
                           std::min<std::int64_t>(7, std::max<std::int64_t>(-8, saturated<std::int64_t>(value))));
    case DType::u4:
      return store_integer(element, dtype,
                           std::min<std::int64_t>(15, std::max<std::int64_t>(0, saturated<std::int64_t>(value))));
  }
}

void store_integer(std::byte* element, DType dtype, std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  switch (dtype) {
    case DType::i8:
    case DType::u8:
      return write(element, static_cast<std::uint8_t>(bits));
    case DType::i16:
    case DType::u16:
      return write(element, static_cast<std::uint16_t>(bits));
    case DType::i32:
    case DType::u32:
      return write(element, static_cast<std::uint32_t>(bits));
    case DType::i64:
    case DType::u64:
      return write(element, bits);
    case DType::boolean:
      return write(element, static_cast<std::uint8_t>(value != 0 ? 1 : 0));
    case DType::i4:
      return write(element,
                   static_cast<std::int8_t>(static_cast<std::int8_t>(static_cast<std::uint8_t>(bits << 4U)) >> 4));
    case DType::u4:
      return write(element, static_cast<std::uint8_t>(bits & 15U));
    default:
      return store_double(element, dtype, static_cast<double>(value));
  }
}

namespace {

template <typename Bits>
void copy_row(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t count) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Bits));
  if (to_step == 1 && from_step == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count * size));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) write(to + i * to_step * size, read<Bits>(from + i * from_step * size));
}

using CopyRow = void (*)(std::byte*, std::int64_t, const std::byte*, std::int64_t, std::int64_t);

CopyRow copy_row_of(std::size_t size) {
  switch (size) {
    case 1:
      return copy_row<std::uint8_t>;
    case 2:
      return copy_row<std::uint16_t>;
    case 4:
      return copy_row<std::uint32_t>;
    default:
      return copy_row<std::uint64_t>;
  }
}

template <typename Bits>
bool equal_row(const std::byte* x, std::int64_t x_step, const std::byte* y, std::int64_t y_step, std::int64_t count) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Bits));
  if (x_step == 1 && y_step == 1) return std::memcmp(x, y, static_cast<std::size_t>(count * size)) == 0;
  Bits difference = 0;
  for (std::int64_t i = 0; i < count; ++i)
    difference |= static_cast<Bits>(read<Bits>(x + i * x_step * size) ^ read<Bits>(y + i * y_step * size));
  return difference == 0;
}

using EqualRow = bool (*)(const std::byte*, std::int64_t, const std::byte*, std::int64_t, std::int64_t);

EqualRow equal_row_of(std::size_t size) {
  switch (size) {
    case 1:
      return equal_row<std::uint8_t>;
    case 2:
      return equal_row<std::uint16_t>;
    case 4:
      return equal_row<std::uint32_t>;
    default:
      return equal_row<std::uint64_t>;
  }
}

bool equal_sizes(const TensorView& a, const TensorView& b) {
  return a.rank == b.rank && std::equal(a.sizes.begin(), a.sizes.begin() + a.rank, b.sizes.begin());
}

}  // namespace

void copy_elements(const TensorView& from, const TensorView& to) {
  CHECK(from.dtype == to.dtype && equal_sizes(from, to));
  const auto size = static_cast<std::int64_t>(size_bytes(from.dtype));
  const CopyRow copy = copy_row_of(static_cast<std::size_t>(size));
  for_each_row<2>(to.size_span(), {to.strides.data(), from.strides.data()}, RowOrder::any,
                  [&](const auto& at, std::int64_t count, const auto& step) {
                    copy(to.data + at[0] * size, step[0], from.data + at[1] * size, step[1], count);
                  });
}

bool equal_elements(const TensorView& a, const TensorView& b) {
  if (a.dtype != b.dtype || !equal_sizes(a, b)) return false;
  const auto size = static_cast<std::int64_t>(size_bytes(a.dtype));
  const EqualRow equal_bits = equal_row_of(static_cast<std::size_t>(size));
  bool equal = true;
  for_each_row<2>(a.size_span(), {a.strides.data(), b.strides.data()}, RowOrder::any,
                  [&](const auto& at, std::int64_t count, const auto& step) {
                    const std::byte* x = a.data + at[0] * size;
                    const std::byte* y = b.data + at[1] * size;
                    if (!equal || equal_bits(x, step[0], y, step[1], count)) return;
                    for (std::int64_t i = 0; i < count && equal; ++i) {
                      const std::byte* left = x + i * step[0] * size;
                      const std::byte* right = y + i * step[1] * size;
                      equal = equal_bits(left, 1, right, 1, 1) ||
                              (is_float(a.dtype) && std::isnan(load_double(left, a.dtype)) &&
                               std::isnan(load_double(right, a.dtype)));
                    }
                  });
  return equal;
}

}  // namespace polyphase

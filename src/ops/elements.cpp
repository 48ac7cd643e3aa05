// Blocks of elements by dtype.
#include "ops/elements.h"

#include <bit>
#include <cstring>
#include <limits>

#include "base/float16.h"

namespace polyphase {

double rounded_to_odd(std::uint64_t magnitude) {
  const int excess = 64 - std::countl_zero(magnitude) - 53;
  if (excess <= 0) return static_cast<double>(magnitude);
  const std::uint64_t lost = magnitude & ((std::uint64_t{1} << excess) - 1);
  const std::uint64_t kept = (magnitude >> excess) | (lost != 0 ? 1U : 0U);
  return static_cast<double>(kept) * static_cast<double>(std::uint64_t{1} << excess);
}

namespace {

// How each dtype lies in memory.
struct Int4 {
  std::int8_t value;
};
struct UInt4 {
  std::uint8_t value;
};
struct Boolean {
  std::uint8_t value;
};

template <typename T>
constexpr bool floating = std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> ||
                          std::is_same_v<T, Float8E4M3> || std::is_same_v<T, Float8E5M2>;
template <typename T>
constexpr bool small_float = floating<T> && !std::is_floating_point_v<T>;

template <typename T>
T load(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return value;
}

template <typename To>
To saturated(double value) {
  // The upper limit may round up to a power of two, which is itself out of range.
  constexpr auto low = static_cast<double>(std::numeric_limits<To>::min());
  constexpr auto high = static_cast<double>(std::numeric_limits<To>::max());
  if (!(value > low)) return value != value ? To{0} : std::numeric_limits<To>::min();
  if (value >= high) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}

template <typename Number, typename T>
Number number_from(T element) {
  if constexpr (small_float<T>) {
    return number_from<Number>(static_cast<double>(static_cast<float>(element)));
  } else if constexpr (std::is_same_v<T, Int4> || std::is_same_v<T, UInt4> || std::is_same_v<T, Boolean>) {
    return static_cast<Number>(element.value);
  } else if constexpr (std::is_floating_point_v<T> && std::is_integral_v<Number>) {
    return saturated<Number>(static_cast<double>(element));
  } else {
    return static_cast<Number>(element);
  }
}

template <typename T>
T element_from(double value) {
  if constexpr (floating<T>) {
    return T(value);
  } else if constexpr (std::is_same_v<T, Boolean>) {
    return {static_cast<std::uint8_t>(value != 0 ? 1 : 0)};
  } else if constexpr (std::is_same_v<T, Int4>) {
    return {static_cast<std::int8_t>(std::clamp<std::int64_t>(saturated<std::int64_t>(value), -8, 7))};
  } else if constexpr (std::is_same_v<T, UInt4>) {
    return {static_cast<std::uint8_t>(std::clamp<std::int64_t>(saturated<std::int64_t>(value), 0, 15))};
  } else {
    return saturated<T>(value);
  }
}

template <typename T, typename Integer>
T element_from(Integer value) {
  static_assert(std::is_integral_v<Integer>);
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else if constexpr (floating<T>) {
    const bool negative = value < 0;
    const auto bits = static_cast<std::uint64_t>(value);
    const double magnitude = rounded_to_odd(negative ? 0 - bits : bits);
    return T(negative ? -magnitude : magnitude);
  } else if constexpr (std::is_same_v<T, Boolean>) {
    return {static_cast<std::uint8_t>(value != 0 ? 1 : 0)};
  } else if constexpr (std::is_same_v<T, Int4>) {
    const auto nibble = static_cast<std::int8_t>(static_cast<std::uint8_t>(value) & 15U);
    return {static_cast<std::int8_t>(nibble < 8 ? nibble : nibble - 16)};
  } else if constexpr (std::is_same_v<T, UInt4>) {
    return {static_cast<std::uint8_t>(static_cast<std::uint8_t>(value) & 15U)};
  } else {
    return static_cast<T>(value);
  }
}

// f(T{}) with T the storage type.
template <typename F>
void with_storage(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::f16:
      return f(Half{});
    case DType::bf16:
      return f(BFloat16{});
    case DType::f8e4m3:
      return f(Float8E4M3{});
    case DType::f8e5m2:
      return f(Float8E5M2{});
    case DType::i8:
      return f(std::int8_t{});
    case DType::u8:
      return f(std::uint8_t{});
    case DType::i16:
      return f(std::int16_t{});
    case DType::u16:
      return f(std::uint16_t{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::u32:
      return f(std::uint32_t{});
    case DType::i64:
      return f(std::int64_t{});
    case DType::u64:
      return f(std::uint64_t{});
    case DType::boolean:
      return f(Boolean{});
    case DType::i4:
      return f(Int4{});
    case DType::u4:
      return f(UInt4{});
  }
}

template <typename Number>
void read_line(const std::byte* first, DType dtype, std::int64_t step, std::int64_t count, Number* out) {
  with_storage(dtype, [=]<typename T>(T) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(T));
    if (step == 1) {
      for (std::int64_t i = 0; i < count; ++i) out[i] = number_from<Number>(load<T>(first + i * size));
    } else if (step == 0) {
      std::fill_n(out, count, number_from<Number>(load<T>(first)));
    } else {
      for (std::int64_t i = 0; i < count; ++i) out[i] = number_from<Number>(load<T>(first + i * step * size));
    }
  });
}

template <typename Number>
void write(std::byte* first, DType dtype, std::int64_t step, std::int64_t count, const Number* values) {
  with_storage(dtype, [=]<typename T>(T) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(T));
    const auto store = [](std::byte* to, Number value) {
      const T element = element_from<T>(value);
      std::memcpy(to, &element, sizeof(T));
    };
    if (step == 1) {
      for (std::int64_t i = 0; i < count; ++i) store(first + i * size, values[i]);
    } else {
      for (std::int64_t i = 0; i < count; ++i) store(first + i * step * size, values[i]);
    }
  });
}

}  // namespace

void read_block(const std::byte* first, DType dtype, std::int64_t step, std::int64_t count, double* out) {
  read_line(first, dtype, step, count, out);
}

void read_block(const std::byte* first, DType dtype, std::int64_t step, std::int64_t count, std::int64_t* out) {
  read_line(first, dtype, step, count, out);
}

void write_block(std::byte* first, DType dtype, std::int64_t step, std::int64_t count, const double* values) {
  write(first, dtype, step, count, values);
}

void write_block(std::byte* first, DType dtype, std::int64_t step, std::int64_t count, const std::int64_t* values,
                 bool is_unsigned) {
  if (is_unsigned) return write(first, dtype, step, count, reinterpret_cast<const std::uint64_t*>(values));
  write(first, dtype, step, count, values);
}

}  // namespace polyphase

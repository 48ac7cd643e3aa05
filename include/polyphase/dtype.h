// DType: how one element of a tensor is stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace polyphase {

// Storage types. DO NOT CHANGE THE NUMBERS: they are embedded in engine files.
// i4 and u4 take one byte per element in memory (sign-extended); they are packed only in other systems' files.
enum class DType : std::uint8_t {
  f32 = 0,
  f64 = 1,
  f16 = 2,     // IEEE 754 binary16
  bf16 = 3,    // upper half of binary32
  f8e4m3 = 4,  // OCP 8-bit, no infinity
  f8e5m2 = 5,  // OCP 8-bit, IEEE-like
  i8 = 6,
  u8 = 7,
  i16 = 8,
  u16 = 9,
  i32 = 10,
  u32 = 11,
  i64 = 12,
  u64 = 13,
  boolean = 14,  // one byte, 0 or 1
  i4 = 15,
  u4 = 16,
};
inline constexpr int dtype_count = 17;

std::size_t size_bytes(DType dtype);
std::string_view name_of(DType dtype);  // "f32", "bf16", "bool", ...
std::optional<DType> dtype_from_name(std::string_view name);

bool is_float(DType dtype);    // f64 … f8
bool is_integer(DType dtype);  // i4 … u64, not bool
bool is_signed(DType dtype);   // floats and signed integers

}  // namespace polyphase

// The table of storage types.
#include "base/dtype.h"

#include "base/check.h"

namespace polyphase {
namespace {

struct Row {
  std::string_view name;
  std::size_t size_bytes;
  bool floating;
  bool with_sign;
};

constexpr Row rows[dtype_count] = {
    {"f32", 4, true, true},    {"f64", 8, true, true},    {"f16", 2, true, true},    {"bf16", 2, true, true},
    {"f8e4m3", 1, true, true}, {"f8e5m2", 1, true, true}, {"i8", 1, false, true},    {"u8", 1, false, false},
    {"i16", 2, false, true},   {"u16", 2, false, false},  {"i32", 4, false, true},   {"u32", 4, false, false},
    {"i64", 8, false, true},   {"u64", 8, false, false},  {"bool", 1, false, false}, {"i4", 1, false, true},
    {"u4", 1, false, false},
};

const Row& row_of(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  CHECK(index < dtype_count);
  return rows[index];
}

}  // namespace

std::size_t size_bytes(DType dtype) { return row_of(dtype).size_bytes; }
std::string_view name_of(DType dtype) { return row_of(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 0; i < dtype_count; ++i) {
    if (rows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool is_float(DType dtype) { return row_of(dtype).floating; }
bool is_integer(DType dtype) { return !row_of(dtype).floating && dtype != DType::boolean; }
bool is_signed(DType dtype) { return row_of(dtype).with_sign; }

int promotion_kind(DType dtype) { return is_float(dtype) ? 2 : is_integer(dtype) ? 1 : 0; }

// Source: the table of c10/core/ScalarType.
DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (promotion_kind(a) != promotion_kind(b)) return promotion_kind(a) > promotion_kind(b) ? a : b;
  if (is_float(a)) {
    if (a == DType::f64 || b == DType::f64) return DType::f64;
    if (size_bytes(a) == size_bytes(b)) return DType::f32;  // f16 with bf16
    return size_bytes(a) > size_bytes(b) ? a : b;
  }
  if (is_signed(a) == is_signed(b)) return size_bytes(a) > size_bytes(b) ? a : b;
  const DType with_sign = is_signed(a) ? a : b;
  const DType without = is_signed(a) ? b : a;
  if (size_bytes(with_sign) > size_bytes(without)) return with_sign;
  switch (size_bytes(without)) {
    case 1:
      return DType::i16;
    case 2:
      return DType::i32;
    default:
      return DType::i64;
  }
}

std::optional<DType> Promotion::result() const {
  std::optional<DType> out = of_tensors_;
  for (const auto& more : {of_rank_0_, of_numbers_}) {
    if (!more.has_value()) continue;
    if (!out.has_value() || promotion_kind(*more) > promotion_kind(*out)) out = *more;
  }
  return out;
}

void Promotion::join(std::optional<DType>& into, DType more) {
  into = into.has_value() ? promote_types(*into, more) : more;
}

}  // namespace polyphase

// Which field holds which type: ONNX's rules, from onnx.proto.
#include "wire/packed_data.h"

#include <cstring>
#include <limits>
#include <string>

#include "base/dtype.h"
#include "onnx/onnx.pb.h"

namespace polyphase::wire {
namespace {

Error wrong_count(const char* field, std::int64_t found, std::int64_t expected) {
  return Error{ErrorCode::invalid_model,
               std::string(field) + " holds " + std::to_string(found) + " entries, but the tensor's shape needs " +
                   std::to_string(expected) + ".",
               "The model is damaged: export it again."};
}

Result<void> check_other_fields(const onnx::TensorProto& proto, int used_size) {
  const int all = proto.float_data_size() + proto.int32_data_size() + proto.int64_data_size() +
                  proto.double_data_size() + proto.uint64_data_size() + proto.string_data_size();
  if (all == used_size) return {};
  return Error{ErrorCode::invalid_model,
               "the tensor's data lie in a field that is not the one of its element type, or in two fields.",
               "The model is damaged: export it again."};
}

template <typename T, typename Field>
Result<void> copy_as(const char* name, const Field& field, const TensorView& out) {
  const std::int64_t count = out.element_count();
  if (field.size() != count) return wrong_count(name, field.size(), count);
  for (int i = 0; i < field.size(); ++i) {
    if constexpr (std::numeric_limits<T>::is_integer) {
      if (!std::in_range<T>(field[i])) {
        return Error{ErrorCode::invalid_model,
                     std::string(name) + " holds " + std::to_string(field[i]) + ", which its element type " +
                         std::string(name_of(out.dtype)) + " cannot.",
                     "The model is damaged: export it again."};
      }
    }
    out.as<T>()[i] = static_cast<T>(field[i]);
  }
  return {};
}

// 8-bit elements may be written signed or as their bit pattern; both fit −128…255.
Result<void> copy_bytes(const onnx::TensorProto& proto, const TensorView& out) {
  const auto& field = proto.int32_data();
  const std::int64_t count = out.element_count();
  if (field.size() != count) return wrong_count("int32_data", field.size(), count);
  const bool is_bits = out.dtype == DType::f8e4m3 || out.dtype == DType::f8e5m2;
  const int low = out.dtype == DType::i8 ? -128 : 0;
  const int high = out.dtype == DType::i8 ? 127 : (out.dtype == DType::boolean ? 1 : 255);
  for (int i = 0; i < field.size(); ++i) {
    if (field[i] < (is_bits ? 0 : low) || field[i] > high) {
      return Error{ErrorCode::invalid_model,
                   "int32_data holds " + std::to_string(field[i]) + ", which its element type " +
                       std::string(name_of(out.dtype)) + " cannot.",
                   "The model is damaged: export it again."};
    }
    out.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(field[i]);
  }
  return {};
}

Result<void> copy_nibbles(const onnx::TensorProto& proto, const TensorView& out) {
  const auto& field = proto.int32_data();
  const std::int64_t packed = (out.element_count() + 1) / 2;
  if (field.size() != packed) return wrong_count("int32_data", field.size(), packed);
  std::vector<std::byte> bytes(static_cast<std::size_t>(packed));
  for (int i = 0; i < field.size(); ++i) bytes[static_cast<std::size_t>(i)] = static_cast<std::byte>(field[i] & 0xff);
  unpack_nibbles(bytes, out);
  return {};
}

}  // namespace

bool has_typed_data(const onnx::TensorProto& proto) {
  return proto.float_data_size() != 0 || proto.int32_data_size() != 0 || proto.int64_data_size() != 0 ||
         proto.double_data_size() != 0 || proto.uint64_data_size() != 0 || proto.string_data_size() != 0;
}

void unpack_nibbles(std::span<const std::byte> packed, const TensorView& out) {
  const std::int64_t count = out.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto pair = static_cast<unsigned>(packed[static_cast<std::size_t>(i / 2)]);
    const unsigned nibble = i % 2 == 0 ? pair & 15U : pair >> 4U;
    const bool negative = out.dtype == DType::i4 && nibble >= 8;
    out.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(negative ? nibble | 0xf0U : nibble);
  }
}

Result<void> copy_typed_data(const onnx::TensorProto& proto, const TensorView& out) {
  switch (out.dtype) {
    case DType::f32:
      TRY_VOID(check_other_fields(proto, proto.float_data_size()));
      return copy_as<float>("float_data", proto.float_data(), out);
    case DType::f64:
      TRY_VOID(check_other_fields(proto, proto.double_data_size()));
      return copy_as<double>("double_data", proto.double_data(), out);
    case DType::i64:
      TRY_VOID(check_other_fields(proto, proto.int64_data_size()));
      return copy_as<std::int64_t>("int64_data", proto.int64_data(), out);
    case DType::u64:
      TRY_VOID(check_other_fields(proto, proto.uint64_data_size()));
      return copy_as<std::uint64_t>("uint64_data", proto.uint64_data(), out);
    case DType::u32:
      TRY_VOID(check_other_fields(proto, proto.uint64_data_size()));
      return copy_as<std::uint32_t>("uint64_data", proto.uint64_data(), out);
    default:
      break;
  }
  TRY_VOID(check_other_fields(proto, proto.int32_data_size()));
  switch (out.dtype) {
    case DType::i32:
      return copy_as<std::int32_t>("int32_data", proto.int32_data(), out);
    case DType::i16:
      return copy_as<std::int16_t>("int32_data", proto.int32_data(), out);
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      return copy_as<std::uint16_t>("int32_data", proto.int32_data(), out);  // floats as their bit patterns
    case DType::i4:
    case DType::u4:
      return copy_nibbles(proto, out);
    default:
      return copy_bytes(proto, out);
  }
}

}  // namespace polyphase::wire

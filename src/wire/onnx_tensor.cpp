// Dense tensors: raw bytes are moved out of the proto, everything else is converted once.
#include "wire/onnx_tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "onnx/onnx.pb.h"
#include "wire/dtype_map.h"
#include "wire/packed_data.h"

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian, and so must the machine be");

namespace polyphase::wire {

Result<std::vector<std::int64_t>> checked_sizes(const std::int64_t* dims, int rank, DType dtype) {
  if (rank > max_rank) {
    return Error{
        ErrorCode::unsupported,
        "the tensor has rank " + std::to_string(rank) + "; the highest rank is " + std::to_string(max_rank) + ".",
        "Reshape it before the export."};
  }
  auto bytes = static_cast<std::int64_t>(size_bytes(dtype));
  std::vector<std::int64_t> sizes(dims, dims + rank);
  for (const std::int64_t size : sizes) {
    if (size < 0) {
      return Error{ErrorCode::invalid_model, "the tensor has a negative size, " + std::to_string(size) + ".",
                   "The model is damaged: export it again."};
    }
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes)) {
      return Error{ErrorCode::invalid_model, "the tensor's sizes multiply to more than 64 bits hold.",
                   "The model is damaged: export it again."};
    }
  }
  return sizes;
}

namespace {

Result<void> check_length(std::int64_t found, std::int64_t expected) {
  if (found == expected) return {};
  return Error{ErrorCode::invalid_model,
               "raw_data holds " + std::to_string(found) + " bytes, but the tensor's type and shape need " +
                   std::to_string(expected) + ".",
               "The model is damaged: export it again."};
}

// Booleans are any non-zero byte on the wire, 0 or 1 with us. The bytes are ours alone here.
void normalise_booleans(const TensorView& view) {
  auto* bytes = view.as<std::uint8_t>();
  std::transform(bytes, bytes + view.element_count(), bytes,
                 [](std::uint8_t b) { return static_cast<std::uint8_t>(b != 0); });
}

Result<Tensor> from_bytes(std::shared_ptr<Buffer> bytes, const TensorDesc& desc, bool may_write) {
  const bool four_bits = desc.dtype == DType::i4 || desc.dtype == DType::u4;
  const bool misaligned = reinterpret_cast<std::uintptr_t>(bytes->data()) % size_bytes(desc.dtype) != 0;
  if (!four_bits && !misaligned && (desc.dtype != DType::boolean || may_write)) {
    std::byte* data = bytes->data();
    Tensor out(std::move(bytes), TensorView(desc, data));
    if (desc.dtype == DType::boolean) normalise_booleans(out.view());
    return out;
  }
  TRY(Tensor out, Tensor::allocate(desc));
  if (four_bits) {
    unpack_nibbles({bytes->data(), bytes->size_bytes()}, out.view());
  } else if (bytes->size_bytes() != 0) {
    std::memcpy(out.view().data, bytes->data(), bytes->size_bytes());
    if (desc.dtype == DType::boolean) normalise_booleans(out.view());
  }
  return out;
}

}  // namespace

Result<Tensor> take_tensor(onnx::TensorProto& proto, ExternalData& external) {
  TRY(const DType dtype, dtype_from_onnx(proto.data_type()));
  TRY(const auto sizes, checked_sizes(proto.dims().data(), proto.dims_size(), dtype));
  if (proto.has_segment()) {
    return Error{ErrorCode::unsupported, "the tensor is stored in segments.",
                 "Save the model again with a current onnx package."};
  }
  const TensorDesc desc = TensorDesc::row_major(dtype, sizes);
  const std::int64_t count = desc.element_count();
  const bool four_bits = dtype == DType::i4 || dtype == DType::u4;
  const std::int64_t stored = four_bits ? count / 2 + count % 2 : count * static_cast<std::int64_t>(size_bytes(dtype));

  const bool is_external = proto.data_location() == onnx::TensorProto::EXTERNAL;
  std::shared_ptr<Buffer> apart = external.take_set_apart(proto);
  const bool is_raw = apart != nullptr || (proto.has_raw_data() && !proto.raw_data().empty());
  const int places = (is_external ? 1 : 0) + (is_raw ? 1 : 0) + (has_typed_data(proto) ? 1 : 0);
  if (places > 1) {
    return Error{ErrorCode::invalid_model,
                 "the tensor's data are there twice (raw_data, a typed field, or an external file).",
                 "The model is damaged: export it again."};
  }
  if (is_external) {
    TRY(auto bytes, external.read(proto, stored));
    return from_bytes(std::move(bytes), desc, false);
  }
  if (apart != nullptr) {
    TRY_VOID(check_length(static_cast<std::int64_t>(apart->size_bytes()), stored));
    return from_bytes(std::move(apart), desc, true);
  }
  if (proto.has_raw_data() && (places == 1 && !has_typed_data(proto))) {
    TRY_VOID(check_length(static_cast<std::int64_t>(proto.raw_data().size()), stored));
    const std::shared_ptr<std::string> owner(proto.release_raw_data());
    return from_bytes(Buffer::borrow(owner, reinterpret_cast<const std::byte*>(owner->data()), owner->size()), desc,
                      true);
  }
  if (places == 0 && stored != 0) {
    return Error{ErrorCode::invalid_model,
                 "the tensor has no data, but its type and shape need " + std::to_string(stored) + " bytes.",
                 "The model is damaged: export it again."};
  }
  // Each element takes at least a byte of the file, so this allocation is bounded by it.
  const std::int64_t entries = std::int64_t{proto.float_data_size()} + proto.int32_data_size() +
                               proto.int64_data_size() + proto.double_data_size() + proto.uint64_data_size() +
                               proto.string_data_size();
  if (count > 2 * entries) {
    return Error{ErrorCode::invalid_model,
                 "the tensor's data field holds " + std::to_string(entries) + " entries, but its shape needs " +
                     std::to_string(count) + ".",
                 "The model is damaged: export it again."};
  }
  TRY(Tensor out, Tensor::allocate(desc));
  if (count != 0 || entries != 0) TRY_VOID(copy_typed_data(proto, out.view()));
  return out;
}

}  // namespace polyphase::wire

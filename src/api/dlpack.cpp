// Tensors from and to DLPack.
#include "polyphase/dlpack.h"

#include <array>
#include <memory>

#include "api/dlpack.h"
#include "api/state.h"

namespace polyphase::api {
namespace {

struct Code {
  DType dtype;
  std::uint8_t code;
  std::uint8_t bits;
};
constexpr std::array<Code, dtype_count> codes{{{DType::f32, kDLFloat, 32},
                                               {DType::f64, kDLFloat, 64},
                                               {DType::f16, kDLFloat, 16},
                                               {DType::bf16, kDLBfloat, 16},
                                               {DType::f8e4m3, kDLFloat8_e4m3fn, 8},
                                               {DType::f8e5m2, kDLFloat8_e5m2, 8},
                                               {DType::i8, kDLInt, 8},
                                               {DType::u8, kDLUInt, 8},
                                               {DType::i16, kDLInt, 16},
                                               {DType::u16, kDLUInt, 16},
                                               {DType::i32, kDLInt, 32},
                                               {DType::u32, kDLUInt, 32},
                                               {DType::i64, kDLInt, 64},
                                               {DType::u64, kDLUInt, 64},
                                               {DType::boolean, kDLBool, 8},
                                               {DType::i4, kDLInt, 4},
                                               {DType::u4, kDLUInt, 4}}};

bool is_padded(DType dtype) { return dtype == DType::i4 || dtype == DType::u4; }

// What a DLPack tensor of ours holds on to.
struct Shared {
  DLManagedTensorVersioned face{};
  Tensor tensor;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};

std::vector<std::int64_t> strides_of(const Tensor& tensor) {
  if (!tensor.strides().empty()) return tensor.strides();
  std::vector<std::int64_t> out(tensor.sizes().size());
  std::int64_t step = 1;
  for (std::size_t i = out.size(); i-- > 0;) {
    out[i] = step;
    step *= std::max<std::int64_t>(tensor.sizes()[i], 1);
  }
  return out;
}

Result<DType> dtype_of(const DLManagedTensorVersioned& tensor) {
  const DLDataType& type = tensor.dl_tensor.dtype;
  const bool padded = (tensor.flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0;
  if (type.lanes == 1) {
    for (const Code& known : codes) {
      if (known.code == type.code && known.bits == type.bits && (padded || !is_padded(known.dtype))) return known.dtype;
    }
  }
  return Error{ErrorCode::unsupported,
               "the DLPack tensor has elements of type code " + std::to_string(type.code) + ", " +
                   std::to_string(type.bits) + " bits, " + std::to_string(type.lanes) + " lanes.",
               "Give floats, integers or bool, one lane; 4-bit integers one a byte."};
}

}  // namespace

Result<TensorView> dlpack_shape(const DLManagedTensorVersioned& tensor) {
  const DLTensor& inner = tensor.dl_tensor;
  if (tensor.version.major != 1) {
    return Error{ErrorCode::unsupported,
                 "the DLPack tensor is of version " + std::to_string(tensor.version.major) + "; expected 1.",
                 "Make it with a library that writes DLPack 1."};
  }
  if (inner.device.device_type != kDLCPU && inner.device.device_type != kDLCUDAHost) {
    return Error{ErrorCode::invalid_argument,
                 "the DLPack tensor lies on device type " + std::to_string(inner.device.device_type) +
                     "; expected the CPU's memory.",
                 "Copy it to the CPU first."};
  }
  if (inner.ndim < 0 || inner.ndim > max_rank || (inner.ndim > 0 && inner.shape == nullptr)) {
    return Error{ErrorCode::invalid_argument,
                 "the DLPack tensor has rank " + std::to_string(inner.ndim) + "; ranks from 0 to " +
                     std::to_string(max_rank) + " are taken.",
                 "Reshape the tensor."};
  }
  TensorView out;
  TRY(out.dtype, dtype_of(tensor));
  if (inner.ndim > 0) out.sizes.assign(inner.shape, inner.shape + inner.ndim);
  if (inner.ndim > 0 && inner.strides != nullptr) out.strides.assign(inner.strides, inner.strides + inner.ndim);
  return out;
}

Result<TensorView> view_of_dlpack(const DLManagedTensorVersioned& tensor) {
  return without_throwing([&]() -> Result<TensorView> {
    TRY(TensorView out, dlpack_shape(tensor));
    if (tensor.dl_tensor.data != nullptr)
      out.data = static_cast<std::byte*>(tensor.dl_tensor.data) + tensor.dl_tensor.byte_offset;
    TRY(const polyphase::TensorView checked, inner_view(out, "the DLPack tensor"));
    static_cast<void>(checked);
    return out;
  });
}

Result<Tensor> Tensor::from_dlpack(DLManagedTensorVersioned* tensor) {
  if (tensor == nullptr)
    return Error{ErrorCode::invalid_argument, "the DLPack tensor is null.",
                 "Give the address of a DLManagedTensorVersioned."};
  return without_throwing([&]() -> Result<Tensor> {
    std::shared_ptr<void> owner(tensor, [](void* held) {
      auto* const given = static_cast<DLManagedTensorVersioned*>(held);
      if (given->deleter != nullptr) given->deleter(given);
    });
    TRY(TensorView view, view_of_dlpack(*tensor));
    return Access::tensor(std::move(view), std::move(owner));
  });
}

Result<DLManagedTensorVersioned*> Tensor::to_dlpack() const {
  return without_throwing([&]() -> Result<DLManagedTensorVersioned*> {
    auto shared = std::make_unique<Shared>();
    shared->tensor = *this;
    shared->sizes = sizes();
    shared->strides = strides_of(*this);
    DLManagedTensorVersioned& face = shared->face;
    const Code& code = codes[static_cast<std::size_t>(dtype())];
    face.version = {1, 1};
    face.manager_ctx = shared.get();
    face.deleter = [](DLManagedTensorVersioned* self) { delete static_cast<Shared*>(self->manager_ctx); };
    face.flags = is_padded(dtype()) ? DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED : 0;
    face.dl_tensor = {data(),
                      {kDLCPU, 0},
                      static_cast<std::int32_t>(shared->sizes.size()),
                      {code.code, code.bits, 1},
                      shared->sizes.data(),
                      shared->strides.data(),
                      0};
    return &shared.release()->face;
  });
}

}  // namespace polyphase::api

// Uncleared memory from the system.
#include "runtime/arena.h"

#include <cstdlib>

namespace polyphase {

Result<std::shared_ptr<std::byte>> allocate_bytes(std::size_t size_bytes, const std::string& what) {
  constexpr std::size_t alignment = 64;
  const std::size_t rounded = std::max(alignment, (size_bytes + alignment - 1) / alignment * alignment);
  auto* memory = rounded < size_bytes ? nullptr : static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
  if (memory == nullptr) {
    return Error{ErrorCode::out_of_memory,
                 what + " needs " + std::to_string(size_bytes) + " bytes, which the system refused.",
                 "Use smaller inputs, or a machine with more memory."};
  }
  return std::shared_ptr<std::byte>(memory, [](std::byte* p) { std::free(p); });
}

Result<Tensor> allocate_tensor(DType dtype, std::span<const std::int64_t> sizes, const std::string& what) {
  const TensorDesc desc = TensorDesc::row_major(dtype, sizes);
  const std::size_t bytes = static_cast<std::size_t>(desc.element_count()) * size_bytes(dtype);
  TRY(auto memory, allocate_bytes(bytes, what));
  std::byte* data = memory.get();
  return Tensor(Buffer::borrow(std::move(memory), data, bytes), TensorView(desc, data));
}

Result<void> Arena::hold(std::size_t size_bytes, const std::string& what) {
  if (size_bytes <= size_bytes_) return {};
  memory_.reset();
  size_bytes_ = 0;
  TRY(memory_, allocate_bytes(size_bytes, what));
  size_bytes_ = size_bytes;
  return {};
}

}  // namespace polyphase

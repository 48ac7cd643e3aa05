// Uncleared memory from the system, and its second use.
#include "runtime/arena.h"

#include <algorithm>

#include "base/memory.h"

namespace polyphase {

Result<std::shared_ptr<std::byte>> allocate_bytes(std::size_t size_bytes, const Subject& what) {
  std::shared_ptr<std::byte> memory = allocate_memory(size_bytes, FreshMemory::any);
  if (memory != nullptr) return memory;
  return Error{ErrorCode::out_of_memory,
               what + " needs " + std::to_string(size_bytes) + " bytes, which the system refused.",
               "Use smaller inputs, or a machine with more memory."};
}

Result<void> Arena::hold(std::size_t size_bytes, const Subject& what) {
  if (size_bytes <= size_bytes_) return {};
  memory_.reset();
  size_bytes_ = 0;
  TRY(memory_, allocate_bytes(size_bytes, what));
  size_bytes_ = size_bytes;
  return {};
}

Result<ResultPool::Piece> ResultPool::find_or_allocate(std::size_t size_bytes, const Subject& what) {
  {
    const std::lock_guard lock(mutex_);
    // Not much larger than needed: a small result shall not hold a large buffer.
    const auto found = std::find_if(kept_.rbegin(), kept_.rend(), [&](const Piece& piece) {
      return piece.first >= size_bytes && piece.first / 2 <= size_bytes;
    });
    if (found != kept_.rend()) {
      Piece piece = std::move(*found);
      kept_bytes_ -= piece.first;
      kept_.erase(std::next(found).base());
      return piece;
    }
  }
  TRY(auto memory, allocate_bytes(size_bytes, what));
  return Piece(size_bytes, std::move(memory));
}

void ResultPool::keep(Piece piece) {
  const std::lock_guard lock(mutex_);
  kept_bytes_ += piece.first;
  kept_.push_back(std::move(piece));
  while (kept_.size() > max_pieces || kept_bytes_ > max_kept_bytes) {
    kept_bytes_ -= kept_.front().first;
    kept_.erase(kept_.begin());
  }
}

Result<Tensor> ResultPool::take(DType dtype, std::span<const std::int64_t> sizes, const Subject& what) {
  const TensorDesc desc = TensorDesc::row_major(dtype, sizes);
  const std::size_t bytes = static_cast<std::size_t>(desc.element_count()) * size_bytes(dtype);
  TRY(Piece piece, find_or_allocate(bytes, what));
  std::byte* data = piece.second.get();
  std::shared_ptr<const void> owner(data, [home = weak_from_this(), piece = std::move(piece)](const void*) mutable {
    if (const auto pool = home.lock()) pool->keep(std::move(piece));
  });
  return Tensor(Buffer::borrow(std::move(owner), data, bytes), TensorView(desc, data));
}

}  // namespace polyphase

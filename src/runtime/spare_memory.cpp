// One block, lent and taken back.
#include "runtime/spare_memory.h"

#include <utility>

#include "runtime/arena.h"

namespace polyphase {

Result<std::shared_ptr<std::byte>> SpareMemory::take(std::size_t size_bytes) {
  Block block;
  {
    const std::lock_guard lock(mutex_);
    if (kept_.size_bytes == size_bytes) block = std::exchange(kept_, {});
  }
  if (block.memory == nullptr) {
    TRY(block.memory, allocate_bytes(size_bytes, "an engine's weights"));
    block.size_bytes = size_bytes;
  }
  std::byte* const data = block.memory.get();
  return std::shared_ptr<std::byte>(data, [home = weak_from_this(), block = std::move(block)](std::byte*) mutable {
    if (const auto spare = home.lock()) spare->keep(std::move(block));
  });
}

void SpareMemory::keep(Block block) {
  const std::lock_guard lock(mutex_);
  if (kept_.memory == nullptr) std::swap(kept_, block);
}

}  // namespace polyphase

// Aligned blocks; large ones that shall be zero come from calloc, which knows which pages are new and need no clearing.
#include "base/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace polyphase {
namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;
// No system grants more; asked nevertheless, some abort.
constexpr std::size_t most_bytes = std::size_t{1} << 40;

std::byte* aligned_up(void* memory, std::size_t alignment) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  return static_cast<std::byte*>(memory) + ((at + alignment - 1) / alignment * alignment - at);
}

}  // namespace

std::shared_ptr<std::byte> allocate_memory(std::size_t size_bytes, FreshMemory contents) {
  if (size_bytes > most_bytes) return nullptr;
  const bool is_large = size_bytes >= 2 * huge_page && contents != FreshMemory::brief;
  const bool is_new = is_large && contents == FreshMemory::zeros;
  const std::size_t alignment = is_large ? huge_page : cache_line;
  const std::size_t rounded = std::max(alignment, (size_bytes + alignment - 1) / alignment * alignment);
  void* const block = is_new ? std::calloc(1, rounded + alignment) : std::aligned_alloc(alignment, rounded);
  if (block == nullptr) return nullptr;
  std::byte* const memory = is_new ? aligned_up(block, alignment) : static_cast<std::byte*>(block);
  std::shared_ptr<std::byte> owner(memory, [block](std::byte*) { std::free(block); });
#ifdef MADV_HUGEPAGE
  if (is_large) static_cast<void>(madvise(memory, rounded, MADV_HUGEPAGE));
#endif
  if (!is_new && contents == FreshMemory::zeros) std::memset(memory, 0, rounded);
  return owner;
}

}  // namespace polyphase

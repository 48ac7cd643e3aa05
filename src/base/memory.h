// Memory from the system: aligned, and on huge pages where it is large, since the first touch of small ones costs more
// than most of what is done with the elements.
#pragma once

#include <cstddef>
#include <memory>

namespace polyphase {

enum class FreshMemory { any, zeros };

// Aligned to a cache line of 64 bytes, from 4 MiB on to a huge page of 2 MiB. Null if the system refuses.
std::shared_ptr<std::byte> allocate_memory(std::size_t size_bytes, FreshMemory contents);

}  // namespace polyphase

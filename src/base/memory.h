// Memory from the system: aligned, and on huge pages where it is large, since the first touch of small ones costs more
// than most of what is done with the elements.
#pragma once

#include <cstddef>
#include <memory>

namespace polyphase {

// brief: of any contents, on small pages, for what is written, read once or twice and let go. A virtual machine that
// gives free memory back has none of huge pages: the host clears each before the system clears it, at a third of the
// speed in all.
enum class FreshMemory { any, zeros, brief };

// Aligned to a cache line of 64 bytes, from 4 MiB on to a huge page of 2 MiB, but for brief ones. Null if the system
// refuses.
std::shared_ptr<std::byte> allocate_memory(std::size_t size_bytes, FreshMemory contents);

}  // namespace polyphase

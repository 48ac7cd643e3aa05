// Memory of an engine's constants that nobody uses any more, for those of the next: new pages cost as much as packing
// weights into them. At most one block is kept.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

#include "base/result.h"

namespace polyphase {

class SpareMemory : public std::enable_shared_from_this<SpareMemory> {
 public:
  // Memory of any contents, 64-byte aligned: the block that is kept where it has that size. When its last owner has
  // gone, it is kept here, unless another is or this object has gone too. Safe from many threads. Error: out_of_memory.
  Result<std::shared_ptr<std::byte>> take(std::size_t size_bytes);

 private:
  struct Block {
    std::shared_ptr<std::byte> memory;
    std::size_t size_bytes = 0;
  };
  void keep(Block block);

  std::mutex mutex_;
  Block kept_;
};

}  // namespace polyphase

// Arena: the memory of one context at one level, kept from run to run and grown when a larger plan comes. Its contents
// are nothing in particular: every step writes what later steps read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/tensor.h"

namespace polyphase {

// 64-byte aligned memory that is not cleared. Error: out_of_memory, naming `what`.
Result<std::shared_ptr<std::byte>> allocate_bytes(std::size_t size_bytes, const std::string& what);
// A tensor over such memory, row-major.
Result<polyphase::Tensor> allocate_tensor(DType dtype, std::span<const std::int64_t> sizes, const std::string& what);

class Arena {
 public:
  // Makes room. On an Error the arena is empty, and usable again.
  Result<void> hold(std::size_t size_bytes, const std::string& what);
  std::byte* data() const { return memory_.get(); }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t size_bytes_ = 0;
};

}  // namespace polyphase

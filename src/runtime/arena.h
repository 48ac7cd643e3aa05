// Memory of runs: arenas that contexts keep, and buffers that come back when the caller has let go of a result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/subject.h"
#include "base/tensor.h"

namespace polyphase {

// 64-byte aligned memory that is not cleared; large pieces lie on huge pages where the system has them. Error:
// out_of_memory, naming `what`.
Result<std::shared_ptr<std::byte>> allocate_bytes(std::size_t size_bytes, const Subject& what);

// The memory of one context at one level, kept from run to run and grown when a larger plan comes. Its contents are
// nothing in particular: every step writes what later steps read.
class Arena {
 public:
  // Makes room. On an Error the arena is empty, and usable again.
  Result<void> hold(std::size_t size_bytes, const Subject& what);
  std::byte* data() const { return memory_.get(); }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t size_bytes_ = 0;
};

// Buffers for results: what the caller drops is kept for the next run, because fresh memory costs a page fault every 4
// KiB, on large images more than the kernels. Bounded; buffers may outlive the pool. Safe from many threads.
class ResultPool : public std::enable_shared_from_this<ResultPool> {
 public:
  ResultPool() { kept_.reserve(max_pieces + 1); }  // so that taking back never allocates
  // A row-major tensor of uncleared memory.
  Result<Tensor> take(DType dtype, std::span<const std::int64_t> sizes, const Subject& what);

 private:
  using Piece = std::pair<std::size_t, std::shared_ptr<std::byte>>;
  static constexpr std::size_t max_pieces = 16;
  static constexpr std::size_t max_kept_bytes = std::size_t{1} << 29;

  Result<Piece> find_or_allocate(std::size_t size_bytes, const Subject& what);
  void keep(Piece piece);

  std::mutex mutex_;
  std::vector<Piece> kept_;  // oldest first
  std::size_t kept_bytes_ = 0;
};

}  // namespace polyphase

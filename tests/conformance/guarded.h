// Memory that notices: tensors and scratch between guard zones, their gaps and results poisoned.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "base/tensor.h"
#include "kernel/step_desc.h"

namespace polyphase::test {

// Bytes with a guard zone on both sides, 64-byte aligned.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::size_t size_bytes);
  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }
  bool intact() const;  // nobody wrote into the guard zones
  void poison();        // every byte of the middle 0xff: NaN, -1, no bool

 private:
  static constexpr std::size_t guard_bytes = 256;
  std::unique_ptr<std::byte[]> memory_;
  std::size_t total_bytes_ = 0;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

// A tensor in guarded memory. Between its elements (pitched, strided) lies poison.
class GuardedTensor {
 public:
  // pitched: every axis but the outermost one lies in a larger one, shifted; strided: gaps everywhere and negative
  // outer strides.
  GuardedTensor(DType dtype, std::span<const std::int64_t> sizes, const Layout& layout, Density density);
  void fill(const TensorView& from);  // poisons the gaps, copies the elements
  void poison() { bytes_.poison(); }
  const TensorView& view() const { return view_; }
  std::vector<std::byte> snapshot() const { return {bytes_.data(), bytes_.data() + bytes_.size_bytes()}; }
  // Guards and gaps hold what they held.
  bool gaps_intact() const;
  bool intact() const { return bytes_.intact(); }

 private:
  struct Placement {
    TensorDesc desc;
    std::int64_t first = 0;     // elements before (0, …, 0)
    std::int64_t elements = 0;  // of the whole memory
  };
  static Placement place(DType dtype, std::span<const std::int64_t> sizes, const Layout& layout, Density density);

  explicit GuardedTensor(const Placement& placement);
  GuardedBytes bytes_;
  TensorView view_;
  bool has_gaps_ = true;
};

}  // namespace polyphase::test

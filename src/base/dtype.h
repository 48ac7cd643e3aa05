// DType, as the public header defines it, and what operands of several types become.
#pragma once

#include <optional>

#include "polyphase/dtype.h"

namespace polyphase {

// The floats of 16 bits, which kernels compute with as f32.
inline bool is_narrow(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// bool < integers < floats: an operand of a higher kind decides alone.
int promotion_kind(DType dtype);
// torch.promote_types for what we store.
DType promote_types(DType a, DType b);

// The dtype in which PyTorch computes with operands of several. Source: "Tensor Attributes", section type promotion, of
// PyTorch's documentation.
class Promotion {
 public:
  void add_tensor(DType dtype, int rank) { join(rank == 0 ? of_rank_0_ : of_tensors_, dtype); }
  void add_number(DType dtype) { join(of_numbers_, dtype); }
  // A tensor of rank 0 counts only where it is of a higher kind than the others, and so do numbers after it. Nothing:
  // there is no operand.
  std::optional<DType> result() const;

 private:
  static void join(std::optional<DType>& into, DType more);

  std::optional<DType> of_tensors_;
  std::optional<DType> of_rank_0_;
  std::optional<DType> of_numbers_;
};

}  // namespace polyphase

// Matrix products with a constant second operand as the convolutions that they are: rows are pixels, whose channels lie
// side by side, and the kernel has one tap.
//
//   a [..., I, K] · b [K, J] = y [..., I, J]        image [1, K, (... I)]   weights [J, K, 1]   result [1, J, (... I)]
#pragma once

#include <string>
#include <vector>

#include "kernel/row.h"

namespace polyphase::cpu {

// Empty if the step is such a product, between row-major operands, with what else it reads lying as the result does.
std::string refuse_product(const StepDesc& desc);

// The step in a convolution's words, where refuse_product takes it; anchor and operands keep their places.
StepDesc product_as_conv(const StepDesc& desc);

// b as the weights of that convolution.
TensorView product_weights(const TensorView& b);

// A request in a convolution's words.
struct ProductRequest {
  explicit ProductRequest(const PlanRequest& request);
  PlanRequest request() const { return {desc, inputs, outputs, kept}; }

  StepDesc desc;
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  std::vector<KeptPart> kept;
};

}  // namespace polyphase::cpu

// What conv and conv_transpose steps ask for, in the words of the kernels.
#pragma once

#include <string>

#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_shape.h"
#include "kernel/row.h"

namespace polyphase::cpu {

inline constexpr int64_t most_planned_phases = 1 << 16;  // of which plans and packing look at each

// Which images in f16 and bf16 a kernel reads and writes itself, by a cast in front of the anchor or as last ending.
enum class NarrowImages : uint8_t {
  bf16,            // of any layout
  channels_first,  // or of one channel: what is copied in any case
};

// Empty if the float kernels can take the step at all: dtypes, layouts, a weight of known sizes, known endings.
std::string refuse_conv(const StepDesc& desc, NarrowImages narrow);

// Kernel, strides, dilations, groups, channels and types; sizes and crop where they are constant, else 1 and 0.
ConvShape conv_shape_of(const StepDesc& desc);

// The shape that costs are estimated for. An engine file may expect sizes that no memory holds: then the first 2^40
// pixels tell as much, and their number does not overflow.
ConvShape estimated_shape(const StepDesc& desc);

WeightStrides weight_strides_of(const TensorDesc& desc);

// The operands of the anchor in desc.inputs; bias is -1 where there is none.
struct ConvOperands {
  int data;
  int weight;
  int bias;
};
ConvOperands conv_operands_of(const StepDesc& desc);

// Whether the anchor pads or crops, or may.
bool pads_by_zeros(const StepDesc& desc);
// Whether every spatial size is 1, whatever the symbols.
bool is_one_pixel(const OperandDesc& operand);
// Whether an operand of constant sizes will be read or written channels-first.
bool is_planar(const OperandDesc& operand);
// Whether it lies channels-first, or has one channel.
bool lies_planar(const OperandDesc& operand);

}  // namespace polyphase::cpu

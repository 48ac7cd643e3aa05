// Translates the IR's elementwise parts into the steps that kernels run on their results.
#pragma once

#include <optional>
#include <string>

#include "backends/cpu/kernels/endings.h"
#include "kernel/step_desc.h"

namespace polyphase::cpu {

// One elementwise part as a step over f32, with `operand` set to the index into the node's inputs of the other operand,
// -1 if there is none. `running_is_second`: the chain's value is the part's second operand (b in a - b). Nothing:
// kernels have no such step.
std::optional<EndingStep> ending_step(const Part& part, bool running_is_second);

// Which operand of an ending is the chain's value: 0 or 1; -1 if none is.
int running_operand(const Part& part);

// Why these endings cannot be run by kernels; empty: they can. All operands must be f32 (of add_mixed, or bf16) of the
// step's result shape or broadcast to it. `narrows`: the last one is a cast, which the store does.
std::string refuse_endings(const StepDesc& desc, bool narrows = false);

struct TranslatedEndings {
  EndingProgram program = {};
  EndingOperands operands = {};
};

// For endings that refuse_endings lets pass; the result has at least 3 axes.
TranslatedEndings translate_endings(const PlanRequest& request);

// Strides of a tensor (batch, channel, up to three axes) as the kernels want them: axes right-aligned, missing ones 0.
ImageStrides image_strides_of(const TensorDesc& desc);

}  // namespace polyphase::cpu

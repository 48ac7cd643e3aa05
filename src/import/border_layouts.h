// Inputs and outputs in a layout of the caller's.
#pragma once

#include <map>
#include <string>

#include "import/imported_model.h"

namespace polyphase {

// How the caller has a tensor and how the model has it, by the letters of their axes (base/layout_name.h).
struct BorderLayout {
  std::string callers;
  std::string models = {};  // empty: channels-first, NCHW for four axes
};
using BorderLayouts = std::map<std::string, BorderLayout, std::less<>>;  // by input or output

// "NHWC", or "NCHW:NHWC": the caller's, then the model's. Error: invalid_argument, naming `port`.
Result<BorderLayout> read_border_layout(std::string_view text, const std::string& port);

// Sizes that the caller gives for an input, in the model's order of axes. Error: they are not as many, or in blocks.
Result<std::vector<Dim>> in_models_order(const std::vector<Dim>& sizes, const BorderLayout& layout,
                                         const std::string& input);

// The graph takes and gives these tensors as the caller has them: a layout_transform stands behind each such input and
// before each such output, and goes where the passes find that nothing need be moved. Errors: a name that is no input
// or output, letters that do not fit the tensor.
Result<void> set_border_layouts(ImportedModel& model, const BorderLayouts& inputs, const BorderLayouts& outputs);

}  // namespace polyphase

// Sequences and optionals, which are gone when the import is done.
#pragma once

#include <string_view>

#include "import/onnx/converter.h"

namespace polyphase {

// Its name, versions and operands if it is an operator of sequences or optionals (Identity too, which passes them on);
// it has no function to convert with. Null: another operator.
const Converter* sequence_converter(std::string_view op_type);

}  // namespace polyphase

// function_body: the nodes of a function as they stand where it is called.
#pragma once

#include <deque>

#include "export/model_facts.h"
#include "onnx/onnx.pb.h"

namespace polyphase::legal {

// Operands and results are the call's, other names begin with the call's; attributes are the call's or the function's
// own. `names` knows all that are taken.
std::deque<onnx::NodeProto> function_body(const onnx::FunctionProto& function, const onnx::NodeProto& call,
                                          ModelFacts& names);

}  // namespace polyphase::legal

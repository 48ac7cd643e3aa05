// The sizes of a model's inputs: numbers, the model's named sizes, unnamed dynamic ones, and what the caller says about
// them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/shape.h"
#include "import/onnx/import_onnx.h"

namespace onnx {
class ValueInfoProto;
}

namespace polyphase {

// The types of these inputs, in order; `used` collects the symbols.
Result<std::vector<Type>> input_types(const std::vector<const onnx::ValueInfoProto*>& inputs,
                                      const ImportOptions& options, std::set<std::string, std::less<>>& used,
                                      std::vector<std::string>& warnings);

}  // namespace polyphase

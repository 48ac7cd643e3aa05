// AtenSchema: the declaration of one ATen overload, in PyTorch's own notation:
//
//   conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, …, SymInt groups=1) -> Tensor
//
// It gives arguments their order, types and the defaults that programs leave out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "import/torch/program.h"

namespace polyphase {

struct AtenParameter {
  std::string name;
  std::string type;   // without alias marks: "Tensor", "Tensor?", "SymInt[2]", "Scalar"
  std::string alias;  // "a", "a!": the result is a view of it, or it is written; else empty
  bool has_default = false;
  ProgramArgument value;  // the default
};

struct AtenSchema {
  std::string name;  // "conv_transpose2d.input"; the overload "default" is not written
  std::vector<AtenParameter> parameters;
  std::vector<std::string> results;         // types
  std::vector<std::string> result_aliases;  // like AtenParameter::alias
};

// For text of ours: a declaration that cannot be read is a mistake of the table.
AtenSchema parse_schema(std::string_view text);

}  // namespace polyphase

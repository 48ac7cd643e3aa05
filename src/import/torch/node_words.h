// Words about a program's nodes, and the tensors among their arguments.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "import/torch/program.h"

namespace polyphase {

// "torch.ops.aten.relu.default" → ("aten", "relu.default"), printable.
std::pair<std::string, std::string> split_target(const std::string& target);

// "torch.ops.aten.relu.default" → "aten.relu.default"
std::string short_target(const std::string& target);

template <typename F>
void for_each_tensor(const std::vector<ProgramArgument>& arguments, F&& f) {
  for (const ProgramArgument& argument : arguments) {
    for (const ProgramItem& item : argument.items) {
      if (item.kind == ProgramItem::Kind::tensor) f(item.text);
    }
  }
}

}  // namespace polyphase

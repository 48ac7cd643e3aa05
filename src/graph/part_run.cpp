// Cuts the parts of a fused step.
#include "graph/part_run.h"

#include <algorithm>

namespace polyphase {

PartRun cut_parts(const std::vector<Part>& parts, std::size_t anchor, std::size_t begin, std::size_t end) {
  const bool is_alone = end == begin + 1;
  PartRun out;
  out.anchor = anchor >= begin && anchor < end ? anchor - begin : 0;
  for (std::size_t i = begin; i < end; ++i) {
    Part part = parts[i];
    for (int& operand : part.operands) {
      if (operand == Part::running && i > begin) continue;
      const bool is_absent = operand == Part::absent;
      if (is_absent && !is_alone) continue;
      auto known = is_alone ? out.operands.end() : std::find(out.operands.begin(), out.operands.end(), operand);
      if (known == out.operands.end()) known = out.operands.insert(known, operand);
      if (!is_absent) operand = static_cast<int>(known - out.operands.begin());
    }
    out.parts.push_back(std::move(part));
  }
  return out;
}

Result<std::vector<Type>> types_of_parts(const std::vector<Part>& parts, const std::vector<OperandInfo>& inputs) {
  std::vector<Type> out;
  std::vector<DimCheck> checks;
  for (std::size_t n = 1; n <= parts.size(); ++n) {
    const std::vector<Part> first(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(n));
    TRY(auto types, infer_parts(first, inputs, checks, {}));
    out.push_back(types.front());
  }
  return out;
}

}  // namespace polyphase

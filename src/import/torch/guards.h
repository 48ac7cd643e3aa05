// Guards: the conditions on input sizes that an export relies on, as Python text:
//
//   L['skips']['low'][0].size()[2] >= 1 + 2*(((-1) + L['x'].size()[2]) // 2)
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/dim.h"
#include "import/torch/sym_expr.h"

namespace polyphase {

// The size of an axis of the input with this name ("skips.low.0"); nothing if there is none.
using InputSize = std::function<std::optional<Dim>(std::string_view input, std::int64_t axis)>;

// The relations that must all hold; nothing if the text is beyond us. A != B gives none: a size that the export took
// for different from another is compared again by the operators that need it.
std::optional<std::vector<SymbolicRelation>> parse_guard(std::string_view text, const InputSize& size);

}  // namespace polyphase

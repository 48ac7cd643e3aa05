// A number that data tell, as a size.
#pragma once

#include <set>
#include <string>

#include "base/dim.h"
#include "import/compose/emitter.h"

namespace polyphase {

// `number`: an integer or bool of one element. What it is known to be, else a new name in `range`, which `bind` gives
// it.
Result<Dim> bound_size(Emitter& node, Value* number, DimRange range, std::set<std::string, std::less<>>& used);

}  // namespace polyphase

// The size that is left open in a reshape.
#pragma once

#include <vector>

#include "base/dim.h"

namespace polyphase {

// product(all) / product(known), with equal factors crossed out first, so that (N·C·H·W) / (N·C) is H·W and not a
// floor.
Dim remaining_size(std::vector<Dim> all, const std::vector<Dim>& known);

}  // namespace polyphase

// The attributes of grid_sample as its rule.
#pragma once

#include "ops/attributes.h"
#include "ops/grid_place.h"

namespace polyphase {

GridRule grid_rule(const Attributes& attributes);

}  // namespace polyphase

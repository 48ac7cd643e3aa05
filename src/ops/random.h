// Random numbers by place: number i of a seed is a function of both, so that any part of a tensor can be drawn alone.
#pragma once

#include <cstdint>

#include "ops/attributes.h"

namespace polyphase {

// Numbers first, first + 1, … of the operator `random` with these attributes, before they are rounded to the dtype.
void draw(const Attributes& attributes, std::int64_t first, std::int64_t count, double* out);

}  // namespace polyphase

// The operator families that list.cpp joins; each lives in the file of its name and returns its definitions.
#pragma once

#include <vector>

#include "ops/op.h"

namespace polyphase {

std::vector<OpDef> constant_operators();
std::vector<OpDef> conv_operators();
std::vector<OpDef> conv_transpose_operators();
std::vector<OpDef> matmul_operators();

}  // namespace polyphase

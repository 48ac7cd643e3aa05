// What conv_pairs, conv_disjoint, conv_pixels and conv_winograd multiply pairs with in one cluster.
#pragma once

#include "backends/cpu/kernels/conv_pairs.h"
#include "backends/cpu/simd/cluster.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

extern const PairUnit pair_unit;

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

// Shows the unit of a cluster that only multiplies bf16 otherwise than avx512.
#include "backends/cpu/cluster_kernels.h"
#include "backends/cpu/kernels/pair_unit.h"

#define POLYPHASE_PAIRS_NAME POLYPHASE_SIMD_EXPAND(polyphase_cpu_pairs_, POLYPHASE_CLUSTER)

extern "C" const polyphase::cpu::PairUnit* const POLYPHASE_PAIRS_NAME = &polyphase::cpu::POLYPHASE_CLUSTER::pair_unit;

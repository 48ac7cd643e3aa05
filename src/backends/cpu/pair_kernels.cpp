// Fills in the table of a cluster that only multiplies bf16 otherwise than avx512.
#include "backends/cpu/cluster_kernels.h"
#include "backends/cpu/kernels/conv_pairs_run.h"

#define POLYPHASE_PAIRS_NAME POLYPHASE_SIMD_EXPAND(polyphase_cpu_pairs_, POLYPHASE_CLUSTER)

extern "C" const polyphase::cpu::PairKernels POLYPHASE_PAIRS_NAME = {
    .conv_pairs = polyphase::cpu::POLYPHASE_CLUSTER::run_conv_pairs,
};

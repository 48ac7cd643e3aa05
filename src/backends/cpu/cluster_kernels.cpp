// Fills in the table of one cluster; compiled once per cluster.
#include "backends/cpu/cluster_kernels.h"

#include "backends/cpu/kernels/conv_depthwise_run.h"
#include "backends/cpu/kernels/conv_gemm_run.h"
#include "backends/cpu/kernels/conv_pixels_run.h"
#include "backends/cpu/simd/vec.h"

#define POLYPHASE_ROWS_NAME POLYPHASE_SIMD_EXPAND(polyphase_cpu_rows_, POLYPHASE_CLUSTER)

extern "C" const polyphase::cpu::ClusterKernels POLYPHASE_ROWS_NAME = {
    .vector_width = polyphase::cpu::POLYPHASE_CLUSTER::kVecWidth,
    .conv_gemm = polyphase::cpu::POLYPHASE_CLUSTER::run_conv_gemm,
    .conv_depthwise = polyphase::cpu::POLYPHASE_CLUSTER::run_conv_depthwise,
    .conv_pixels = polyphase::cpu::POLYPHASE_CLUSTER::run_conv_pixels,
};

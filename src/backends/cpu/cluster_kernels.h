// The one symbol that a cluster's sealed object shows: a table of its entry points.
//
// Plans and packing are plain code outside the clusters; they take `vector_width` as a number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/conv_depthwise.h"
#include "backends/cpu/kernels/conv_disjoint.h"
#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_overlap.h"
#include "backends/cpu/kernels/conv_pairs.h"
#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/kernels/conv_winograd.h"
#include "backends/cpu/kernels/panel_lines.h"
#include "kernel/row.h"

namespace polyphase::cpu {

using RunFunction = decltype(Row::run);

struct ClusterKernels {
  int vector_width;
  void (*conv_gemm)(const ConvGemmPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                    std::byte* scratch);
  void (*conv_depthwise)(const ConvDepthwisePlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                         std::byte* scratch);
  void (*conv_disjoint)(const ConvDisjointPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                        std::byte* scratch);
  void (*conv_overlap)(const ConvOverlapPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                       std::byte* scratch);
  void (*conv_pairs)(const ConvPairsPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                     std::byte* scratch);
  void (*conv_pixels)(const ConvPixelsPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                      std::byte* scratch);
  void (*conv_winograd)(const ConvWinogradPlan& plan, const ConvPointers& pointers, int phase, int64_t tile,
                        std::byte* scratch);
  const PairUnit* pair_unit;
  PanelLinesFunction panel_lines;
  // These run a row's plan as it is: see the row of the same name in rows/.
  RunFunction strided_copy;
  RunFunction elementwise;
  RunFunction pool;
  RunFunction pool_places;
  RunFunction normalize_rows;
  RunFunction normalize_columns;
  RunFunction recurrence;
  RunFunction reduce;
  RunFunction number_elements;
  RunFunction number_matmul;
  RunFunction number_conv;
  RunFunction number_pool;
  RunFunction number_resample;
  RunFunction number_normalize;
  RunFunction number_softmax;
  RunFunction number_reduce;
  RunFunction softmax;
  RunFunction matmul;
  RunFunction attention;
  RunFunction resample;
  RunFunction fourier;
  RunFunction grid_sample;
  // Multiply-adds on registers alone, and how many operations one round is: what the CPU could do at best.
  float (*fma_loop)(int64_t rounds);
  int fma_flops_per_round;
};

}  // namespace polyphase::cpu

extern "C" {
// Of the clusters that differ from avx512 in nothing else.
extern const polyphase::cpu::PairUnit* const polyphase_cpu_pairs_avx512_bf16;
extern const polyphase::cpu::PairUnit* const polyphase_cpu_pairs_amx;
extern const polyphase::cpu::ClusterKernels polyphase_cpu_rows_scalar;
extern const polyphase::cpu::ClusterKernels polyphase_cpu_rows_avx2;
extern const polyphase::cpu::ClusterKernels polyphase_cpu_rows_avx512;
}

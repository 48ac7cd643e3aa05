// Fills in the table of one cluster; compiled once per cluster.
#include "backends/cpu/cluster_kernels.h"

#include "backends/cpu/cluster_small.h"
#include "backends/cpu/kernels/attention_run.h"
#include "backends/cpu/kernels/conv_depthwise_run.h"
#include "backends/cpu/kernels/conv_disjoint_run.h"
#include "backends/cpu/kernels/conv_gemm_run.h"
#include "backends/cpu/kernels/conv_overlap_run.h"
#include "backends/cpu/kernels/conv_pairs_run.h"
#include "backends/cpu/kernels/conv_pixels_run.h"
#include "backends/cpu/kernels/conv_winograd_run.h"
#include "backends/cpu/kernels/elementwise_run.h"
#include "backends/cpu/kernels/matmul_run.h"
#include "backends/cpu/kernels/normalize_run.h"
#include "backends/cpu/kernels/pair_unit.h"
#include "backends/cpu/kernels/panel_lines_run.h"
#include "backends/cpu/kernels/pool_run.h"
#include "backends/cpu/kernels/resample_run.h"
#include "backends/cpu/kernels/softmax_run.h"
#include "backends/cpu/kernels/strided_copy_run.h"
#include "backends/cpu/peak/fma_loop.h"
#include "backends/cpu/simd/vec.h"

#define POLYPHASE_ROWS_NAME POLYPHASE_SIMD_EXPAND(polyphase_cpu_rows_, POLYPHASE_CLUSTER)

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

const float* input(const Pointers& pointers, std::size_t i) {
  return reinterpret_cast<const float*>(pointers.inputs[i]);
}
float* output(const Pointers& pointers) { return reinterpret_cast<float*>(pointers.outputs[0]); }
double* shared(const Pointers& pointers) { return reinterpret_cast<double*>(pointers.shared); }

Fault strided_copy(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_strided_copy(plan.head<CopyPlan>(), pointers.inputs, pointers.outputs[0], tile);
  return nullptr;
}

Fault elementwise(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_elementwise(plan.head<ElementwisePlan>(), pointers.inputs, pointers.outputs[0], tile);
  return nullptr;
}

Fault pool(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  const auto& p = plan.head<PoolPlan>();
  p.dtype == DType::bf16 ? run_pool<DType::bf16>(p, pointers.inputs[0], pointers.outputs[0], tile)
                         : run_pool<DType::f32>(p, pointers.inputs[0], pointers.outputs[0], tile);
  return nullptr;
}

Fault pool_places(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_pool_places(plan.head<PoolPlacesPlan>(), input(pointers, 0), reinterpret_cast<int64_t*>(pointers.outputs[0]),
                  tile);
  return nullptr;
}

Fault normalize_rows(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  const auto& p = plan.head<NormalizePlan>();
  const float* scale = p.scale_mode != 0 ? input(pointers, 1) : nullptr;
  const float* bias = p.has_bias != 0 ? input(pointers, 2) : nullptr;
  const int64_t end = std::min(p.groups, (tile + 1) * p.chunk);
  for (int64_t row = tile * p.chunk; row < end; ++row)
    run_normalize_row(p, input(pointers, 0), scale, bias, output(pointers), row);
  return nullptr;
}

Fault normalize_columns(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte* scratch) {
  const auto& head = plan.head<NormalizeColumnsPlan>();
  const NormalizePlan& p = head.columns;
  if (phase == 0) {
    run_normalize_chunk(p, input(pointers, 0), shared(pointers), tile);
  } else if (phase == 1) {
    run_normalize_merge(p, p.scale_mode != 0 ? input(pointers, 1) : nullptr,
                        p.has_bias != 0 ? input(pointers, 2) : nullptr, shared(pointers), tile);
  } else {
    const float* operands[EndingProgram::max_steps];
    head.operands.find(pointers, operands);
    run_normalize_apply(head, input(pointers, 0), pointers.outputs[0], shared(pointers), operands, tile,
                        reinterpret_cast<float*>(scratch));
  }
  return nullptr;
}

Fault softmax(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_softmax(plan.head<SoftmaxPlan>(), input(pointers, 0), output(pointers), tile);
  return nullptr;
}

Fault matmul(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte* scratch) {
  run_matmul(plan.head<MatmulPlan>(), input(pointers, 0), input(pointers, 1), output(pointers), tile,
             reinterpret_cast<float*>(scratch));
  return nullptr;
}

Fault attention(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte* scratch) {
  const auto& p = plan.head<AttentionPlan>();
  AttentionPointers at = {input(pointers, 0), input(pointers, 1), input(pointers, 2), {}, output(pointers)};
  for (std::size_t i = 0; i < AttentionPlan::biases; ++i)
    at.bias[i] = p.bias[i].present ? input(pointers, 3 + i) : nullptr;
  run_attention(p, at, tile, reinterpret_cast<float*>(scratch));
  return nullptr;
}

Fault resample(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte* scratch) {
  run_resample(plan.head<ResamplePlan>(), input(pointers, 0), output(pointers), tile,
               reinterpret_cast<float*>(scratch));
  return nullptr;
}

}  // namespace
}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

#define POLYPHASE_ENTRY(name) polyphase::cpu::POLYPHASE_CLUSTER::name

extern "C" const polyphase::cpu::ClusterKernels POLYPHASE_ROWS_NAME = {
    .vector_width = POLYPHASE_ENTRY(vec_width),
    .conv_gemm = POLYPHASE_ENTRY(run_conv_gemm),
    .conv_depthwise = POLYPHASE_ENTRY(run_conv_depthwise),
    .conv_disjoint = POLYPHASE_ENTRY(run_conv_disjoint),
    .conv_overlap = POLYPHASE_ENTRY(run_conv_overlap),
    .conv_pairs = POLYPHASE_ENTRY(run_conv_pairs),
    .conv_pixels = POLYPHASE_ENTRY(run_conv_pixels),
    .conv_winograd = POLYPHASE_ENTRY(run_conv_winograd),
    .pair_unit = &POLYPHASE_ENTRY(pair_unit),
    .panel_lines = POLYPHASE_ENTRY(run_panel_lines),
    .strided_copy = POLYPHASE_ENTRY(strided_copy),
    .elementwise = POLYPHASE_ENTRY(elementwise),
    .pool = POLYPHASE_ENTRY(pool),
    .pool_places = POLYPHASE_ENTRY(pool_places),
    .normalize_rows = POLYPHASE_ENTRY(normalize_rows),
    .normalize_columns = POLYPHASE_ENTRY(normalize_columns),
    .recurrence = POLYPHASE_ENTRY(recurrence),
    .reduce = POLYPHASE_ENTRY(reduce),
    .number_elements = POLYPHASE_ENTRY(number_elements),
    .number_matmul = POLYPHASE_ENTRY(number_matmul),
    .number_conv = POLYPHASE_ENTRY(number_conv),
    .number_pool = POLYPHASE_ENTRY(number_pool),
    .number_resample = POLYPHASE_ENTRY(number_resample),
    .number_normalize = POLYPHASE_ENTRY(number_normalize),
    .number_softmax = POLYPHASE_ENTRY(number_softmax),
    .number_reduce = POLYPHASE_ENTRY(number_reduce),
    .softmax = POLYPHASE_ENTRY(softmax),
    .matmul = POLYPHASE_ENTRY(matmul),
    .attention = POLYPHASE_ENTRY(attention),
    .resample = POLYPHASE_ENTRY(resample),
    .fourier = POLYPHASE_ENTRY(fourier),
    .grid_sample = POLYPHASE_ENTRY(grid_sample),
    .fma_loop = POLYPHASE_ENTRY(fma_loop),
    .fma_flops_per_round = POLYPHASE_ENTRY(fma_flops_per_round),
};

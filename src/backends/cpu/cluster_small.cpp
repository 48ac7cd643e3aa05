// Compiled once per cluster, into half the code or less of what -O3 makes of it, and as fast.
#include "backends/cpu/cluster_small.h"

#include "backends/cpu/kernels/fourier_run.h"
#include "backends/cpu/kernels/grid_sample_run.h"
#include "backends/cpu/kernels/number_elements_run.h"
#include "backends/cpu/kernels/number_image_run.h"
#include "backends/cpu/kernels/number_normalize_run.h"
#include "backends/cpu/kernels/number_product_run.h"
#include "backends/cpu/kernels/number_reduce_run.h"
#include "backends/cpu/kernels/recurrence_run.h"
#include "backends/cpu/kernels/reduce_run.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

Fault number_elements(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_number_elements(plan.head<NumberElementsPlan>(), pointers.inputs, pointers.outputs[0], tile);
  return nullptr;
}

Fault number_pool(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_number_pool(plan.head<PoolPlan>(), pointers.inputs[0], pointers.outputs[0], tile);
  return nullptr;
}

Fault number_resample(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_number_resample(plan.head<ResamplePlan>(), pointers.inputs[0], pointers.outputs[0], tile);
  return nullptr;
}

Fault number_normalize(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_number_normalize(plan.head<NumberNormalizePlan>(), pointers.inputs, pointers.outputs[0], tile);
  return nullptr;
}

Fault number_softmax(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_number_softmax(plan.head<NumberSoftmaxPlan>(), pointers.inputs[0], pointers.outputs[0], tile);
  return nullptr;
}

Fault number_reduce(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_number_reduce(plan.head<ReducePlan>(), pointers.inputs[0], pointers.outputs[0], tile);
  return nullptr;
}

Fault recurrence(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte*) {
  return run_recurrence(plan.head<RecurrencePlan>(), pointers, phase, tile);
}

Fault reduce(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_reduce(plan.head<ReducePlan>(), reinterpret_cast<const float*>(pointers.inputs[0]),
             reinterpret_cast<float*>(pointers.outputs[0]), tile);
  return nullptr;
}

Fault number_matmul(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_number_matmul(plan.head<NumberMatmulPlan>(), pointers.inputs[0], pointers.inputs[1], pointers.outputs[0], tile);
  return nullptr;
}

Fault number_conv(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  const auto& p = plan.head<NumberConvPlan>();
  run_number_conv(p, pointers.inputs[p.data], p.bias < 0 ? nullptr : pointers.inputs[p.bias], pointers.packed,
                  pointers.outputs[0], tile);
  return nullptr;
}

Fault grid_sample(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_grid_sample(plan.head<GridSamplePlan>(), pointers.inputs[0], pointers.inputs[1], pointers.outputs[0], tile);
  return nullptr;
}

Fault fourier(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte* scratch) {
  run_fourier(plan.head<FourierPlan>(), pointers.inputs[0], pointers.outputs[0], tile, scratch);
  return nullptr;
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

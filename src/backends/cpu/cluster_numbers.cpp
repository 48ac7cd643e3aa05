// Compiled once per cluster, into less code than the other kernels: it is as fast there, unlike that of products.
#include "backends/cpu/cluster_numbers.h"

#include "backends/cpu/kernels/number_elements_run.h"
#include "backends/cpu/kernels/number_image_run.h"
#include "backends/cpu/kernels/number_normalize_run.h"
#include "backends/cpu/kernels/number_reduce_run.h"

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

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

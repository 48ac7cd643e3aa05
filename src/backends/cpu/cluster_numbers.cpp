// Compiled once per cluster, into less code than the other kernels: it is as fast there, unlike that of products.
#include "backends/cpu/cluster_numbers.h"

#include "backends/cpu/kernels/number_elements_run.h"
#include "backends/cpu/kernels/number_image_run.h"
#include "backends/cpu/kernels/number_normalize_run.h"
#include "backends/cpu/kernels/number_reduce_run.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {
namespace {

template <class T>
const T& head_of(const Plan& plan) {
  return *reinterpret_cast<const T*>(plan.bytes());
}

}  // namespace

Fault number_elements(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_number_elements(head_of<NumberElementsPlan>(plan), pointers.inputs, pointers.outputs[0], tile);
  return nullptr;
}

Fault number_pool(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_number_pool(head_of<PoolPlan>(plan), pointers.inputs[0], pointers.outputs[0], tile);
  return nullptr;
}

Fault number_resample(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_number_resample(head_of<ResamplePlan>(plan), pointers.inputs[0], pointers.outputs[0], tile);
  return nullptr;
}

Fault number_normalize(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_number_normalize(head_of<NumberNormalizePlan>(plan), pointers.inputs, pointers.outputs[0], tile);
  return nullptr;
}

Fault number_softmax(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_number_softmax(head_of<NumberSoftmaxPlan>(plan), pointers.inputs[0], pointers.outputs[0], tile);
  return nullptr;
}

Fault number_reduce(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  run_number_reduce(head_of<ReducePlan>(plan), pointers.inputs[0], pointers.outputs[0], tile);
  return nullptr;
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

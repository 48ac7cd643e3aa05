// The entry points of a cluster that compute in FP64 and in integers, but for products: see the row of the same name in
// rows/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/simd/cluster.h"
#include "kernel/row.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

Fault number_elements(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte* scratch);
Fault number_pool(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte* scratch);
Fault number_resample(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte* scratch);
Fault number_normalize(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte* scratch);
Fault number_softmax(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte* scratch);
Fault number_reduce(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte* scratch);

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

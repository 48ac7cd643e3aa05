// The entry points of a cluster whose code is compiled small: those that compute in FP64 and in integers, and what
// waits for something else than its arithmetic. See the row of the same name in rows/.
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
Fault number_matmul(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte* scratch);
Fault number_conv(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte* scratch);
Fault reduce(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte* scratch);
Fault recurrence(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte* scratch);
Fault fourier(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte* scratch);
Fault grid_sample(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte* scratch);

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER

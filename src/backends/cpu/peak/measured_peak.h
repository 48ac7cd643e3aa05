// The arithmetic and the traffic this machine reaches at best, measured now: what kernels are held against.
#pragma once

#include <cstdint>

#include "kernel/target.h"

namespace polyphase::cpu {

// Operations per second (2 per multiply-add) of `threads` threads that do nothing but FP32 multiply-adds on registers,
// in the cluster's vectors. Takes about a tenth of a second. The cluster must run here.
double measured_peak_flops(Cluster cluster, int threads);

// Bytes per second that `threads` threads read, or copy (counted twice: read and written), whichever is more, while
// they touch `bytes` in all. Takes about a fiftieth of a second. 0: no memory.
double measured_bandwidth(int threads, std::uint64_t bytes);

}  // namespace polyphase::cpu

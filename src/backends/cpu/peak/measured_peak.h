// The arithmetic this machine reaches at best, measured now: what kernels are held against.
#pragma once

#include "kernel/target.h"

namespace polyphase::cpu {

// Operations per second (2 per multiply-add) of `threads` threads that do nothing but FP32 multiply-adds on registers,
// in the cluster's vectors. Takes about a tenth of a second. The cluster must run here.
double measured_peak_flops(Cluster cluster, int threads);

}  // namespace polyphase::cpu

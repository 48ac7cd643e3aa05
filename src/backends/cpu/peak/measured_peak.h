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

// Whether a cluster that multiplies bf16 in vectors (avx512_bf16) does so at a higher rate than FP32: two to one where
// VDPBF16PS starts every cycle (Zen 4, Cooper Lake), one to two where it takes turns (Intel from Sapphire Rapids on,
// which leave bf16 to AMX). Takes a tenth of a millisecond. The cluster must run here.
bool multiplies_pairs_faster(Cluster cluster);

}  // namespace polyphase::cpu

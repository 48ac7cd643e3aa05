// What this build can run on CPUs: the rows of each instruction cluster, and which cluster the CPU at hand has.
#pragma once

#include <string>
#include <vector>

#include "kernel/catalogue.h"
#include "kernel/target.h"

namespace polyphase::cpu {

// The rows of a cluster, in order of preference among equals; Catalogue adds the reference rows behind them.
const std::vector<const Row*>& rows_of(Cluster cluster);

// The fastest cluster that this CPU and operating system run; found once. Where instructions for bf16 are slower than
// those for FP32 (Intel without its AMX, as many virtual machines show it), that is avx512.
Cluster native_cluster();
bool runs_here(Cluster cluster);

// The CPU as its maker names it, and the names of the features that matter here ("avx2", "avx512f", "avx512_vnni", …).
std::string processor_name();
std::vector<std::string> processor_features();

// A target for this cluster; `catalogue` must outlive it. Cache sizes are fixed per cluster.
Target target_of(Cluster cluster, bool portable, const Catalogue& catalogue);

}  // namespace polyphase::cpu

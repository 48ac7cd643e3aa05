// Asks the system for cores, memory and the CPU's name.
#include "api/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "api/control_groups.h"
#include "backends/cpu/catalogue.h"
#include "backends/cpu/peak/measured_peak.h"
#include "polyphase/polyphase.h"

namespace polyphase::api {

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = sched_getaffinity(0, sizeof(set), &set) == 0
                        ? CPU_COUNT(&set)
                        : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, static_cast<int>(std::min(static_cast<double>(cores), ControlGroups().processors())));
}

std::uint64_t memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  const std::uint64_t bytes =
      pages > 0 && page > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) : UINT64_MAX;
  return std::min(bytes, ControlGroups().memory_bytes());
}

std::vector<DeviceInfo> devices() {
  DeviceInfo out;
  out.name = cpu::processor_name();
  out.cluster = name_of(cpu::native_cluster());
  out.features = cpu::processor_features();
  out.cores = usable_cores();
  out.memory_bytes = memory_bytes();
  return {out};
}

double measured_bandwidth(int threads, std::uint64_t bytes) { return cpu::measured_bandwidth(threads, bytes); }

double measured_peak_flops(int threads) { return cpu::measured_peak_flops(cpu::native_cluster(), threads); }

}  // namespace polyphase::api

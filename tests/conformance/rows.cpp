// The CPU's rows.
#include "conformance/rows.h"

namespace polyphase::test {

std::vector<const Row*> rows_under_test() { return {}; }

std::vector<Cluster> clusters_here() {
  std::vector<Cluster> out{Cluster::scalar};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out.push_back(Cluster::avx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    out.push_back(Cluster::avx512);
  }
#endif
  return out;
}

}  // namespace polyphase::test

// Asks the CPU what it is and has.
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "backends/cpu/catalogue.h"
#include "backends/cpu/peak/measured_peak.h"

namespace polyphase::cpu {
namespace {

// AMX with bf16 (Intel SDM, CPUID leaf 7), whose registers the system saves, and which it lets this process use: Linux
// wants to be asked (arch_prctl, ARCH_REQ_XCOMP_PERM).
bool ask_for_matrix_unit() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & (1U << 27U)) == 0) return false;  // XGETBV
  constexpr unsigned bf16_and_tile = (1U << 22U) | (1U << 24U);
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & bf16_and_tile) != bf16_and_tile) return false;
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned tile_config_and_data = (1U << 17U) | (1U << 18U);
  if ((low & tile_config_and_data) != tile_config_and_data) return false;
  constexpr long request = 0x1023;
  constexpr long tile_data = 18;
  return syscall(SYS_arch_prctl, request, tile_data) == 0;
}

bool has_matrix_unit() {
  static const bool has = ask_for_matrix_unit();
  return has;
}

Cluster best_cluster() {
  Cluster best = Cluster::scalar;
  for (const Cluster cluster : all_clusters) {
    if (runs_here(cluster)) best = cluster;
  }
  return best == Cluster::avx512_bf16 && !multiplies_pairs_faster(best) ? Cluster::avx512 : best;
}

}  // namespace

bool runs_here(Cluster cluster) {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                    __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1U << 29U)) != 0;
  const bool avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  const bool bf16 = avx2 && f16c && avx512 && __builtin_cpu_supports("avx512bf16") != 0;
  switch (cluster) {
    case Cluster::amx:
      return bf16 && has_matrix_unit();
    case Cluster::avx512_bf16:
      return bf16;
    case Cluster::scalar:
      return true;
    case Cluster::avx2:
      return avx2 && f16c;
    case Cluster::avx512:
      return avx2 && f16c && avx512;
  }
  return false;
}

Cluster native_cluster() {
  static const Cluster found = best_cluster();
  return found;
}

std::string processor_name() {
  char text[49] = {};
  unsigned words[12] = {};
  for (unsigned i = 0; i < 3; ++i) {
    if (__get_cpuid(0x80000002U + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]) == 0)
      return "unknown CPU";
  }
  std::memcpy(text, words, 48);
  std::string name = text;
  while (!name.empty() && name.back() == ' ') name.pop_back();
  const std::size_t first = name.find_first_not_of(' ');
  return first == std::string::npos ? "unknown CPU" : name.substr(first);
}

std::vector<std::string> processor_features() {
  __builtin_cpu_init();
  std::vector<std::string> out;
  const auto note = [&](bool has, const char* name) {
    if (has) out.emplace_back(name);
  };
  note(__builtin_cpu_supports("sse4.2") != 0, "sse4.2");
  note(__builtin_cpu_supports("avx") != 0, "avx");
  note(__builtin_cpu_supports("avx2") != 0, "avx2");
  note(__builtin_cpu_supports("fma") != 0, "fma");
  note(__builtin_cpu_supports("avx512f") != 0, "avx512f");
  note(__builtin_cpu_supports("avx512bw") != 0, "avx512bw");
  note(__builtin_cpu_supports("avx512dq") != 0, "avx512dq");
  note(__builtin_cpu_supports("avx512vl") != 0, "avx512vl");
  note(__builtin_cpu_supports("avx512vnni") != 0, "avx512_vnni");
  note(__builtin_cpu_supports("avx512bf16") != 0, "avx512_bf16");
  note(has_matrix_unit(), "amx_bf16");
  return out;
}

}  // namespace polyphase::cpu

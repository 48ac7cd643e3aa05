// Names of clusters.
#include "kernel/target.h"

#include <algorithm>
#include <iterator>

namespace polyphase {
namespace {

constexpr std::string_view names[] = {"scalar", "avx2", "avx512", "avx512_bf16", "amx"};

}  // namespace

std::string_view name_of(Cluster cluster) { return names[static_cast<std::size_t>(cluster)]; }

std::optional<Cluster> cluster_from_name(std::string_view name) {
  for (std::size_t i = 0; i < std::size(names); ++i) {
    if (names[i] == name) return static_cast<Cluster>(i);
  }
  return std::nullopt;
}

Cluster fp32_cluster(Cluster cluster) { return std::min(cluster, Cluster::avx512); }

}  // namespace polyphase

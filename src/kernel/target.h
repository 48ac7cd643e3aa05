// Target: what a compilation aims at: the instruction cluster, its cache sizes, and the catalogue of kernels it may
// pick from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/dim.h"

namespace polyphase {

class Catalogue;
class RowTimes;

// Instruction clusters of CPUs, each holding the ones before. DO NOT CHANGE THE NUMBERS: they are embedded in engine
// files.
enum class Cluster : std::uint8_t {
  scalar = 0,       // any x86-64 or other CPU
  avx2 = 1,         // AVX2, FMA, F16C
  avx512 = 2,       // AVX-512 F, BW, DQ, VL
  avx512_bf16 = 3,  // AVX-512 BF16
  amx = 4,          // AMX TILE, BF16
};
inline constexpr Cluster all_clusters[] = {Cluster::scalar, Cluster::avx2, Cluster::avx512, Cluster::avx512_bf16,
                                           Cluster::amx};
std::string_view name_of(Cluster cluster);
std::optional<Cluster> cluster_from_name(std::string_view name);
// The one whose FP32 kernels it runs: instructions for bf16 alone bring no others.
Cluster fp32_cluster(Cluster cluster);

// In what type convolutions may multiply (attribute `products`); sums are FP32 at least.
enum class Precision : std::uint8_t {
  model,      // that of the model's own tensors: bf16 where it stores bf16
  fp32,       // FP32 at least
  automatic,  // bf16, or filters of more outputs in FP32, wherever that is faster
};

// What lower and the passes ask. Cache sizes steer tiles only through the cluster: they are fixed per cluster, not read
// from the machine, so that the same engine gives the same bits everywhere.
struct Target {
  Cluster cluster = Cluster::scalar;
  // Weights are kept raw and packed at load for the CPU at hand; the engine runs on any.
  bool portable = false;
  Precision precision = Precision::model;
  std::size_t l1_bytes = 32 * 1024;
  std::size_t l2_bytes = 1024 * 1024;
  std::size_t l3_bytes = 16 * 1024 * 1024;
  const Catalogue* catalogue = nullptr;  // never null once a compilation starts
  const DimBindings* likely = nullptr;   // sizes that the caller expects where they are symbolic; null: none in mind
  RowTimes* times = nullptr;             // kernels are chosen by what they were measured to take; null: by estimates
};

}  // namespace polyphase

// What tests of convolution kernels draw and expect.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/conv_case.h"
#include "backends/cpu/conv_run.h"
#include "suite_size.h"

namespace polyphase::cpu::testing {

// A geometry with at most `work` multiply-adds, often with tails, borders, holes and crops beyond the kernel.
ConvCase random_case(std::mt19937_64& random, int64_t work);

// Either order of channels, elements sometimes further apart than they need to be.
Layouts random_layouts(std::mt19937_64& random);

// That the kernel gives `want`, stored in the result's type; a fatal failure else.
void expect_stored(const std::string& kernel, const ConvCase& c, const ConvData& data, const Layouts& layouts,
                   const std::string& cluster, const std::vector<double>& want);

// That each kernel gives the exact sums on each cluster, on small integers; one named *_pairs where a cluster has it.
void expect_exact(const ConvCase& c, const std::vector<std::string>& kernels, uint64_t seed, const Layouts& layouts);

// All that run here, and an emulation of AMX's tiles.
std::vector<std::string> clusters_and_matrix_unit();

// An image like the result, to be added to it.
void draw_added(const ConvShape& s, std::mt19937_64& random, ConvData& data);
// A slope for each channel, from -1 to 2 by halves.
void draw_slopes(const ConvShape& s, std::mt19937_64& random, ConvData& data);

// f(case, number, random) for cases of so much work, which `stream` and POLYPHASE_FUZZ_SEED decide: as many as a slice
// or the whole has, or POLYPHASE_FUZZ_CASES says. Ends at the first that fails.
template <class F>
void each_random_case(uint64_t slice, uint64_t whole, uint64_t stream, int64_t most_work, F f) {
  const uint64_t cases = test::suite_size("POLYPHASE_FUZZ_CASES", slice, whole);
  const uint64_t seed = test::suite_size("POLYPHASE_FUZZ_SEED", 1, 1);
  for (uint64_t i = 0; i < cases && !::testing::Test::HasFailure(); ++i) {
    std::mt19937_64 random(seed * stream + i);
    SCOPED_TRACE("case " + std::to_string(i) + " seed " + std::to_string(seed));
    f(random_case(random, most_work), seed + i, random);
  }
}

}  // namespace polyphase::cpu::testing

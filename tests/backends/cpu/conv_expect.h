// What tests of convolution kernels draw and expect.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/conv_case.h"
#include "backends/cpu/conv_run.h"

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

}  // namespace polyphase::cpu::testing

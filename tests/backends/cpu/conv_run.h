// Runs one convolution kernel directly, without the catalogue: lays the data out, packs, plans, runs every tile,
// gathers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/conv_case.h"

namespace polyphase::cpu::testing {

// A kernel bound to its data, ready to be run again and again.
class BoundKernel {
 public:
  virtual ~BoundKernel() = default;
  virtual int phases() const = 0;
  virtual int64_t tiles(int phase) const = 0;
  virtual void run(int phase, int64_t tile, int worker) = 0;
  virtual double estimated_seconds() const = 0;  // of one core
  // Channels-first result; aborts if anything outside the result's own elements was written.
  virtual std::vector<float> result() = 0;
};

// What storing a value in that type makes of it: f32, f16 or bf16.
float rounded(double value, DType type);

// The first element that is not what storing `want` in that type makes of it. Here, because tests are not optimised
// under the sanitizers and images have millions of elements.
std::optional<size_t> first_difference(const std::vector<float>& got, const std::vector<double>& want, DType type);

// The names of the kernels that take the case in these layouts, best first.
std::vector<std::string> kernels_for(const ConvCase& c, const Layouts& layouts);
// Whether winograd_fours does, whose errors are larger.
bool runs_in_fours(ConvCase c);
// Of those that multiply in bf16.
std::vector<std::string> pair_kernels_for(const ConvCase& c, const std::string& cluster);
// Whether a kernel named *_pairs is one of those.
bool runs_pairs(const std::string& kernel, const ConvCase& c, const std::string& cluster);

// All tiles of all phases, by one worker.
void run_tiles(BoundKernel& kernel);

std::unique_ptr<BoundKernel> bind_kernel(const std::string& kernel, const ConvCase& c, const ConvData& data,
                                         const Layouts& layouts, const std::string& cluster, int workers);

std::vector<float> run_kernel(const std::string& kernel, const ConvCase& c, const ConvData& data,
                              const Layouts& layouts, const std::string& cluster);

}  // namespace polyphase::cpu::testing

// Runs a case on kernel rows the way a hostile runtime would: poisoned results and scratch, guard zones, tiles in any
// order.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "conformance/case.h"
#include "conformance/guarded.h"
#include "kernel/catalogue.h"

namespace polyphase::test {

// A case with its data and the results of the reference, part by part, each rounding once.
struct PreparedCase {
  Case source;
  std::vector<Part> parts;
  std::size_t anchor = 0;      // a convolution behind others, else the first part
  std::vector<Tensor> inputs;  // by desc.inputs; not valid: absent
  std::vector<Tensor> yields;  // the first result after each part
  std::vector<Tensor> expected;
  std::vector<bool> follows_data;  // by desc.inputs: lies in the data's layout (an image), not its own (weights)
};
Result<PreparedCase> prepare(Case source);

// How a step is laid out around the same numbers.
struct Variant {
  bool channels_last_in = false;
  bool channels_last_out = false;
  Density density = Density::dense;
  bool constant_weights = true;  // operands that are not the data are constants, as weights are
  bool turned = false;           // the data is a view of a transposed tensor: its first axis lies innermost
  std::string text() const;
};
std::vector<Variant> variants_of(const PreparedCase& prepared);

StepDesc describe(const PreparedCase& prepared, const Variant& variant, const std::vector<TensorView>& constants);

// Who computes the tiles of a phase, and when.
enum class TileOrder { ascending, descending, shuffled, two_workers, three_workers };

// One row on one variant. Empty: every order of tiles gave the expected result and touched nothing else.
std::string check_row(const PreparedCase& prepared, const Variant& variant, const Row& row, const StepDesc& desc,
                      const Target& target, std::span<const TileOrder> orders);
std::string check_row(const PreparedCase& prepared, const Variant& variant, const Row& row, const StepDesc& desc,
                      const Target& target);
// Seconds of one run, all tiles in order on one thread: the least of several.
double time_row(const PreparedCase& prepared, const Row& row, const StepDesc& desc, const Target& target);

}  // namespace polyphase::test

// Where two tensors differ, by how much, and whether that is within tolerance.
#pragma once

#include <string>
#include <vector>

#include "polyphase/polyphase.h"

namespace polyphase::cli {

struct Place {
  std::vector<std::int64_t> index;
  double found = 0;
  double expected = 0;
  double difference = 0;  // |found - expected|; infinite where one is NaN or infinite and the other is not the same
  double excess = 0;      // difference over what is allowed there
};

struct Difference {
  std::string mismatch;  // not empty: dtypes or shapes differ, nothing else was compared
  std::int64_t elements = 0;
  std::int64_t outside = 0;  // elements outside the tolerance
  double largest_absolute = 0;
  double largest_relative = 0;  // over |expected|, where that is not 0
  // sqrt(mean (found - expected)²) over sqrt(mean expected²), finite elements only.
  double relative_rms = 0;
  std::int64_t found_nan = 0;
  std::int64_t expected_nan = 0;
  std::vector<Place> worst;  // outside the tolerance, by excess
  bool equal() const { return mismatch.empty() && outside == 0; }
};

// Every element must satisfy |found - expected| <= atol + rtol · |expected|. NaN equals NaN, and an infinity itself.
// Integers and bools must be equal whatever the tolerances.
Difference compare_tensors(const api::Tensor& found, const api::Tensor& expected, double rtol, double atol,
                           std::size_t worst_count);

}  // namespace polyphase::cli

// Floats that are sizes over sizes: what exporters write as scales, Cast(Shape(skip)) / Cast(Shape(x)), and on the way
// from sizes to sizes, Cast(Ceil(Cast(Shape(x)) / 320)).
#pragma once

#include <optional>
#include <vector>

#include "base/dim.h"
#include "graph/graph.h"
#include "import/compose/fixed_values.h"

namespace polyphase {

struct Ratio {
  Dim above;
  Dim below;
  // The float of the model is this number, but for the roundings of quotients: no 0.7 in it, which binary32 lacks.
  bool exact = true;
};

// The fraction p / q with the smallest q whose binary32 is this number: what its author meant by 0.7 or 1.3333334.
std::pair<std::int64_t, std::int64_t> fraction_of(double number);

// The elements of a small float tensor as ratios of sizes: casts, sums, products and quotients of sizes and constants,
// their floors and ceilings, and what moves such elements. Nothing: it holds something else.
std::optional<std::vector<Ratio>> ratios_of(const Value* value, FixedValues& fixed);

// The same where all are whole: what a cast to integers gives. Nothing for constants, which need no such care.
std::optional<std::vector<Dim>> whole_sizes_of(const Value* value, FixedValues& fixed);

}  // namespace polyphase

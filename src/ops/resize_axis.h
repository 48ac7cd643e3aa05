// One axis of a resampling: which operand places a result place is made of, and with what weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/attributes.h"

namespace polyphase {

// One axis of the resampling. `scale` is out/in; where it is not given the exact ratio of the sizes is used without
// dividing first.
struct ResizeAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  double given_scale = 0;  // 0: out/in
  double roi_start = 0;
  double roi_end = 1;

  double scale() const { return given_scale > 0 ? given_scale : static_cast<double>(out) / static_cast<double>(in); }
  double unscaled(double x) const {
    return given_scale > 0 ? x / given_scale : x * static_cast<double>(in) / static_cast<double>(out);
  }
};

struct WeightedPlace {
  std::int64_t place;
  double weight;
};

// Axis i of a resize with these (complete) attributes and sizes.
ResizeAxis resize_axis(const Attributes& attributes, std::size_t i, std::int64_t in, std::int64_t out);

// Whether result place `place` lies outside the operand where that makes the element the extrapolation value.
bool resize_extrapolates(const Attributes& attributes, const ResizeAxis& axis, std::int64_t place);

// The operand's places and weights of one result place, for any mode; empty where the element is the extrapolation
// value.
std::vector<WeightedPlace> resize_sources(const Attributes& attributes, const ResizeAxis& axis, std::int64_t place);

}  // namespace polyphase

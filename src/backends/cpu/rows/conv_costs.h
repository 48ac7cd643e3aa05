// How long each convolution kernel takes on one core: sums over what it does, in the proportions of a present server.
//
// The factors are a non-negative least-squares fit of relative errors over random geometries of both operators, both
// layouts and ranks 1 to 3, measured with bench/kernels; half of the estimates are within a tenth of the measured
// time, and choosing by them costs some 2 % against always knowing the faster kernel.
#pragma once

#include "backends/cpu/kernels/conv_shape.h"

namespace polyphase::cpu {

// Seconds, for `width` floats in a vector; `planar` says which sides lie channels-first.
double conv_gemm_seconds(const ConvShape& shape, int width, bool in_planar, bool out_planar);
double conv_pixels_seconds(const ConvShape& shape, int width, bool in_planar, bool out_planar);
double conv_winograd_seconds(const ConvShape& shape, int width, bool in_planar, bool out_planar);
double conv_depthwise_seconds(const ConvShape& shape, int width, bool in_planar, bool out_planar);

}  // namespace polyphase::cpu

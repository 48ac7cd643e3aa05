// How long each convolution kernel takes on one core: sums over what it does, in the proportions of a present server.
//
// The factors are fits of relative errors over random geometries of both operators, all layouts and ranks 1 to 3, one
// for AVX2 and one for AVX-512. AVX2's is to 3100 times of 730 geometries, the least of several runs each, weights
// counted as they lie in such runs, in the caches: choosing by it costs 1 to 3 % against knowing the fastest kernel,
// 2.4 % over a hundred drawn geometries that it was not fitted to, and half of its estimates are within a tenth of the
// measured time. What a stacked row costs besides is set to 60 layers with strides from 16 on, for which choosing cost
// 9 % and costs 6; what unfolded images cost on AVX-512 is set to the same layers there (8.5 % and 6.3). AVX-512's is
// to 3600 times of 730 geometries that the caches hold, the least of three to eight runs each on Emerald Rapids (two
// units of 512 bits), fourteen cores of which measured at once: choosing by it costs a sixtieth, 3 to 5 % over a
// hundred that it was not fitted to (5 to 7 before); what passes the caches was set by hand between earlier fits there.
// Those of conv_disjoint and conv_overlap are fitted since to 320 and 227 geometries on two quieter cores of that CPU
// and multiplied by 1.18, by which the other estimates were too high there: 1.3 % over two hundred drawn geometries.
// Those of conv_winograd are fitted to 1100 times of 600 geometries, forward ones, vocoders' strides, few output
// channels and many weights among them, and multiplied by 1.15: choosing by all of them costs 1.4 % over three hundred
// and fifty that they were not fitted to (2.6 before); what parts of large images spare is set to what a dozen of them
// took less on each CPU. conv_disjoint has less than its fit on both, by what 28 geometries take less since its results
// leave the registers straight; those of conv_depthwise are set to what 22 geometries take on each CPU since it did,
// times 1.15. Pairs of bf16 have factors of their own, fitted to 430 geometries between images in bf16 and f32 on Zen
// 4, with the measured time of a product and weights at half of what they count now: wrong choices among them cost 3 to
// 4 %.
#pragma once

#include "backends/cpu/kernels/conv_shape.h"
#include "kernel/target.h"

namespace polyphase::cpu {

// Seconds, for `width` floats in a vector; `planar` says which sides lie channels-first.
double conv_gemm_seconds(const ConvShape& shape, int width, bool in_planar, bool out_planar);
double conv_pixels_seconds(const ConvShape& shape, int width, bool in_planar, bool out_planar);
double conv_overlap_seconds(const ConvShape& shape, int width, bool in_planar, bool out_planar);
double conv_overlap_last_seconds(const ConvShape& shape, int width, bool in_planar, bool out_planar);
double conv_disjoint_seconds(const ConvShape& shape, int width, bool in_planar, bool out_planar);
double conv_winograd_seconds(const ConvShape& shape, int width, bool in_planar, bool out_planar);
double conv_depthwise_seconds(const ConvShape& shape, int width, bool in_planar, bool out_planar);
// Of both together, without what the image between them would cost to write and to read.
double conv_separable_seconds(const ConvShape& depthwise, const ConvShape& pointwise, int width);

// How much longer kernels that multiply vectors of pairs take on a CPU with a matrix unit than on the one that they
// were fitted to: the vectors go at half the rate (measured on Emerald Rapids).
inline constexpr double pairs_beside_matrix_unit = 1.9;

// By what the cluster multiplies bf16 with: fitted for vectors of pairs and the matrix unit, reckoned for the others.
double conv_pairs_seconds(const ConvShape& shape, Cluster cluster, bool in_planar, bool out_planar);

}  // namespace polyphase::cpu

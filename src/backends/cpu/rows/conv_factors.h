// The factors of the estimates in conv_costs.cpp: what each thing that a kernel does costs. How they were found stands
// in conv_costs.h.
#pragma once

#include "backends/cpu/rows/conv_counts.h"

namespace polyphase::cpu {

// Nanoseconds; what is turned or copied is counted in floats. Those of AVX2 stand for plain instructions as well.
struct GemmFactors {
  double product;               // of a vector
  double alone;                 // vectors that one costs whose products wait for each other
  double weight_byte_streamed;  // from behind the second-level cache, while nothing is multiplied
  double panel_segment;
  double segment;
  double panel_row;
  double partial_row;           // whose last vector is not full
  double stacked_row;           // of a panel of stacked columns that leave channels-first
  double in_turned;             // of a forward convolution
  double in_turned_transposed;  // of a transposed one
  double out_turned;
  double group_result;             // turned, of a forward convolution's groups
  double group_result_transposed;  // of a transposed one's
  double gathered;                 // by groups of few channels
  double byte;                     // of the images
  double byte_beyond;              // of those that do not fit into caches
  double call;
};
inline constexpr GemmFactors gemm_avx2 = {.product = 0.195,
                                          .alone = 1.39,
                                          .weight_byte_streamed = 0.04,
                                          .panel_segment = 0.15,
                                          .segment = 0,
                                          .panel_row = 5.52,
                                          .partial_row = 12.4,
                                          .stacked_row = 5,
                                          .in_turned = 0.283,
                                          .in_turned_transposed = 0.476,
                                          .out_turned = 0.247,
                                          .group_result = 0.0757,
                                          .group_result_transposed = 0.186,
                                          .gathered = 2.12,
                                          .byte = 0,
                                          .byte_beyond = 0.0671,
                                          .call = 257};
inline constexpr GemmFactors gemm_avx512 = {.product = 0.227,
                                            .alone = 1.2,
                                            .weight_byte_streamed = 0.04,
                                            .panel_segment = 0,
                                            .segment = 0.663,
                                            .panel_row = 6.47,
                                            .partial_row = 5.24,
                                            .stacked_row = 0,
                                            .in_turned = 0.166,
                                            .in_turned_transposed = 0.226,
                                            .out_turned = 0.238,
                                            .group_result = 0,
                                            .group_result_transposed = 0.11,
                                            .gathered = 0.55,
                                            .byte = 0,
                                            .byte_beyond = 0.081,
                                            .call = 551};

struct PixelsFactors {
  double product;
  double weight;
  double visit;
  double result;              // vectors of them, of a forward convolution
  double result_interleaved;  // of two to four phases
  double result_transposed;   // of more
  double run;
  double line;
  double copied;
  double copied_line;
  double tile;
  double in_turned;
  double out_turned;
  double byte_beyond;
  double call;
  double joined_result;  // of one channel per group: vectors of them
  double joined_line;    // of the output
  double joined_group;
  double joined_byte_beyond;
};
inline constexpr PixelsFactors pixels_avx2 = {.product = 0.0712,
                                              .weight = 0.144,
                                              .visit = 0.214,
                                              .result = 1.15,
                                              .result_interleaved = 1.82,
                                              .result_transposed = 1.5,
                                              .run = 39.2,
                                              .line = 5.51,
                                              .copied = 0.142,
                                              .copied_line = 6.42,
                                              .tile = 19.9,
                                              .in_turned = 0.279,
                                              .out_turned = 0.368,
                                              .byte_beyond = 0.123,
                                              .call = 713,
                                              .joined_result = 1.51,
                                              .joined_line = 1.55,
                                              .joined_group = 85.1,
                                              .joined_byte_beyond = 0.00362};
inline constexpr PixelsFactors pixels_avx512 = {.product = 0.133,
                                                .weight = 0.0837,
                                                .visit = 0.412,
                                                .result = 2.09,
                                                .result_interleaved = 2.43,
                                                .result_transposed = 2.5,
                                                .run = 50.5,
                                                .line = 5.83,
                                                .copied = 0.146,
                                                .copied_line = 5.6,
                                                .tile = 0,
                                                .in_turned = 0.0729,
                                                .out_turned = 0.145,
                                                .byte_beyond = 0.055,
                                                .call = 0,
                                                .joined_result = 1.15,
                                                .joined_line = 5.05,
                                                .joined_group = 47.8,
                                                .joined_byte_beyond = 0.00158};

inline constexpr PixelsFactors pixels_pairs = {.product = 0.252,
                                               .weight = 0.0415,
                                               .visit = 0.199,
                                               .result = 0.904,
                                               .result_interleaved = 1.47,
                                               .result_transposed = 3.37,
                                               .run = 28.4,
                                               .line = 3.23,
                                               .copied = 0.0682,
                                               .copied_line = 14.2,
                                               .tile = 0,
                                               .in_turned = 0.204,
                                               .out_turned = 0.128,
                                               .byte_beyond = 0.0643,
                                               .call = 0,
                                               .joined_result = 0,
                                               .joined_line = 0,
                                               .joined_group = 0,
                                               .joined_byte_beyond = 0};
inline constexpr ConversionFactors pixels_pairs_conversions = {.widened = 0, .rounded = 0.0631, .narrowed = 0.122};

struct DisjointFactors {
  double product;
  double result;       // vectors of them, from the registers to where they belong
  double result_held;  // by way of the sums
  double result_scattered;
  double result_by_lines;  // of one input channel
  double line;             // of the output that is held
  double line_by_lines;    // that comes from one channel
  double margin;           // in front of a line's pixels or behind them, outputs that no tap reaches
  double copied;
  double filled;    // outputs in lines that no tap reaches
  double unfolded;  // multiplies all of this where the image is unfolded
  double byte_beyond;
  double call;
};
inline constexpr DisjointFactors disjoint_avx2 = {.product = 0.184,
                                                  .result = 2,
                                                  .result_held = 0.835,
                                                  .result_scattered = 3.6,
                                                  .result_by_lines = 0.796,
                                                  .line = 13.2,
                                                  .line_by_lines = 13.2,
                                                  .margin = 2,
                                                  .copied = 0.12,
                                                  .filled = 0.3,
                                                  .unfolded = 1,
                                                  .byte_beyond = 0.0781,
                                                  .call = 450};
inline constexpr DisjointFactors disjoint_avx512 = {.product = 0.19,
                                                    .result = 1.8,
                                                    .result_held = 2.4,
                                                    .result_scattered = 0.95,
                                                    .result_by_lines = 1.88,
                                                    .line = 1,
                                                    .line_by_lines = 12.8,
                                                    .margin = 2,
                                                    .copied = 0.2,
                                                    .filled = 0.42,
                                                    .unfolded = 1.1,
                                                    .byte_beyond = 0.04,
                                                    .call = 390};

inline constexpr DisjointFactors disjoint_pairs = {.product = 0.292,
                                                   .result = 2.78,
                                                   .result_held = 0,
                                                   .result_scattered = 0,
                                                   .result_by_lines = 1.25,
                                                   .line = 6.81,
                                                   .line_by_lines = 6.81,
                                                   .margin = 2,
                                                   .copied = 0.176,
                                                   .filled = 0.3,
                                                   .unfolded = 1,
                                                   .byte_beyond = 0.133,
                                                   .call = 935};
inline constexpr ConversionFactors disjoint_pairs_conversions = {.widened = 0, .rounded = 0.0968, .narrowed = 0.0567};

struct OverlapFactors {
  double product;
  double visit;    // vectors of pixels that are loaded, by each chunk of columns
  double reached;  // vectors of what they reach, stored and loaded again by all channels that are multiplied at once
  double result;
  double line;        // of the output
  double line_tap;    // as often as a line is added to
  double border_tap;  // of outputs beside the image's border, in which not all taps meet
  double byte;
  double byte_beyond;
  double gathered;         // bytes of an image whose lines are not read in place
  double gathered_beyond;  // and of those that do not fit into caches
  double call;
};
inline constexpr OverlapFactors overlap_avx2 = {.product = 0.139,
                                                .visit = 0.189,
                                                .reached = 0.677,
                                                .result = 1.68,
                                                .line = 25.5,
                                                .line_tap = 0,
                                                .border_tap = 0.9,
                                                .byte = 0,
                                                .byte_beyond = 0.0244,
                                                .gathered = 0.04,
                                                .gathered_beyond = 0.06,
                                                .call = 1130};
inline constexpr OverlapFactors overlap_avx512 = {.product = 0.184,
                                                  .visit = 0.095,
                                                  .reached = 1.15,
                                                  .result = 3.9,
                                                  .line = 0,
                                                  .line_tap = 8.25,
                                                  .border_tap = 0.9,
                                                  .byte = 0.0071,
                                                  .byte_beyond = 0.0316,
                                                  .gathered = 0.0285,
                                                  .gathered_beyond = 0.056,
                                                  .call = 995};

struct OverlapLastFactors {
  double product;     // vectors of columns, by each channel of a pixel
  double alone;       // vectors that one alone counts as: fewer sums than the units have on their way
  double turned;      // what the columns come to
  double result;      // vectors of outputs
  double result_tap;  // and what is added up to them
  double line;        // of the output
  double border_tap;  // of outputs beside the image's border, in which not all taps meet
  double byte;
  double byte_beyond;
  double call;
};
inline constexpr OverlapLastFactors overlap_last_avx2 = {.product = 0.157,
                                                         .alone = 1.38,
                                                         .turned = 0.266,
                                                         .result = 7.9,
                                                         .result_tap = 0.67,
                                                         .line = 12.2,
                                                         .border_tap = 0.87,
                                                         .byte = 0.0047,
                                                         .byte_beyond = 0.0193,
                                                         .call = 995};
inline constexpr OverlapLastFactors overlap_last_avx512 = {.product = 0.2,
                                                           .alone = 1.4,
                                                           .turned = 0.25,
                                                           .result = 8,
                                                           .result_tap = 1,
                                                           .line = 12,
                                                           .border_tap = 0.9,
                                                           .byte = 0.005,
                                                           .byte_beyond = 0.02,
                                                           .call = 1000};

struct WinogradFactors {
  double product;
  double alone;
  double transformed;         // vectors of inputs
  double transformed_result;  // of sums
  double weight_byte;
  double weight_byte_streamed;  // from behind the second-level cache, while nothing is multiplied
  double in_turned;
  double out_turned;
  double group_result;
  double byte;
  double byte_beyond;
  double byte_beyond_parted;  // where parts of the images are copied and turned
  double block;               // of tiles, of one phase, group and piece of the columns
  double call;
};
inline constexpr WinogradFactors winograd_avx2 = {.product = 0.156,
                                                  .alone = 1.11,
                                                  .transformed = 2.18,
                                                  .transformed_result = 2.85,
                                                  .weight_byte = 0.0066,
                                                  .weight_byte_streamed = 0,
                                                  .in_turned = 0.294,
                                                  .out_turned = 0.426,
                                                  .group_result = 1.55,
                                                  .byte = 0,
                                                  .byte_beyond = 0.197,
                                                  .byte_beyond_parted = 0.067,
                                                  .block = 0,
                                                  .call = 0};
inline constexpr WinogradFactors winograd_avx512 = {.product = 0.181,
                                                    .alone = 1.27,
                                                    .transformed = 3.21,
                                                    .transformed_result = 2.63,
                                                    .weight_byte = 0,
                                                    .weight_byte_streamed = 0.0395,
                                                    .in_turned = 0.246,
                                                    .out_turned = 0.368,
                                                    .group_result = 0,
                                                    .byte = 0,
                                                    .byte_beyond = 0.0858,
                                                    .byte_beyond_parted = 0.02,
                                                    .block = 508,
                                                    .call = 0};
inline constexpr WinogradFactors winograd_pairs = {.product = 0.29,
                                                   .alone = 0.7,
                                                   .transformed = 4.26,
                                                   .transformed_result = 3.72,
                                                   .weight_byte = 0,
                                                   .weight_byte_streamed = 0,
                                                   .in_turned = 0.208,
                                                   .out_turned = 0.246,
                                                   .group_result = 1.07,
                                                   .byte = 0,
                                                   .byte_beyond = 0.271,
                                                   .byte_beyond_parted = 0.12,
                                                   .block = 0,
                                                   .call = 0};
inline constexpr ConversionFactors winograd_pairs_conversions = {.widened = 0.0298, .rounded = 0, .narrowed = 0.0955};

struct DepthwiseFactors {
  double product;
  double result;  // vectors of them
  double result_transposed;
  double product_alone;  // of taps that outputs do not share
  double result_alone;
  double in_turned;
  double out_turned;
  double byte_beyond;
};
inline constexpr DepthwiseFactors depthwise_avx2 = {.product = 0.235,
                                                    .result = 0.95,
                                                    .result_transposed = 1.45,
                                                    .product_alone = 0.265,
                                                    .result_alone = 3.2,
                                                    .in_turned = 0.207,
                                                    .out_turned = 0.219,
                                                    .byte_beyond = 0.05};
inline constexpr DepthwiseFactors depthwise_avx512 = {.product = 0.23,
                                                      .result = 3.7,
                                                      .result_transposed = 4.1,
                                                      .product_alone = 0.5,
                                                      .result_alone = 3.9,
                                                      .in_turned = 0.42,
                                                      .out_turned = 0.177,
                                                      .byte_beyond = 0.03};

}  // namespace polyphase::cpu

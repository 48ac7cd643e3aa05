// Depthwise separable convolution (MobileNets, arXiv:1704.04861): a depthwise convolution and the 1x1 convolution that
// reads it, tile by tile, so that the image between them stays in a core's caches.
//
//   a tile:   lines x positions of the last axis   ──depthwise──▶   scratch [line][position][channel]   ──1x1──▶ result
//
// Both kernels cut their results into the same tiles, so the depthwise one fills exactly what the product reads. The
// scratch stands for the whole image between them: its strides leave room for one tile only, whose elements lie where
// `separable_image` points into it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/conv_depthwise.h"
#include "backends/cpu/kernels/conv_gemm.h"

namespace polyphase::cpu {

struct ConvSeparablePlan {
  ConvDepthwisePlan depthwise;
  ConvGemmPlan pointwise;
  int64_t line_step;  // elements of the scratch from line to line, and from position to position
  int64_t pixel_step;
  int64_t image_at;  // bytes of the scratch in front of it, which both kernels use in turn
  int64_t scratch_bytes;
};

// One of the two convolutions.
struct SeparablePart {
  ConvShape shape;
  EndingProgram endings;
  bool has_bias;
};

// For channels-last images in FP32: a depthwise part of one output channel per group, and a part of kernel and stride 1
// without padding over its result.
ConvSeparablePlan plan_conv_separable(const SeparablePart& depthwise, const SeparablePart& pointwise,
                                      const ImageStrides& in, const ImageStrides& out, int width);
int64_t conv_separable_tiles(const ConvSeparablePlan& plan);

// Where element 0 of the image between would lie for the elements of `tile` to lie in the worker's scratch.
float* separable_image(const ConvSeparablePlan& plan, int64_t tile, std::byte* scratch);

// The packed weights: those of the depthwise part, then from the next line of the caches on those of the other.
int64_t conv_separable_pointwise_at(const ConvShape& depthwise, int width);  // floats

}  // namespace polyphase::cpu

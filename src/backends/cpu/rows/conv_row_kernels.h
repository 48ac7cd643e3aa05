// The convolution kernels as rows see them: what each is planned, packed and run by, which shapes it refuses, and what
// it is estimated to take.
#pragma once

#include <string>
#include <type_traits>

#include "backends/cpu/cluster_kernels.h"
#include "backends/cpu/kernels/conv_depthwise.h"
#include "backends/cpu/kernels/conv_disjoint.h"
#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_overlap.h"
#include "backends/cpu/kernels/conv_pairs.h"
#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/kernels/conv_winograd.h"
#include "backends/cpu/rows/conv_costs.h"
#include "backends/cpu/rows/conv_desc.h"

namespace polyphase::cpu {

template <class P, NarrowImages Narrow, auto MakePlan, auto PackedFloats, auto Pack, auto Phases, auto Tiles,
          auto Entry, auto Seconds>
struct ConvKernel {
  using KernelPlan = P;
  static constexpr NarrowImages narrow_images = Narrow;
  static constexpr auto make_plan = MakePlan;
  static constexpr auto packed_floats = PackedFloats;
  static constexpr auto pack = Pack;
  static constexpr auto phases = Phases;
  static constexpr auto tiles = Tiles;
  static constexpr auto entry = Entry;
  static constexpr auto seconds = Seconds;
};

struct Gemm
    : ConvKernel<ConvGemmPlan, NarrowImages::channels_first, plan_conv_gemm, conv_gemm_packed_floats, pack_conv_gemm,
                 conv_gemm_phases, conv_gemm_tiles, &ClusterKernels::conv_gemm, conv_gemm_seconds> {
  static std::string refuses(const ConvShape& s) {
    // Where taps cannot be joined, few channels are gathered first, which a copy of the padded image does as well.
    const bool gathered = s.in_channels < 12 && (s.groups > 1 || s.dilation[2] != 1);
    return s.pad_mode != PadMode::zero && gathered ? "a padded image of few channels is copied" : "";
  }
};

// An image of one pixel: every output reads one tap, so any stride will do; with the kernel's, no tap reads a border.
inline ConvShape at_kernel_stride(const ConvShape& shape) {
  ConvShape s = shape;
  for (int a = 0; a < 3; ++a) s.stride[a] = s.kernel[a];
  return s;
}

inline std::string refuse_point(const ConvShape& s) {
  if (s.pad_mode != PadMode::zero) return "pads by zeros only";
  for (const int64_t dilation : s.dilation) {
    if (dilation != 1) return "dilated";
  }
  return {};
}

struct PointwiseGemm : Gemm {
  static std::string refuses(const ConvShape& s) { return refuse_point(s); }
  static ConvGemmPlan point_plan(const ConvShape& s, const ImageStrides& in, const ImageStrides& out,
                                 const EndingProgram& endings, bool has_bias, int width) {
    return plan_conv_gemm(at_kernel_stride(s), in, out, endings, has_bias, width);
  }
  static int64_t point_floats(const ConvShape& s, int width) {
    return conv_gemm_packed_floats(at_kernel_stride(s), width);
  }
  static void point_pack(const ConvShape& s, int width, const float* weights, const WeightStrides& strides,
                         PackShare share, float* to) {
    pack_conv_gemm(at_kernel_stride(s), width, weights, strides, share, to);
  }
  static constexpr auto make_plan = point_plan;
  static constexpr auto packed_floats = point_floats;
  static constexpr auto pack = point_pack;
  static double seconds(const ConvShape& s, int width, bool in_planar, bool out_planar) {
    return conv_gemm_seconds(at_kernel_stride(s), width, in_planar, out_planar);
  }
};

struct Depthwise : ConvKernel<ConvDepthwisePlan, NarrowImages::channels_first, plan_conv_depthwise,
                              conv_depthwise_packed_floats, pack_conv_depthwise, conv_depthwise_phases,
                              conv_depthwise_tiles, &ClusterKernels::conv_depthwise, conv_depthwise_seconds> {
  static std::string refuses(const ConvShape& s) {
    if (s.pad_mode != PadMode::zero) return "pads by zeros only";
    return s.in_channels == 1 && s.groups > 1 ? "" : "a group has more than one input channel";
  }
};

struct Pixels : ConvKernel<ConvPixelsPlan, NarrowImages::channels_first, plan_conv_pixels, conv_pixels_packed_floats,
                           pack_conv_pixels, conv_pixels_phases, conv_pixels_tiles, &ClusterKernels::conv_pixels,
                           conv_pixels_seconds> {
  static std::string refuses(const ConvShape& s) {
    if (!conv_pixels_takes(s)) {
      if (s.transposed) return "dilated along the last axis";
      return "strides along the last axis by more than " + std::to_string(most_pixels_steps) +
             ", in pairs, or beside other than zeros";
    }
    if (s.out_channels * ConvAxis(s, 2).phases() > most_pixels_columns)
      return "more than " + std::to_string(most_pixels_columns) + " channels by phases of the last axis";
    return {};
  }
};

struct Disjoint : ConvKernel<ConvDisjointPlan, NarrowImages::channels_first, plan_conv_disjoint,
                             conv_disjoint_packed_floats, pack_conv_disjoint, conv_disjoint_phases, conv_disjoint_tiles,
                             &ClusterKernels::conv_disjoint, conv_disjoint_seconds> {
  static std::string refuses(const ConvShape& s) {
    if (s.pad_mode != PadMode::zero) return "pads by zeros only";
    return conv_disjoint_takes(s) ? "" : s.transposed ? "taps meet in an output" : "more than one tap, or a stride";
  }
};

inline std::string refuse_overlap(const ConvShape& s) {
  return conv_overlap_takes(s) ? ""
                               : "a convolution that strides, fewer than 8 or more than 256 input channels, too many "
                                 "columns, or taps or pads too far apart";
}

struct Overlap : ConvKernel<ConvOverlapPlan, NarrowImages::channels_first, plan_conv_overlap,
                            conv_overlap_packed_floats, pack_conv_overlap, conv_overlap_phases, conv_overlap_tiles,
                            &ClusterKernels::conv_overlap, conv_overlap_seconds> {
  static std::string refuses(const ConvShape& s) {
    return s.pad_mode != PadMode::zero ? "pads by zeros only" : refuse_overlap(s);
  }
};

struct OverlapLast : ConvKernel<ConvOverlapPlan, NarrowImages::channels_first, plan_conv_overlap_last,
                                conv_overlap_last_packed_floats, pack_conv_overlap_last, conv_overlap_phases,
                                conv_overlap_tiles, &ClusterKernels::conv_overlap, conv_overlap_last_seconds> {
  static std::string refuses(const ConvShape& s) { return refuse_overlap(s); }
};

struct Pairs {
  using KernelPlan = ConvPairsPlan;
  static constexpr NarrowImages narrow_images = NarrowImages::bf16;
  static constexpr auto phases = conv_pairs_phases;
  static constexpr auto tiles = conv_pairs_tiles;
  static constexpr auto entry = &ClusterKernels::conv_pairs;
  static constexpr auto make_plan = plan_conv_pairs;
  static double seconds(const ConvShape& s, Cluster cluster, bool in_planar, bool out_planar) {
    return conv_pairs_seconds(s, cluster, in_planar, out_planar);
  }
  static int64_t packed_floats(const ConvShape& s, int) {
    return ceil_div(conv_pairs_packed_bytes(s), int64_t{sizeof(float)});
  }
  static void pack(const ConvShape& s, int, const float* weights, const WeightStrides& strides, PackShare share,
                   float* to) {
    pack_conv_pairs(s, weights, strides, share, reinterpret_cast<uint16_t*>(to));
  }
  static std::string refuses(const ConvShape& s) { return conv_pairs_refuses(s); }
};

struct PointPairs : Pairs {
  static ConvPairsPlan point_plan(const ConvShape& s, const ImageStrides& in, const ImageStrides& out,
                                  const EndingProgram& endings, bool has_bias, const PairUnit* unit) {
    return plan_conv_pairs(at_kernel_stride(s), in, out, endings, has_bias, unit);
  }
  static constexpr auto make_plan = point_plan;
  static double seconds(const ConvShape& s, Cluster cluster, bool in_planar, bool out_planar) {
    return conv_pairs_seconds(at_kernel_stride(s), cluster, in_planar, out_planar);
  }
  static int64_t packed_floats(const ConvShape& s, int width) {
    return Pairs::packed_floats(at_kernel_stride(s), width);
  }
  static void pack(const ConvShape& s, int width, const float* weights, const WeightStrides& strides, PackShare share,
                   float* to) {
    Pairs::pack(at_kernel_stride(s), width, weights, strides, share, to);
  }
  static std::string refuses(const ConvShape& s) {
    const std::string reason = refuse_point(s);
    return reason.empty() ? conv_pairs_refuses(at_kernel_stride(s)) : reason;
  }
};

struct Winograd : ConvKernel<ConvWinogradPlan, NarrowImages::channels_first, plan_conv_winograd,
                             conv_winograd_packed_floats, pack_conv_winograd, conv_winograd_phases, conv_winograd_tiles,
                             &ClusterKernels::conv_winograd, conv_winograd_seconds> {
  static std::string refuses(const ConvShape& s) {
    if (s.phases() > winograd_phases) return "strides of too many phases";
    if (!conv_winograd_takes(s)) {
      return s.fours ? "not two axes whose taps filter four outputs with fewer products"
                     : "no axis whose taps filter two outputs with fewer products";
    }
    return winograd_keeps_bound(s) ? "" : "sums of fewer terms than keep the error in its bound";
  }
};

// A kernel of shapes that are changed first.
template <class K, ConvShape (*change)(ConvShape)>
struct Changed : K {
  static std::string refuses(const ConvShape& s) { return K::refuses(change(s)); }
  static auto plan_changed(const ConvShape& s, const ImageStrides& in, const ImageStrides& out,
                           const EndingProgram& endings, bool has_bias, int width) {
    return K::make_plan(change(s), in, out, endings, has_bias, width);
  }
  static int64_t packed_changed(const ConvShape& s, int width) { return K::packed_floats(change(s), width); }
  static void pack_changed(const ConvShape& s, int width, const float* weights, const WeightStrides& strides,
                           PackShare share, float* to) {
    K::pack(change(s), width, weights, strides, share, to);
  }
  static constexpr auto make_plan = plan_changed;
  static constexpr auto packed_floats = packed_changed;
  static constexpr auto pack = pack_changed;
  static double seconds(const ConvShape& s, int width, bool in_planar, bool out_planar) {
    return K::seconds(change(s), width, in_planar, out_planar);
  }
};

inline ConvShape in_pairs(ConvShape s) {
  s.products = Products::pairs;
  return s;
}

// A kernel of floats with words of pairs in their place, where the cluster multiplies them in vectors.
template <class K>
struct InPairs : Changed<K, in_pairs> {
  static std::string refuses(const ConvShape& s) {
    return s.in_channels < 2 ? "a single input channel has no pairs" : Changed<K, in_pairs>::refuses(s);
  }
};

inline ConvShape in_fours(ConvShape s) {
  s.fours = true;
  return s;
}

// Larger tiles, whose errors are larger too.
struct WinogradFours : Changed<Winograd, in_fours> {};

struct DisjointPairs : InPairs<Disjoint> {
  static constexpr auto unit = &PairUnit::multiply_panel;
};

struct PixelsPairs : InPairs<Pixels> {
  static constexpr auto unit = &PairUnit::pixels_tiles;
};

// Rounds operands after they are transformed, which are not those of the model any more.
struct WinogradPairs : InPairs<Winograd> {
  static constexpr auto unit = &PairUnit::winograd;
};

}  // namespace polyphase::cpu

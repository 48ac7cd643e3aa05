// Rows of conv and conv_transpose: what each kernel takes, and how the contract reaches its tiles.

#include <algorithm>
#include <type_traits>
#include <utility>

#include "backends/cpu/kernels/conv_depthwise.h"
#include "backends/cpu/kernels/conv_disjoint.h"
#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/conv_overlap.h"
#include "backends/cpu/kernels/conv_pairs.h"
#include "backends/cpu/kernels/conv_pixels.h"
#include "backends/cpu/kernels/conv_winograd.h"
#include "backends/cpu/rows/conv_costs.h"
#include "backends/cpu/rows/conv_desc.h"
#include "backends/cpu/rows/ending_program.h"
#include "backends/cpu/rows/product_desc.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

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
ConvShape at_kernel_stride(const ConvShape& shape) {
  ConvShape s = shape;
  for (int a = 0; a < 3; ++a) s.stride[a] = s.kernel[a];
  return s;
}

std::string refuse_point(const ConvShape& s) {
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

std::string refuse_overlap(const ConvShape& s) {
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
    if (!conv_winograd_takes(s)) return "no axis whose taps filter two outputs with fewer products";
    return winograd_keeps_bound(s) ? "" : "sums of fewer terms than keep the error in its bound";
  }
};

// A kernel of floats with words of pairs in their place, where the cluster multiplies them in vectors.
template <class K>
struct InPairs : K {
  static ConvShape in_pairs(ConvShape s) {
    s.products = Products::pairs;
    return s;
  }
  static std::string refuses(const ConvShape& s) {
    return s.in_channels < 2 ? "a single input channel has no pairs" : K::refuses(in_pairs(s));
  }
  static auto plan_pairs(const ConvShape& s, const ImageStrides& in, const ImageStrides& out,
                         const EndingProgram& endings, bool has_bias, int width) {
    return K::make_plan(in_pairs(s), in, out, endings, has_bias, width);
  }
  static int64_t packed_pairs(const ConvShape& s, int width) { return K::packed_floats(in_pairs(s), width); }
  static void pack_pairs(const ConvShape& s, int width, const float* weights, const WeightStrides& strides,
                         PackShare share, float* to) {
    K::pack(in_pairs(s), width, weights, strides, share, to);
  }
  static constexpr auto make_plan = plan_pairs;
  static constexpr auto packed_floats = packed_pairs;
  static constexpr auto pack = pack_pairs;
  static double seconds(const ConvShape& s, int width, bool in_planar, bool out_planar) {
    return K::seconds(in_pairs(s), width, in_planar, out_planar);
  }
};

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

// What a plan holds: the kernel's own plan, the entry of the cluster, and which of the step's operands are which.
template <class K>
struct ConvPlanHead {
  typename K::KernelPlan plan;
  std::decay_t<decltype(std::declval<ClusterKernels>().*K::entry)> entry;
  int data;
  int bias;
  EndingOperands operands;
};

template <class K>
struct ConvRow {
  static constexpr bool is_pairs = std::is_base_of_v<Pairs, K>;
  static constexpr bool is_point = std::is_same_v<K, PointwiseGemm> || std::is_same_v<K, PointPairs>;
  static constexpr bool is_overlap = std::is_same_v<K, Overlap> || std::is_same_v<K, OverlapLast>;
  static constexpr bool is_planar_only = std::is_base_of_v<Disjoint, K> || std::is_same_v<K, Overlap>;
  static constexpr bool in_pairs = requires { K::unit; };
  static constexpr bool is_narrow = is_pairs || in_pairs;  // multiplies in bf16

  static std::string accepts(const StepDesc& desc, const Target& target) {
    std::string reason = refuse_conv(desc, K::narrow_images);
    const auto products = desc.attributes().get<DType>("products");
    if (reason.empty() && is_narrow && products != DType::bf16 && products != DType::i8) {
      reason = "must multiply in f32";
    }
    if (reason.empty() && std::is_base_of_v<Winograd, K> && (products == DType::i32 || products == DType::i8)) {
      reason = "must compute no other numbers of whole ones";
    }
    if constexpr (in_pairs) {
      if (reason.empty() && kernels_of(target.cluster).pair_unit->*K::unit == nullptr) {
        reason = "the CPU multiplies no bf16 in vectors";
      }
    }
    if (reason.empty() && std::is_same_v<K, WinogradPairs> && !desc.attributes().get<bool>("rounds_transformed")) {
      reason = "must not round what it has transformed";
    }
    if (reason.empty() && is_point && !is_one_pixel(desc.data())) {
      reason = "the image has more than one pixel";
    }
    if (reason.empty() && is_planar_only && (!lies_planar(desc.data()) || !lies_planar(desc.outputs[0]))) {
      reason = "between channels-first images only";
    }
    if (reason.empty() && std::is_same_v<K, OverlapLast> && lies_planar(desc.data())) {
      reason = "reads channels-last images only";
    }
    constexpr int most_axes = is_overlap ? 2 : 3;  // whose sizes only a run may tell
    if (reason.empty() && desc.data().type.shape.rank() > most_axes + 2) reason = "three axes";
    if (!reason.empty()) return reason;
    const ConvShape shape = conv_shape_of(desc);
    if (!is_point && shape.phases(most_planned_phases) > most_planned_phases) {
      return "the strides' product is more than " + std::to_string(most_planned_phases) + ": too many phases";
    }
    return K::refuses(shape);
  }

  static double cost(const StepDesc& desc, const Target& target) {
    if constexpr (is_pairs) {
      return K::seconds(estimated_shape(desc), target.cluster, is_planar(desc.data()), is_planar(desc.outputs[0]));
    } else {
      const double seconds = K::seconds(estimated_shape(desc), vector_width(target.cluster), is_planar(desc.data()),
                                        is_planar(desc.outputs[0]));
      return in_pairs && target.cluster == Cluster::amx ? pairs_beside_matrix_unit * seconds : seconds;
    }
  }

  static std::vector<int> packed_inputs(const StepDesc& desc) { return {conv_operands_of(desc).weight}; }

  static std::size_t packed_bytes(const StepDesc& desc, const Target& target) {
    return static_cast<std::size_t>(K::packed_floats(conv_shape_of(desc), vector_width(target.cluster))) * 4;
  }

  static void pack(const StepDesc& desc, const Target& target, std::span<const TensorView> views, PackShare share,
                   std::byte* out) {
    K::pack(conv_shape_of(desc), vector_width(target.cluster), views[0].as<const float>(), weight_strides_of(views[0]),
            share, reinterpret_cast<float*>(out));
  }

  static Plan plan(const PlanRequest& request, const Target& target) {
    const StepDesc& desc = request.desc;
    const ConvOperands at = conv_operands_of(desc);
    const TensorDesc& result = request.outputs[0];
    const TranslatedEndings endings = translate_endings(request);
    const ImageStrides in = image_strides_of(request.inputs[static_cast<std::size_t>(at.data)]);
    ConvPlanHead<K> head = {};
    if constexpr (is_pairs) {
      head.plan = K::make_plan(conv_shape_of(desc), in, image_strides_of(result), endings.program, at.bias >= 0,
                               kernels_of(target.cluster).pair_unit);
    } else {
      head.plan = K::make_plan(conv_shape_of(desc), in, image_strides_of(result), endings.program, at.bias >= 0,
                               vector_width(target.cluster));
    }
    if constexpr (in_pairs) head.plan.pairs = kernels_of(target.cluster).pair_unit->*K::unit;
    head.entry = kernels_of(target.cluster).*K::entry;
    head.data = at.data;
    head.bias = at.bias;
    head.operands = endings.operands;
    return Plan::of(head);
  }

  static Workspace workspace(const Plan& plan) {
    const auto& p = plan.head<ConvPlanHead<K>>().plan;
    return {static_cast<std::size_t>(p.shared_bytes), static_cast<std::size_t>(p.scratch_bytes)};
  }

  static int phases(const Plan& plan) { return K::phases(plan.head<ConvPlanHead<K>>().plan); }
  static std::int64_t tiles(const Plan& plan, int phase) { return K::tiles(plan.head<ConvPlanHead<K>>().plan, phase); }

  static Fault run(const Plan& plan, const Pointers& pointers, int phase, std::int64_t tile, std::byte* scratch) {
    const ConvPlanHead<K>& head = plan.head<ConvPlanHead<K>>();
    const auto floats = [&](int input) { return reinterpret_cast<const float*>(pointers.inputs[input]); };
    const float* operands[EndingProgram::max_steps];
    head.operands.find(pointers, operands);
    const ConvPointers p = {floats(head.data),
                            reinterpret_cast<const float*>(pointers.packed),
                            head.bias < 0 ? nullptr : floats(head.bias),
                            reinterpret_cast<float*>(pointers.outputs[0]),
                            reinterpret_cast<float*>(pointers.shared),
                            operands};
    head.entry(head.plan, p, phase, tile, scratch);
    return nullptr;
  }

  static Row row(std::string_view name, std::string_view op, std::string_view format, std::string_view doc,
                 Exactness exactness = Exactness::exact) {
    return {.name = name,
            .op = op,
            .doc = doc,
            .exactness = exactness,
            .takes = Density::pitched,
            .narrow_products = is_narrow,
            .keeps_parts = true,
            .accepts = accepts,
            .cost = cost,
            .packing = {format, packed_inputs, packed_bytes, pack},
            .plan = plan,
            .workspace = workspace,
            .phases = phases,
            .tiles = tiles,
            .run = run};
  }
};

// Matrix products with constant weights by a convolution's kernel.
template <class K>
struct ProductRow {
  using Conv = ConvRow<K>;

  static std::string accepts(const StepDesc& desc, const Target& target) {
    const std::string reason = refuse_product(desc);
    return reason.empty() ? Conv::accepts(product_as_conv(desc), target) : reason;
  }
  static double cost(const StepDesc& desc, const Target& target) { return Conv::cost(product_as_conv(desc), target); }
  static std::vector<int> packed_inputs(const StepDesc& desc) { return {desc.anchor_operand(1)}; }
  static std::size_t packed_bytes(const StepDesc& desc, const Target& target) {
    return Conv::packed_bytes(product_as_conv(desc), target);
  }
  static void pack(const StepDesc& desc, const Target& target, std::span<const TensorView> views, PackShare share,
                   std::byte* out) {
    const TensorView weights = product_weights(views[0]);
    Conv::pack(product_as_conv(desc), target, {&weights, 1}, share, out);
  }
  static Plan plan(const PlanRequest& request, const Target& target) {
    return Conv::plan(ProductRequest(request).request(), target);
  }

  static Row row(std::string_view name, std::string_view format, std::string_view doc) {
    Row out = Conv::row(name, "matmul", format, doc);
    out.takes = Density::dense;
    out.accepts = accepts;
    out.cost = cost;
    out.packing = {format, packed_inputs, packed_bytes, pack};
    out.plan = plan;
    return out;
  }
};

}  // namespace

void add_conv_rows(const ClusterKernels&, RowList& rows) {
  rows.push_back(ConvRow<Depthwise>::row("conv_transpose_depthwise", "conv_transpose", "conv_depthwise/1",
                                         "one input channel per group: vectors along the channels, each phase's taps "
                                         "in place"));
  rows.push_back(ConvRow<Pixels>::row("conv_transpose_pixels", "conv_transpose", "conv_pixels/5",
                                      "vectors along the pixels of one phase, weights broadcast"));
  constexpr const char* pixels_pairs = "vectors along the pixels, multiplied in bf16, two channels at a time";
  rows.push_back(
      ConvRow<PixelsPairs>::row("conv_transpose_pixels_pairs", "conv_transpose", "conv_pixels_pairs/1", pixels_pairs));
  rows.push_back(ConvRow<PointwiseGemm>::row("conv_transpose_point", "conv_transpose", "conv_point/2",
                                             "an image of one pixel: a product of its channels with all taps"));
  rows.push_back(ConvRow<Gemm>::row("conv_transpose_gemm", "conv_transpose", "conv_gemm/2",
                                    "phases as GEMMs whose rows point into the input; stacked where the channels alone "
                                    "do not fill vectors"));
  rows.push_back(ConvRow<Disjoint>::row(
      "conv_transpose_disjoint", "conv_transpose", "conv_disjoint/1",
      "a kernel no longer than its stride, or two or more times as long along several axes: one product between "
      "channels-first images, phases interleaved as they are stored"));
  rows.push_back(ConvRow<DisjointPairs>::row("conv_transpose_disjoint_pairs", "conv_transpose", "conv_disjoint_pairs/1",
                                             "a kernel no longer than its stride: one product in bf16, two channels at "
                                             "a time, between channels-first images"));
  constexpr const char* overlap =
      "few output channels: all taps of every pixel in one product, which reads the channels-first image where it "
      "lies; taps that meet are added up";
  constexpr const char* overlap_last =
      "few output channels: all taps of every pixel of a channels-last image in one product, turned as it leaves; taps "
      "that meet are added up";
  rows.push_back(ConvRow<Overlap>::row("conv_transpose_overlap", "conv_transpose", "conv_overlap/1", overlap));
  rows.push_back(
      ConvRow<OverlapLast>::row("conv_transpose_overlap_last", "conv_transpose", "conv_overlap_last/1", overlap_last));
  constexpr const char* winograd =
      "minimal filtering F(2, 2) and F(2, 3): two outputs of two or three taps from three or four products, along an "
      "axis that has all taps four outputs of four or six taps from nine or twelve; the error stays below 2 gamma_K "
      "sum |x||w|";
  rows.push_back(ConvRow<Winograd>::row("conv_transpose_winograd", "conv_transpose", "conv_winograd/2", winograd,
                                        Exactness::bounded));
  constexpr const char* winograd_pairs =
      "minimal filtering F(2, 2) and F(2, 3), whose transformed operands are rounded to bf16";
  rows.push_back(ConvRow<WinogradPairs>::row("conv_transpose_winograd_pairs", "conv_transpose", "conv_winograd_pairs/2",
                                             winograd_pairs, Exactness::bounded));
  rows.push_back(ConvRow<PointPairs>::row("conv_transpose_point_pairs", "conv_transpose", "conv_point_pairs/2",
                                          "an image of one pixel: a product in bf16 of its channels with all taps"));
  constexpr const char* pairs = "multiplies in bf16, two channels at a time, and adds up in f32";
  rows.push_back(ConvRow<Pairs>::row("conv_transpose_pairs", "conv_transpose", "conv_pairs/2", pairs));
  rows.push_back(ConvRow<Depthwise>::row("conv_depthwise", "conv", "conv_depthwise/1",
                                         "one input channel per group: vectors along the channels, taps in place"));
  rows.push_back(
      ConvRow<Pixels>::row("conv_pixels", "conv", "conv_pixels/5", "vectors along the pixels, weights broadcast"));
  rows.push_back(ConvRow<PixelsPairs>::row("conv_pixels_pairs", "conv", "conv_pixels_pairs/1", pixels_pairs));
  rows.push_back(
      ConvRow<Gemm>::row("conv_gemm", "conv", "conv_gemm/2", "a GEMM whose rows point into the input, tap by tap"));
  rows.push_back(ConvRow<Disjoint>::row("conv_pointwise", "conv", "conv_disjoint/1",
                                        "kernel and stride 1 between channels-first images: one product"));
  rows.push_back(ConvRow<DisjointPairs>::row("conv_pointwise_pairs", "conv", "conv_disjoint_pairs/1",
                                             "kernel and stride 1 between channels-first images: one product in bf16, "
                                             "two channels at a time"));
  rows.push_back(ConvRow<Overlap>::row("conv_overlap", "conv", "conv_overlap/1", overlap));
  rows.push_back(ConvRow<OverlapLast>::row("conv_overlap_last", "conv", "conv_overlap_last/1", overlap_last));
  rows.push_back(ConvRow<Winograd>::row("conv_winograd", "conv", "conv_winograd/2", winograd, Exactness::bounded));
  rows.push_back(ConvRow<WinogradPairs>::row("conv_winograd_pairs", "conv", "conv_winograd_pairs/2", winograd_pairs,
                                             Exactness::bounded));
  rows.push_back(ConvRow<Pairs>::row("conv_pairs", "conv", "conv_pairs/2", pairs));
  rows.push_back(ProductRow<Gemm>::row(
      "matmul_gemm", "conv_gemm/2", "a constant second operand, packed ahead; what follows is done before the store"));
  rows.push_back(ProductRow<Pairs>::row("matmul_pairs", "conv_pairs/2",
                                        "a constant second operand, packed ahead; multiplies in bf16, two elements of "
                                        "a row at a time, and adds up in f32"));
}

}  // namespace polyphase::cpu

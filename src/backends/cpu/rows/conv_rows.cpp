// Rows of conv and conv_transpose: what each kernel takes, and how the contract reaches its tiles.

#include <type_traits>
#include <utility>

#include "backends/cpu/rows/conv_desc.h"
#include "backends/cpu/rows/conv_row_kernels.h"
#include "backends/cpu/rows/ending_program.h"
#include "backends/cpu/rows/product_desc.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

// What a plan holds: the kernel's own plan, the entry of the cluster, and which of the step's operands are which.
template <class K>
struct ConvPlanHead {
  typename K::KernelPlan plan;
  std::decay_t<decltype(std::declval<ClusterKernels>().*K::entry)> entry;
  int data;
  int bias;
  EndingOperands operands;
};

// What a kernel asks of a step, but for what its shape says.
struct ConvDemands {
  NarrowImages narrow_images;
  bool is_narrow;           // multiplies in bf16
  bool filters;             // computes other numbers from the operands before it multiplies
  const char* allowed_by;   // a boolean attribute that must be set; null: none
  const char* not_allowed;  // what is said where it is not
  bool is_point;
  bool is_planar_only;
  bool reads_last_only;
  int most_axes;  // whose sizes only a run may tell
  bool (*runs_on)(Cluster cluster);
  std::string (*refuses)(const ConvShape& shape);
};

std::string refuse_demands(const ConvDemands& demands, const StepDesc& desc, const Target& target) {
  std::string reason = refuse_conv(desc, demands.narrow_images);
  if (!reason.empty()) return reason;
  const auto products = desc.attributes().get<DType>("products");
  const bool whole = products == DType::i32 || products == DType::i8;
  if (demands.is_narrow && products != DType::bf16 && products != DType::i8) return "must multiply in f32";
  if (demands.filters && whole) return "must compute no other numbers of whole ones";
  if (!demands.runs_on(target.cluster)) return "the CPU multiplies no bf16 in vectors";
  if (demands.allowed_by != nullptr && !desc.attributes().get<bool>(demands.allowed_by)) return demands.not_allowed;
  if (demands.is_point && !is_one_pixel(desc.data())) return "the image has more than one pixel";
  const bool in_planar = lies_planar(desc.data());
  if (demands.is_planar_only && (!in_planar || !lies_planar(desc.outputs[0]))) {
    return "between channels-first images only";
  }
  if (demands.reads_last_only && in_planar) return "reads channels-last images only";
  if (desc.data().type.shape.rank() > demands.most_axes + 2) return "three axes";
  const ConvShape shape = conv_shape_of(desc);
  if (!demands.is_point && shape.phases(most_planned_phases) > most_planned_phases) {
    return "the strides' product is more than " + std::to_string(most_planned_phases) + ": too many phases";
  }
  return demands.refuses(shape);
}

// What a kernel's plan is made of.
struct Planned {
  explicit Planned(const PlanRequest& request)
      : shape(conv_shape_of(request.desc)),
        at(conv_operands_of(request.desc)),
        in(image_strides_of(request.inputs[static_cast<std::size_t>(at.data)])),
        out(image_strides_of(request.outputs[0])),
        endings(translate_endings(request)) {}

  ConvShape shape;
  ConvOperands at;
  ImageStrides in;
  ImageStrides out;
  TranslatedEndings endings;
};

template <class K>
struct ConvRow {
  static constexpr bool is_pairs = std::is_base_of_v<Pairs, K>;
  static constexpr bool is_overlap = std::is_same_v<K, Overlap> || std::is_same_v<K, OverlapLast>;
  static constexpr bool in_vectors = requires { K::unit; };  // of pairs
  static constexpr bool is_narrow = is_pairs || in_vectors;

  static bool runs_on([[maybe_unused]] Cluster cluster) {
    if constexpr (in_vectors) {
      return kernels_of(cluster).pair_unit->*K::unit != nullptr;
    } else {
      return true;
    }
  }

  static std::string accepts(const StepDesc& desc, const Target& target) {
    constexpr bool rounds = std::is_same_v<K, WinogradPairs>;
    constexpr bool in_fours = std::is_same_v<K, WinogradFours>;
    static constexpr ConvDemands demands = {
        .narrow_images = K::narrow_images,
        .is_narrow = is_narrow,
        .filters = std::is_base_of_v<Winograd, K>,
        .allowed_by = rounds     ? "rounds_transformed"
                      : in_fours ? "filters_fours"
                                 : nullptr,
        .not_allowed =
            rounds ? "must not round what it has transformed" : "must filter no more than two outputs at once",
        .is_point = std::is_same_v<K, PointwiseGemm> || std::is_same_v<K, PointPairs>,
        .is_planar_only = std::is_base_of_v<Disjoint, K> || std::is_same_v<K, Overlap>,
        .reads_last_only = std::is_same_v<K, OverlapLast>,
        .most_axes = is_overlap ? 2 : 3,
        .runs_on = runs_on,
        .refuses = K::refuses};
    return refuse_demands(demands, desc, target);
  }

  static double cost(const StepDesc& desc, const Target& target) {
    if constexpr (is_pairs) {
      return K::seconds(estimated_shape(desc), target.cluster, is_planar(desc.data()), is_planar(desc.outputs[0]));
    } else {
      const double seconds = K::seconds(estimated_shape(desc), vector_width(target.cluster), is_planar(desc.data()),
                                        is_planar(desc.outputs[0]));
      return in_vectors && target.cluster == Cluster::amx ? pairs_beside_matrix_unit * seconds : seconds;
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
    const Planned p(request);
    ConvPlanHead<K> head = {};
    if constexpr (is_pairs) {
      head.plan =
          K::make_plan(p.shape, p.in, p.out, p.endings.program, p.at.bias >= 0, kernels_of(target.cluster).pair_unit);
    } else {
      head.plan = K::make_plan(p.shape, p.in, p.out, p.endings.program, p.at.bias >= 0, vector_width(target.cluster));
    }
    if constexpr (in_vectors) head.plan.pairs = kernels_of(target.cluster).pair_unit->*K::unit;
    head.entry = kernels_of(target.cluster).*K::entry;
    head.data = p.at.data;
    head.bias = p.at.bias;
    head.operands = p.endings.operands;
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
  constexpr const char* winograd_fours =
      "minimal filtering F(4, 2) and F(4, 3): four outputs of two or three taps from five or six products; the error "
      "is "
      "some three times that of direct sums in the L2 norm";
  rows.push_back(ConvRow<WinogradFours>::row("conv_transpose_winograd_fours", "conv_transpose", "conv_winograd_fours/1",
                                             winograd_fours, Exactness::loose));
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
  rows.push_back(ConvRow<WinogradFours>::row("conv_winograd_fours", "conv", "conv_winograd_fours/1", winograd_fours,
                                             Exactness::loose));
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

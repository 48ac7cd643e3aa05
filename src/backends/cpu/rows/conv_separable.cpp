// Row of depthwise separable convolution: a 1x1 convolution that begins with a depthwise one.
//
//   parts:  conv or conv_transpose, depthwise │ what follows it │ conv 1x1 │ endings
//           └──────────── depthwise step ─────────────┘  └── pointwise step ──┘
//
// Each half is a step of its own as far as operands, endings and packed weights go.
#include "backends/cpu/kernels/conv_separable.h"

#include <algorithm>

#include "backends/cpu/rows/conv_costs.h"
#include "backends/cpu/rows/conv_desc.h"
#include "backends/cpu/rows/ending_program.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

bool convolves(const Part& part) { return part.op->name == "conv" || part.op->name == "conv_transpose"; }

// The two steps; the image between them is one more operand, the last.
struct Halves {
  StepDesc depthwise;
  StepDesc pointwise;

  explicit Halves(const StepDesc& desc) {
    OperandDesc image = desc.outputs[0];
    Shape shape = desc.outputs[0].type.shape;
    shape[1] = desc.anchor_input(1).type.shape[1] * Dim(desc.attributes().get<int64_t>("groups"));
    image.type = {DType::f32, shape};
    const auto anchor = desc.parts.begin() + static_cast<std::ptrdiff_t>(desc.anchor);
    for (StepDesc* half : {&depthwise, &pointwise}) {
      half->name = desc.name;
      half->inputs = desc.inputs;
      half->inputs.push_back(image);
    }
    depthwise.parts.assign(desc.parts.begin(), anchor);
    depthwise.outputs = {image};
    pointwise.parts.assign(anchor, desc.parts.end());
    pointwise.parts.front().operands.front() = static_cast<int>(desc.inputs.size());
    pointwise.outputs = desc.outputs;
  }
};

bool has_one_tap(const ConvShape& s) {
  return s.kernel_points() == 1 &&
         std::all_of(std::begin(s.stride), std::end(s.stride), [](int64_t n) { return n == 1; });
}

// The kernels' plan, the entries of the cluster, and which of the step's operands are which.
struct SeparableHead {
  ConvSeparablePlan plan;
  decltype(ClusterKernels::conv_depthwise) depthwise;
  decltype(ClusterKernels::conv_gemm) pointwise;
  int64_t pointwise_at;
  int data;
  int depthwise_bias;
  int pointwise_bias;
  EndingOperands depthwise_operands;
  EndingOperands pointwise_operands;
};

struct SeparableRow {
  static std::string accepts(const StepDesc& desc, const Target&) {
    if (desc.anchor == 0 || !convolves(desc.parts.front())) return "begins with no convolution";
    if (desc.anchor_operand(0) >= 0) return "the convolution reads another image";
    const std::vector<int>& first = desc.parts.front().operands;
    if (first[0] < 0 || first[1] < 0 || desc.anchor_operand(1) < 0) return "an operand is computed by the step itself";
    if (desc.outputs[0].type.dtype != DType::f32) return "gives f32 only";
    if (!desc.outputs[0].layout.is_channels_last() || !desc.data().layout.is_channels_last())
      return "between channels-last images only";
    const Halves halves(desc);
    for (const StepDesc* half : {&halves.depthwise, &halves.pointwise}) {
      if (std::string reason = refuse_conv(*half, NarrowImages::bf16); !reason.empty()) return reason;
    }
    const ConvShape d = conv_shape_of(halves.depthwise);
    if (d.in_channels != 1 || d.out_channels != 1 || d.groups < 2) return "the first convolution is not depthwise";
    const ConvShape p = conv_shape_of(halves.pointwise);
    if (p.groups != 1 || !has_one_tap(p) || pads_by_zeros(halves.pointwise))
      return "the second convolution is more than a product of a pixel's channels";
    return d.phases(most_planned_phases) > most_planned_phases ? "too many phases" : "";
  }

  static double cost(const StepDesc& desc, const Target& target) {
    const Halves halves(desc);
    return conv_separable_seconds(estimated_shape(halves.depthwise), estimated_shape(halves.pointwise),
                                  vector_width(target.cluster));
  }

  static std::vector<int> packed_inputs(const StepDesc& desc) {
    return {desc.parts.front().operands[1], desc.anchor_operand(1)};
  }

  static std::size_t packed_bytes(const StepDesc& desc, const Target& target) {
    const Halves halves(desc);
    const int width = vector_width(target.cluster);
    return static_cast<std::size_t>(conv_separable_pointwise_at(conv_shape_of(halves.depthwise), width) +
                                    conv_gemm_packed_floats(conv_shape_of(halves.pointwise), width)) *
           sizeof(float);
  }

  static void pack(const StepDesc& desc, const Target& target, std::span<const TensorView> views, PackShare share,
                   std::byte* out) {
    const Halves halves(desc);
    const int width = vector_width(target.cluster);
    const ConvShape d = conv_shape_of(halves.depthwise);
    auto* const floats = reinterpret_cast<float*>(out);
    const int64_t used = conv_depthwise_packed_floats(d, width);
    const int64_t behind = conv_separable_pointwise_at(d, width);
    pack_conv_depthwise(d, width, views[0].as<const float>(), weight_strides_of(views[0]), share, floats);
    if (share.index == 0) std::fill(floats + used, floats + behind, 0.0F);
    pack_conv_gemm(conv_shape_of(halves.pointwise), width, views[1].as<const float>(), weight_strides_of(views[1]),
                   share, floats + behind);
  }

  static Plan plan(const PlanRequest& request, const Target& target) {
    const Halves halves(request.desc);
    std::vector<TensorDesc> inputs(request.inputs.begin(), request.inputs.end());
    std::vector<int64_t> sizes;
    for (const Dim& size : halves.depthwise.outputs[0].type.shape) sizes.push_back(size.value());
    const TensorDesc between(DType::f32, sizes, halves.depthwise.outputs[0].layout);
    inputs.push_back(between);
    const TranslatedEndings first = translate_endings({halves.depthwise, inputs, {&between, 1}});
    const TranslatedEndings last = translate_endings({halves.pointwise, inputs, request.outputs});
    const ClusterKernels& kernels = kernels_of(target.cluster);
    const ConvOperands of_first = conv_operands_of(halves.depthwise);
    const ConvOperands of_last = conv_operands_of(halves.pointwise);
    const ConvShape d = conv_shape_of(halves.depthwise);
    SeparableHead head = {};
    head.plan = plan_conv_separable({d, first.program, of_first.bias >= 0},
                                    {conv_shape_of(halves.pointwise), last.program, of_last.bias >= 0},
                                    image_strides_of(request.inputs[static_cast<std::size_t>(of_first.data)]),
                                    image_strides_of(request.outputs[0]), kernels.vector_width);
    head.depthwise = kernels.conv_depthwise;
    head.pointwise = kernels.conv_gemm;
    head.pointwise_at = conv_separable_pointwise_at(d, kernels.vector_width);
    head.data = of_first.data;
    head.depthwise_bias = of_first.bias;
    head.pointwise_bias = of_last.bias;
    head.depthwise_operands = first.operands;
    head.pointwise_operands = last.operands;
    return Plan::of(head);
  }

  static Workspace workspace(const Plan& plan) {
    const ConvSeparablePlan& p = plan.head<SeparableHead>().plan;
    return {0, static_cast<std::size_t>(p.scratch_bytes)};
  }

  static std::int64_t tiles(const Plan& plan, int) { return conv_separable_tiles(plan.head<SeparableHead>().plan); }

  static Fault run(const Plan& plan, const Pointers& pointers, int, std::int64_t tile, std::byte* scratch) {
    const auto& head = plan.head<SeparableHead>();
    const auto floats = [&](int input) {
      return input < 0 ? nullptr : reinterpret_cast<const float*>(pointers.inputs[input]);
    };
    const auto* const weights = reinterpret_cast<const float*>(pointers.packed);
    float* const between = separable_image(head.plan, tile, scratch);
    const float* operands[EndingProgram::max_steps];
    head.depthwise_operands.find(pointers, operands);
    head.depthwise(head.plan.depthwise,
                   {floats(head.data), weights, floats(head.depthwise_bias), between, nullptr, operands}, 0, tile,
                   scratch);
    head.pointwise_operands.find(pointers, operands);
    head.pointwise(head.plan.pointwise,
                   {between, weights + head.pointwise_at, floats(head.pointwise_bias),
                    reinterpret_cast<float*>(pointers.outputs[0]), nullptr, operands},
                   0, tile, scratch);
    return nullptr;
  }
};

}  // namespace

void add_separable_rows(const ClusterKernels&, RowList& rows) {
  rows.push_back(
      {.name = "conv_separable",
       .op = "conv",
       .doc = "a depthwise convolution and the 1x1 one behind it, tile by tile: the image between them stays "
              "in the caches",
       .takes = Density::pitched,
       .accepts = SeparableRow::accepts,
       .cost = SeparableRow::cost,
       .packing = {"conv_separable/1", SeparableRow::packed_inputs, SeparableRow::packed_bytes, SeparableRow::pack},
       .plan = SeparableRow::plan,
       .workspace = SeparableRow::workspace,
       .tiles = SeparableRow::tiles,
       .run = SeparableRow::run});
}

}  // namespace polyphase::cpu

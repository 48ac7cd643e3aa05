// Rows of instance_norm, group_norm and layer_norm in FP32.
#include <algorithm>

#include "backends/cpu/kernels/normalize.h"
#include "backends/cpu/rows/ending_program.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

bool is_layer_norm(const StepDesc& desc) { return desc.anchor_part().op->name == "layer_norm"; }

// scale and bias (operands 1 and 2) must lie as one run of elements.
std::string refuse_parameters(const StepDesc& desc) {
  if (!is_layer_norm(desc)) return {};
  const auto present = [&](std::size_t i) { return i < desc.inputs.size() && desc.inputs[i].present; };
  if (present(2) && !present(1)) return "a bias needs a scale";
  const Shape& x = desc.inputs[0].type.shape;
  const auto axis = static_cast<int>(desc.attributes().get<int64_t>("axis"));
  for (std::size_t i = 1; i < desc.inputs.size(); ++i) {
    if (!desc.inputs[i].present) continue;
    const Shape& own = desc.inputs[i].type.shape;
    if (own.rank() != x.rank() - axis) return "scale and bias must have the normalised axes";
    for (int k = 0; k < own.rank(); ++k) {
      if (!(own[k] == x[axis + k])) return "scale and bias must not broadcast";
    }
  }
  return {};
}

std::string accepts_rows(const StepDesc& desc, const Target&) {
  if (std::string refusal = needs_f32(desc); !refusal.empty()) return refusal;
  if (!desc.inputs[0].layout.is_row_major() || !desc.outputs[0].layout.is_row_major()) return "needs row-major tensors";
  if (std::string refusal = refuse_parameters(desc); !refusal.empty()) return refusal;
  return needs_unfused(desc);
}

std::string accepts_columns(const StepDesc& desc, const Target&) {
  if (std::string refusal = needs_f32_operands(desc); !refusal.empty()) return refusal;
  const DType stored = desc.outputs[0].type.dtype;
  const bool narrowed = desc.ends_with_cast();
  if (stored != DType::f32 && !(narrowed && stored == DType::bf16))
    return "gives f32 and bf16 only, found " + std::string(name_of(stored));
  if (desc.anchor != 0) return "takes no beginnings";
  if (const int rank = desc.outputs[0].type.shape.rank(); rank < 3 || rank > 5)
    return "has no one to three spatial axes";
  if (!desc.inputs[0].layout.is_channels_last() || !desc.outputs[0].layout.is_channels_last())
    return "needs channels-last tensors";
  return refuse_endings(desc, narrowed);
}

double cost_normalize(const StepDesc& desc, const Target& target) {
  return moving_seconds(desc) * 1.5 + result_elements(desc) * (target.cluster == Cluster::scalar ? 2e-9 : 0.3e-9);
}

NormalizePlan common_plan(const PlanRequest& request) {
  const Attributes& attributes = request.desc.attributes();
  NormalizePlan plan{};
  plan.epsilon = static_cast<float>(attributes.get<double>("epsilon"));
  plan.channels = request.inputs[0].sizes[1];
  // Behind the operator's own operands follow those of the endings.
  const auto present = [&](std::size_t i) {
    const int operand = request.desc.anchor_operand(i);
    return operand >= 0 && request.desc.inputs[static_cast<std::size_t>(operand)].present;
  };
  plan.scale_mode = present(1) ? 1 : 0;
  plan.has_bias = present(2) ? 1 : 0;
  const bool grouped = request.desc.anchor_part().op->name == "group_norm";
  plan.channels_per_group = grouped ? plan.channels / attributes.get<int64_t>("groups") : 1;
  return plan;
}

Plan plan_rows(const PlanRequest& request, const Target&) {
  const TensorDesc& x = request.inputs[0];
  NormalizePlan plan = common_plan(request);
  const int64_t count = x.element_count();
  if (is_layer_norm(request.desc)) {
    plan.keeps_mean = request.desc.attributes().get<bool>("centre") ? 0 : 1;
    plan.length = 1;
    for (auto i = static_cast<std::size_t>(request.desc.attributes().get<int64_t>("axis"));
         i < static_cast<std::size_t>(x.rank); ++i)
      plan.length *= x.sizes[i];
    if (plan.scale_mode != 0) plan.scale_mode = 2;
    plan.channels = plan.channels_per_group = 1;
    plan.elements_per_channel = plan.length;
  } else {
    plan.elements_per_channel = 1;
    for (std::size_t i = 2; i < static_cast<std::size_t>(x.rank); ++i) plan.elements_per_channel *= x.sizes[i];
    plan.length = plan.elements_per_channel * plan.channels_per_group;
  }
  plan.groups = count == 0 ? 0 : count / plan.length;
  constexpr int64_t tile_elements = 16 * 1024;  // fewer take threads no longer than to fetch them
  plan.chunk = std::max<int64_t>(1, tile_elements / std::max<int64_t>(1, plan.length));
  plan.chunks = ceil_div(plan.groups, plan.chunk);
  return Plan::of(plan);
}

Plan plan_columns(const PlanRequest& request, const Target&) {
  const TensorDesc& x = request.inputs[0];
  NormalizeColumnsPlan head{};
  NormalizePlan& plan = head.columns;
  plan = common_plan(request);
  plan.columns = 1;
  plan.groups = x.sizes[0];
  plan.length = 1;
  for (std::size_t i = 2; i < static_cast<std::size_t>(x.rank); ++i) plan.length *= x.sizes[i];
  if (x.element_count() == 0) plan.groups = plan.length = 0;
  // A chunk stays in the innermost cache while it is walked twice.
  plan.chunk = std::clamp<int64_t>(8 * 1024 / std::max<int64_t>(1, plan.channels), 16, 512);
  plan.chunks = plan.length == 0 ? 0 : ceil_div(plan.length, plan.chunk);
  const int64_t group = std::max<int64_t>(1, plan.channels_per_group);
  plan.channels_per_merge = ceil_div(NormalizePlan::merged_channels, group) * group;
  plan.merges = ceil_div(plan.channels, plan.channels_per_merge);
  const TranslatedEndings endings = translate_endings(request);
  head.endings = endings.program;
  head.operands = endings.operands;
  std::fill_n(head.out, 3, 1);
  for (int axis = 2; axis < x.rank; ++axis)
    head.out[axis + 3 - x.rank] = std::max<int64_t>(1, x.sizes[static_cast<std::size_t>(axis)]);
  head.type = request.outputs[0].dtype;
  constexpr int64_t kept_floats = 4096;  // in the first-level cache until the endings have read them
  const bool by_lines = head.type == DType::f32 && endings_run(head.endings, plan.channels);
  head.pixels = by_lines ? std::max<int64_t>(1, kept_floats / std::max<int64_t>(1, plan.channels)) : 1;
  return Plan::of(head);
}

Workspace columns_workspace(const Plan& plan) {
  const NormalizeColumnsPlan& head = plan.head<NormalizeColumnsPlan>();
  const NormalizePlan& p = head.columns;
  const auto moments = static_cast<std::size_t>(p.groups * p.chunks * p.channels) * 2 * sizeof(double);
  const auto results = static_cast<std::size_t>(p.groups * p.channels) * 3 * sizeof(float);
  const auto pixel = static_cast<std::size_t>(p.channels) * sizeof(float);
  return {moments + results, head.type == DType::f32 ? 0 : pixel};
}

int64_t columns_tiles(const Plan& plan, int phase) {
  const NormalizePlan& p = plan.head<NormalizeColumnsPlan>().columns;
  return p.groups * (phase == 1 ? p.merges : p.chunks);
}

}  // namespace

void add_normalize_rows(const ClusterKernels& kernels, RowList& rows) {
  for (const std::string_view op : {"instance_norm", "group_norm", "layer_norm"}) {
    Row row;
    row.name = "normalize_rows";
    row.op = op;
    row.doc = "every group is one run of elements: moments, then the result, while the run is in cache";
    row.takes = Density::dense;
    row.accepts = accepts_rows;
    row.cost = cost_normalize;
    row.plan = plan_rows;
    row.tiles = [](const Plan& plan, int) { return plan.head<NormalizePlan>().chunks; };
    row.run = kernels.normalize_rows;
    rows.push_back(row);
  }
  for (const std::string_view op : {"instance_norm", "group_norm"}) {
    Row row;
    row.name = "normalize_columns";
    row.op = op;
    row.doc = "channels inside: moments by chunks of pixels, merged in order, then one pass that applies them";
    row.takes = Density::dense;
    row.keeps_parts = true;
    row.accepts = accepts_columns;
    row.cost = cost_normalize;
    row.plan = plan_columns;
    row.workspace = columns_workspace;
    row.phases = [](const Plan&) { return 3; };
    row.tiles = columns_tiles;
    row.run = kernels.normalize_columns;
    rows.push_back(row);
  }
}

}  // namespace polyphase::cpu

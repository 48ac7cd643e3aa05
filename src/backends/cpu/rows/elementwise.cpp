// The row of elementwise chains: any of the operators that ending_program.cpp knows, with elementwise endings.
#include <algorithm>

#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/rows/elementwise_axes.h"
#include "backends/cpu/rows/ending_program.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

constexpr std::string_view operators[] = {
    "abs",          "acos",       "acosh",      "add",   "add_mixed",  "asin",  "asinh",
    "atan",         "atanh",      "cast",       "ceil",  "celu",       "clip",  "cos",
    "cosh",         "div",        "elu",        "erf",   "exp",        "floor", "gelu",
    "hard_sigmoid", "hard_swish", "leaky_relu", "log",   "max",        "min",   "mish",
    "mul",          "neg",        "pow",        "prelu", "reciprocal", "relu",  "round",
    "selu",         "sigmoid",    "sign",       "silu",  "sin",        "sinh",  "softplus",
    "softsign",     "sqrt",       "square",     "sub",   "tan",        "tanh",  "thresholded_relu"};

// Floats that hold the integer exactly.
bool is_short_integer(DType dtype) {
  return dtype == DType::u8 || dtype == DType::i8 || dtype == DType::u16 || dtype == DType::i16 ||
         dtype == DType::boolean;
}

// The steps of a chain, computed in f32 and rounded to the result's dtype at its end. A cast rounds what was computed
// so far to the dtype it comes from, and to the one it goes to if more follows. Nothing: there is no step for a part.
std::optional<std::vector<EndingStep>> chain_steps(const StepDesc& desc) {
  std::vector<EndingStep> steps;
  DType dtype = desc.data().type.dtype;
  bool computed = false;
  const auto round = [&] {
    steps.push_back({dtype == DType::f16 ? EndingKind::round_f16 : EndingKind::round_bf16, -1, 0, 0});
    computed = false;
  };
  for (const Part& part : desc.parts) {
    if (part.op->name != "cast") {
      const auto step = ending_step(part, &part != desc.parts.data() && running_operand(part) == 1);
      if (!step.has_value()) return std::nullopt;
      steps.push_back(*step);
      computed = true;
      continue;
    }
    if (computed && is_narrow(dtype)) round();
    dtype = part.attributes.get<DType>("to");
    if (is_narrow(dtype) && &part != &desc.parts.back()) round();
  }
  return steps;
}

std::string refuse_dtypes(const StepDesc& desc) {
  const bool converts = desc.anchor_part().op->name == "cast";
  const auto taken = [](DType dtype) { return dtype == DType::f32 || is_narrow(dtype); };
  for (const OperandDesc& input : desc.inputs) {
    const bool enters = converts && &input == &desc.data();
    if (input.present && !taken(input.type.dtype) && !(enters && is_short_integer(input.type.dtype)))
      return "computes in f32 only, found " + std::string(name_of(input.type.dtype));
    if (input.type.shape.rank() > desc.outputs[0].type.shape.rank()) return "an operand has more axes than the result";
  }
  for (const Part& part : desc.parts) {
    if (part.op->name == "cast" && !taken(part.attributes.get<DType>("to"))) return "casts to f32, f16 and bf16 only";
  }
  return taken(desc.outputs[0].type.dtype) ? "" : "gives f32, f16 and bf16 only";
}

std::string accepts_elementwise(const StepDesc& desc, const Target&) {
  if (!desc.beginnings().empty()) return "takes no beginnings";
  if (desc.inputs.size() > ElementwisePlan::max_operands) return "takes at most 8 operands";
  if (desc.outputs.size() != 1) return "gives one result";
  if (std::string refusal = refuse_dtypes(desc); !refusal.empty()) return refusal;
  for (const Part& part : desc.endings()) {
    if (std::count(part.operands.begin(), part.operands.end(), static_cast<int>(Part::running)) != 1)
      return "takes the chain's value once in each ending";
  }
  const auto steps = chain_steps(desc);
  if (!steps.has_value()) return "has no step for a part of the chain";
  if (steps->size() > ElementwisePlan::max_steps) return "takes at most 17 steps";
  // An ending must not broadcast the chain: the anchor's result has the shape of the step's.
  std::vector<DimCheck> unused;
  std::vector<OperandInfo> infos;
  for (const int operand : desc.anchor_part().operands)
    infos.push_back({&desc.inputs[static_cast<std::size_t>(operand)].type, nullptr});
  const auto anchor = infer_types(*desc.anchor_part().op, desc.attributes(), infos, unused);
  if (!anchor.ok() || !(anchor->front().shape == desc.outputs[0].type.shape))
    return "an ending broadcasts the chain's value";
  return {};
}

// The anchor's step costs a pass over memory; costly functions more.
double cost_elementwise(const StepDesc& desc, const Target& target) {
  double per_element = 0.05e-9;
  for (const EndingStep& step : chain_steps(desc).value_or(std::vector<EndingStep>())) {
    const bool lane_by_lane = step.kind >= EndingKind::tan;
    const bool is_function = step.kind >= EndingKind::sigmoid || step.kind == EndingKind::power;
    per_element += lane_by_lane ? 20e-9 : (is_function ? 0.6e-9 : 0.1e-9);
  }
  return moving_seconds(desc) + result_elements(desc) * per_element * (target.cluster == Cluster::scalar ? 6 : 1);
}

struct ChainAxis {
  int64_t size;
  int64_t to;
  int64_t from[ElementwisePlan::max_operands];
};

// Axes sorted by the result's strides; neighbours that continue each other in the result and in every operand become
// one.
std::vector<ChainAxis> merged_chain_axes(const PlanRequest& request) {
  const TensorDesc& y = request.outputs[0];
  std::vector<ChainAxis> axes;
  for (int i = 0; i < y.rank; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (y.sizes[at] == 1) continue;
    ChainAxis axis{y.sizes[at], y.strides[at], {}};
    for (std::size_t k = 0; k < request.inputs.size(); ++k) {
      const TensorDesc& x = request.inputs[k];
      const int own = i - (y.rank - x.rank);  // operands broadcast by their trailing axes
      if (own >= 0 && x.sizes[static_cast<std::size_t>(own)] != 1)
        axis.from[k] = x.strides[static_cast<std::size_t>(own)];
    }
    axes.push_back(axis);
  }
  std::stable_sort(axes.begin(), axes.end(), [](const ChainAxis& a, const ChainAxis& b) { return a.to > b.to; });
  std::vector<ChainAxis> out;
  for (const ChainAxis& axis : axes) {
    bool continues = !out.empty() && out.back().to == axis.to * axis.size;
    for (std::size_t k = 0; continues && k < request.inputs.size(); ++k)
      continues = out.back().from[k] == axis.from[k] * axis.size;
    if (!continues) {
      out.push_back(axis);
      continue;
    }
    const int64_t size = out.back().size * axis.size;
    out.back() = axis;
    out.back().size = size;
  }
  if (out.empty()) out.push_back({y.empty() ? 0 : 1, 1, {}});
  return out;
}

// Operands whose elements are neighbours along the axis before the last: every element of a row is in another cache
// line, and the lines are read again for each of the rows that share them, unless a block of rows is turned at once.
// Where none lies along the rows, the rows may be walked the operands' way, and the result is turned: where those rows
// are not short while the result takes no more bytes than what would be turned, or where the result's rows are short.
void find_crossed(ElementwisePlan& plan) {
  constexpr int64_t fewest = 4;  // rows or columns that pay for turning
  const int32_t last = plan.rank - 1;
  if (last == 0 || plan.sizes[last - 1] < fewest || plan.sizes[last] < fewest) return;
  bool lies_along = plan.to_strides[last] != 1;
  std::size_t crossed_bytes = 0;
  for (int32_t k = 0; k < plan.operand_count; ++k) {
    const int64_t* strides = plan.from_strides[k];
    const bool crossed = strides[last] > 1 && strides[last - 1] == 1;
    lies_along = lies_along || (!crossed && strides[last] != 0 && strides[last - 1] != 0);
    if (!crossed) continue;
    crossed_bytes += size_bytes(plan.from_dtypes[k]);
    if (plan.crossed_count < ElementwisePlan::most_crossed) plan.crossed[plan.crossed_count++] = k;
  }
  constexpr int64_t short_row = 64;
  const bool gains = plan.sizes[last] < short_row
                         ? plan.sizes[last - 1] > plan.sizes[last]
                         : plan.sizes[last - 1] >= short_row && size_bytes(plan.to_dtype) <= crossed_bytes;
  if (plan.crossed_count == 0 || lies_along || !gains) return;
  plan.crossed_count = 0;
  plan.result_crossed = true;
  std::swap(plan.sizes[last], plan.sizes[last - 1]);
  std::swap(plan.to_strides[last], plan.to_strides[last - 1]);
  for (int32_t k = 0; k < plan.operand_count; ++k)
    std::swap(plan.from_strides[k][last], plan.from_strides[k][last - 1]);
}

}  // namespace

void set_elementwise_axes(const PlanRequest& request, ElementwisePlan& plan) {
  plan.operand_count = static_cast<int32_t>(request.inputs.size());
  plan.to_dtype = request.outputs[0].dtype;
  for (std::size_t k = 0; k < request.inputs.size(); ++k) plan.from_dtypes[k] = request.inputs[k].dtype;
  const std::vector<ChainAxis> axes = merged_chain_axes(request);
  plan.rank = static_cast<int32_t>(axes.size());
  int64_t rows = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    plan.sizes[i] = axes[i].size;
    plan.to_strides[i] = axes[i].to;
    for (std::size_t k = 0; k < request.inputs.size(); ++k) plan.from_strides[k][i] = axes[i].from[k];
    if (i + 1 < axes.size()) rows *= axes[i].size;
  }
  find_crossed(plan);
  constexpr int64_t tile_elements = 16 * 1024;
  const int64_t last = plan.sizes[plan.rank - 1];
  rows = rows * axes.back().size / std::max<int64_t>(1, last);
  const bool crossed = plan.crossed_count > 0 || plan.result_crossed;
  const int64_t fewest_rows = crossed ? ElementwisePlan::crossed_rows : 1;
  plan.joins_rows = !crossed && plan.rank > 1 && last > 0 && last <= ElementwisePlan::most_joined;
  plan.chunk = std::min(last, tile_elements / fewest_rows);
  plan.chunks = last == 0 ? 0 : ceil_div(last, plan.chunk);
  plan.rows_per_tile = tile_elements / std::max<int64_t>(1, plan.chunk) / fewest_rows * fewest_rows;
  plan.tiles = request.outputs[0].empty() ? 0 : plan.chunks * ceil_div(rows, plan.rows_per_tile);
}

namespace {

// A large result that cannot be written over its operand, whose lines would be in the caches.
bool is_past_caches(const PlanRequest& request, const ElementwisePlan& plan) {
  constexpr std::size_t large = 16 << 20;
  const TensorDesc& y = request.outputs[0];
  const std::size_t element = size_bytes(y.dtype);
  const int32_t last = plan.rank - 1;
  const bool gaps = plan.joins_rows && plan.to_strides[last - 1] != plan.sizes[last];
  const bool by_rows = plan.crossed_count == 0 && !plan.result_crossed && plan.to_strides[last] == 1 && !gaps;
  return by_rows && element != size_bytes(plan.from_dtypes[plan.first_operand]) &&
         static_cast<std::size_t>(y.element_count()) * element >= large;
}

Plan plan_elementwise(const PlanRequest& request, const Target&) {
  ElementwisePlan plan{};
  const auto steps = chain_steps(request.desc);
  CHECK(steps.has_value());
  std::copy(steps->begin(), steps->end(), plan.steps);
  plan.step_count = static_cast<int32_t>(steps->size());
  plan.first_operand = request.desc.anchor_part().operands.front();
  set_elementwise_axes(request, plan);
  plan.past_caches = is_past_caches(request, plan);
  return Plan::of(plan);
}

}  // namespace

void add_elementwise_rows(const ClusterKernels& kernels, RowList& rows) {
  for (const std::string_view op : operators) {
    Row row;
    row.name = "elementwise_chain";
    row.op = op;
    row.doc =
        "elementwise steps and casts over blocks that stay in the innermost cache; operands broadcast by strides of 0";
    row.exactness = Exactness::exact;
    row.takes = Density::strided;
    row.in_place = true;
    row.accepts = accepts_elementwise;
    row.cost = cost_elementwise;
    row.plan = plan_elementwise;
    row.tiles = [](const Plan& plan, int) { return plan.head<ElementwisePlan>().tiles; };
    row.run = kernels.elementwise;
    rows.push_back(row);
  }
}

}  // namespace polyphase::cpu

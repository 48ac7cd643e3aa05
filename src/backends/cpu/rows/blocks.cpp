// Rows for what no vector kernel computes: elementwise operators in any dtype, by blocks that the operator's own
// definition walks, tile by tile; and sizes as data.
#include <algorithm>

#include "backends/cpu/rows/row_list.h"
#include "base/lasting.h"
#include "ops/registry.h"

namespace polyphase::cpu {
namespace {

constexpr std::size_t max_operands = 4;
constexpr int64_t elements_per_tile = 1 << 15;

// The plan points into the session's own StepDesc, which outlives it.
struct BlocksPlan {
  const Part* part;
  int64_t axis;      // of the result; tiles are ranges of it
  int64_t per_tile;  // indices of the axis in one tile
  int64_t tiles;
  int64_t operands;
  TensorDesc inputs[max_operands];
  TensorDesc output;
};

std::string accepts_blocks(const StepDesc& desc, const Target&) {
  if (desc.parts.size() != 1) return "takes no beginnings or endings";
  if (desc.inputs.size() > max_operands) return "takes up to 4 operands";
  const auto present = [](const OperandDesc& input) { return input.present; };
  return std::all_of(desc.inputs.begin(), desc.inputs.end(), present) ? "" : "an operand is absent";
}

// Slower than any vector kernel of the same operator, faster than the definition in one piece.
double cost_blocks(const StepDesc& desc, const Target&) { return moving_seconds(desc) + result_elements(desc) * 4e-9; }

Plan plan_blocks(const PlanRequest& request, const Target&) {
  BlocksPlan plan{};
  plan.part = &request.desc.anchor_part();
  plan.operands = static_cast<int64_t>(request.inputs.size());
  std::copy(request.inputs.begin(), request.inputs.end(), plan.inputs);
  plan.output = request.outputs[0];
  const auto sizes = plan.output.size_span();
  const auto longest = std::max_element(sizes.begin(), sizes.end());
  plan.axis = longest == sizes.end() ? 0 : longest - sizes.begin();
  const int64_t length = longest == sizes.end() ? 1 : *longest;
  const int64_t elements = plan.output.element_count();
  plan.per_tile = std::max<int64_t>(1, length * elements_per_tile / std::max<int64_t>(1, elements));
  plan.tiles = elements == 0 ? 0 : ceil_div(length, plan.per_tile);
  return Plan::of(plan);
}

// The indices [first, first + count) of the result's axis, as seen in an operand that broadcasts.
TensorView range_of(const TensorDesc& desc, std::byte* data, int64_t axis, int64_t first, int64_t count) {
  TensorView out(desc, data);
  if (axis < 0 || desc.sizes[static_cast<std::size_t>(axis)] == 1) return out;
  out.sizes[static_cast<std::size_t>(axis)] = count;
  out.data += first * desc.strides[static_cast<std::size_t>(axis)] * static_cast<int64_t>(size_bytes(desc.dtype));
  return out;
}

Fault run_blocks(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  const auto& p = plan.head<BlocksPlan>();
  const int64_t length = p.output.rank == 0 ? 1 : p.output.sizes[static_cast<std::size_t>(p.axis)];
  const int64_t first = tile * p.per_tile;
  const int64_t count = std::min(p.per_tile, length - first);
  TensorView inputs[max_operands];
  for (std::size_t i = 0; i < p.part->operands.size(); ++i) {
    const auto operand = static_cast<std::size_t>(p.part->operands[i]);
    const TensorDesc& desc = p.inputs[operand];
    inputs[i] = range_of(desc, const_cast<std::byte*>(pointers.inputs[operand]), p.axis - (p.output.rank - desc.rank),
                         first, count);
  }
  const TensorView output = range_of(p.output, pointers.outputs[0], p.output.rank == 0 ? -1 : p.axis, first, count);
  const auto done = p.part->op->reference({p.part->attributes, {inputs, p.part->operands.size()}, {&output, 1}});
  return done.ok() ? nullptr : "an element cannot be computed";
}

Row blocks_row(std::string_view op) {
  return {.name = "element_blocks",
          .op = op,
          .doc = "elementwise in any dtype: tiles of the operator's own blocked loops",
          .takes = Density::strided,
          .in_place = true,
          .accepts = accepts_blocks,
          .cost = cost_blocks,
          .packing = {},
          .plan = plan_blocks,
          .workspace = nullptr,
          .phases = nullptr,
          .tiles = [](const Plan& plan, int) { return plan.head<BlocksPlan>().tiles; },
          .run = run_blocks};
}

// ---------------------------------------------------------------- sizes as data

struct SizesPlan {
  int64_t count;
  int64_t stride;
};

Plan plan_sizes(const PlanRequest& request, const Target&) {
  const auto values = integers_of(request.desc.attributes().get<std::vector<Dim>>("values"));
  const TensorDesc& out = request.outputs[0];
  Plan plan = Plan::of(SizesPlan{static_cast<int64_t>(values.size()), out.rank == 0 ? 1 : out.strides[0]});
  plan.append(std::span<const int64_t>(values));
  return plan;
}

Fault run_sizes(const Plan& plan, const Pointers& pointers, int, int64_t, std::byte*) {
  const auto& p = plan.head<SizesPlan>();
  const auto* values = reinterpret_cast<const int64_t*>(plan.bytes() + sizeof(SizesPlan));
  auto* out = reinterpret_cast<int64_t*>(pointers.outputs[0]);
  for (int64_t i = 0; i < p.count; ++i) out[i * p.stride] = values[i];
  return nullptr;
}

const Row sizes_row = {.name = "sizes",
                       .op = "dims",
                       .doc = "sizes as data: computed when the sizes are planned, written when the step runs",
                       .takes = Density::strided,
                       .accepts = [](const StepDesc& desc, const Target&) { return needs_unfused(desc); },
                       .cost = [](const StepDesc& desc, const Target&) { return moving_seconds(desc); },
                       .packing = {},
                       .plan = plan_sizes,
                       .workspace = nullptr,
                       .phases = nullptr,
                       .tiles = [](const Plan&, int) -> int64_t { return 1; },
                       .run = run_sizes};

}  // namespace

void add_block_rows(const ClusterKernels&, RowList& rows) {
  // The names outlive the rows: they are those of the definitions, kept here.
  static const std::vector<OpDef>& operators = lasting(built_in_operators());
  for (const OpDef& op : operators) {
    const bool by_element = op.elementwise || op.name == "where";
    if (by_element && op.reference != nullptr && op.outputs.size() == 1) rows.push_back(blocks_row(op.name));
  }
  rows.push_back(sizes_row);
}

}  // namespace polyphase::cpu

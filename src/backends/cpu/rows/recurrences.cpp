// Rows of lstm, gru and rnn in FP32 with the activations that everybody uses.
#include <algorithm>

#include "backends/cpu/kernels/panel_lines.h"
#include "backends/cpu/kernels/recurrence.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

constexpr int initial_c_operand = 5;
constexpr int peephole_operand = 6;

bool is_usual(const CellActivation& f, CellFunction function) { return f.function == function; }

std::string refuse_activations(const RecurrenceSettings& settings) {
  for (int d = 0; d < settings.directions; ++d) {
    const auto& f = settings.activations[d];
    bool usual = true;
    if (settings.cell == Cell::rnn) {
      usual = is_usual(f[0], CellFunction::tanh) || is_usual(f[0], CellFunction::relu);
    } else {
      usual = is_usual(f[0], CellFunction::sigmoid);
      for (std::size_t i = 1; i < f.size(); ++i) usual = usual && is_usual(f[i], CellFunction::tanh);
    }
    if (!usual) return "its activations are not the cell's usual ones";
  }
  return {};
}

std::string accepts_recurrence(const StepDesc& desc, const Target&) {
  for (const auto* side : {&desc.inputs, &desc.outputs}) {
    for (const OperandDesc& operand : *side) {
      if (!operand.present) continue;
      if (operand.type.dtype != DType::f32 && operand.type.dtype != DType::i32)
        return "computes in f32 only, found " + std::string(name_of(operand.type.dtype));
      if (!operand.layout.is_row_major()) return "takes row-major operands only";
    }
  }
  if (!desc.inputs[1].type.shape.is_static()) return "the size of the recurrent weights must be fixed";
  const auto settings = recurrence_settings(desc.anchor_part().op->name, desc.attributes());
  if (!settings.ok()) return "its activations do not fit";
  if (std::string refusal = refuse_activations(*settings); !refusal.empty()) return refusal;
  return needs_unfused(desc);
}

// Directions, gates and hidden units, from the recurrent weights.
struct CellSizes {
  explicit CellSizes(const StepDesc& desc) {
    const Shape& r = desc.inputs[1].type.shape;
    directions = r[0].constant().value_or(1);
    hidden = r[2].constant().value_or(1);
    cell = cell_of(desc.anchor_part().op->name);
    gates = gates_of(cell);
    before_reset = cell == Cell::gru && !desc.attributes().get<bool>("linear_before_reset");
  }
  Cell cell;
  int gates;
  bool before_reset;  // a gru in two phases
  int64_t directions;
  int64_t hidden;
};

double cost_recurrence(const StepDesc& desc, const Target& target) {
  const CellSizes sizes(desc);
  const Shape& x = desc.inputs[0].type.shape;
  const auto steps = static_cast<double>(x[0].constant().value_or(1));
  const auto batch = static_cast<double>(x[1].constant().value_or(1));
  const auto width = static_cast<double>(vector_width(target.cluster));
  const double vectors = static_cast<double>(ceil_div(sizes.hidden, vector_width(target.cluster)));
  const double products = batch * static_cast<double>(sizes.directions * sizes.gates * sizes.hidden) * vectors;
  const double cells = batch * static_cast<double>(sizes.directions * sizes.gates) * vectors * 25;
  return moving_seconds(desc) + steps * (products / 2.5e9 + cells / 1.2e9 + 0.3e-6) * (width == 4 ? 1.5 : 1.0);
}

std::vector<int> packed_recurrence_inputs(const StepDesc&) { return {1}; }

std::size_t packed_recurrence_bytes(const StepDesc& desc, const Target& target) {
  const CellSizes sizes(desc);
  const int64_t width = vector_width(target.cluster);
  return static_cast<std::size_t>(sizes.directions * ceil_div(sizes.hidden, width) * width * sizes.gates *
                                  sizes.hidden) *
         sizeof(float);
}

// [direction][block][part][k][gate][lane]; only a gru in two phases has two parts: {z, r} and {h}.
void pack(const StepDesc& desc, const Target& target, std::span<const TensorView> views, PackShare share,
          std::byte* out) {
  const CellSizes sizes(desc);
  const int64_t width = vector_width(target.cluster);
  const TensorView& r = views[0];
  const auto part = [&](int64_t d, int64_t unit, int first_gate, int end_gate, float* to) {
    PanelTap gates[4];
    const int64_t count = end_gate - first_gate;
    for (int64_t g = 0; g < count; ++g) gates[g] = {(first_gate + g) * sizes.hidden * r.strides[1], g * width};
    write_panel_lines({.from = r.as<const float>() + d * r.strides[0] + unit * r.strides[1],
                       .to = to,
                       .lanes = width,
                       .filled = std::min(width, sizes.hidden - unit),
                       .lane_step = r.strides[1],
                       .channels = sizes.hidden,
                       .channel_step = r.strides[2],
                       .line_step = count * width,
                       .taps = gates,
                       .tap_count = count});
    return to + sizes.hidden * count * width;
  };
  const int64_t blocks = ceil_div(sizes.hidden, width);
  const PackRange range(sizes.directions * blocks, share);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t unit = i % blocks * width;
    float* to = reinterpret_cast<float*>(out) + i * sizes.gates * sizes.hidden * width;
    to = part(i / blocks, unit, 0, sizes.before_reset ? 2 : sizes.gates, to);
    if (sizes.before_reset) part(i / blocks, unit, 2, 3, to);
  }
}

int operand_at(const StepDesc& desc, int place) {
  return place < static_cast<int>(desc.anchor_part().operands.size()) ? desc.anchor_operand(static_cast<size_t>(place))
                                                                      : -1;
}

Plan plan_recurrence(const PlanRequest& request, const Target& target) {
  const StepDesc& desc = request.desc;
  const CellSizes sizes(desc);
  const auto settings = recurrence_settings(desc.anchor_part().op->name, desc.attributes());
  CHECK(settings.ok(), "the row accepted it");
  RecurrencePlan plan{};
  plan.cell = sizes.cell;
  plan.gates = sizes.gates;
  plan.directions = settings->directions;
  for (int d = 0; d < settings->directions; ++d) {
    plan.reversed[d] = settings->reversed[d] ? 1 : 0;
    plan.relu[d] = is_usual(settings->activations[d][0], CellFunction::relu) ? 1 : 0;
  }
  plan.linear_before_reset = settings->linear_before_reset ? 1 : 0;
  plan.input_forget = settings->input_forget ? 1 : 0;
  plan.bias = operand_at(desc, 2);
  plan.lengths = operand_at(desc, 3);
  plan.initial_h = operand_at(desc, 4);
  plan.initial_c = sizes.cell == Cell::lstm ? operand_at(desc, initial_c_operand) : -1;
  plan.peephole = sizes.cell == Cell::lstm ? operand_at(desc, peephole_operand) : -1;
  plan.clip = settings->clip > 0 ? static_cast<float>(settings->clip) : 0.0F;
  plan.steps = request.inputs[0].sizes[0];
  plan.batch = request.inputs[0].sizes[1];
  plan.hidden = sizes.hidden;
  plan.width = vector_width(target.cluster);
  plan.blocks = ceil_div(plan.hidden, plan.width);
  plan.parts = sizes.before_reset ? 2 : 1;
  // A tile is worth its hand-out: some thousand vector operations.
  constexpr int64_t tile_work = 16384;
  plan.tile_rows = std::min<int64_t>(plan.batch, 32);
  const int64_t block_work = std::max<int64_t>(1, plan.hidden * plan.gates * std::max<int64_t>(plan.tile_rows, 1));
  plan.tile_blocks = std::clamp<int64_t>(tile_work / block_work, 1, std::max<int64_t>(plan.blocks, 1));
  plan.unit_tiles = ceil_div(plan.blocks, plan.tile_blocks);
  plan.steps_per_phase = plan.unit_tiles > 1 ? 1 : 64;
  plan.row_tiles = plan.tile_rows == 0 ? 0 : ceil_div(plan.batch, plan.tile_rows);
  return Plan::of(plan);
}

Workspace recurrence_workspace(const Plan& plan) {
  return {static_cast<std::size_t>(RecurrenceMemory(plan.head<RecurrencePlan>()).total) * sizeof(float), 0};
}

int phases_of(const Plan& plan) { return recurrence_phases(plan.head<RecurrencePlan>()); }

int64_t recurrence_tiles(const Plan& plan, int phase) {
  const RecurrencePlan& p = plan.head<RecurrencePlan>();
  if (phase == 0 || phase == phases_of(plan) - 1) return 1;
  return p.unit_tiles * p.row_tiles * p.directions;
}

}  // namespace

void add_recurrence_rows(const ClusterKernels& kernels, RowList& rows) {
  for (const std::string_view op : {"gru", "lstm", "rnn"}) {
    Row row;
    row.name = "recurrent_panels";
    row.op = op;
    row.doc = "a phase per step; all gates of some units in one tile, recurrent weights packed beside each other";
    row.takes = Density::dense;
    row.accepts = accepts_recurrence;
    row.cost = cost_recurrence;
    row.packing = {"recurrent_panels/1", packed_recurrence_inputs, packed_recurrence_bytes, pack};
    row.plan = plan_recurrence;
    row.workspace = recurrence_workspace;
    row.phases = phases_of;
    row.tiles = recurrence_tiles;
    row.run = kernels.recurrence;
    rows.push_back(row);
  }
}

}  // namespace polyphase::cpu

// The row of attention in FP32.
#include <algorithm>

#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

constexpr std::size_t first_bias = 3;

std::string accepts_attention(const StepDesc& desc, const Target&) {
  if (std::string refusal = needs_f32(desc); !refusal.empty()) return refusal;
  for (std::size_t i = first_bias; i < desc.inputs.size(); ++i) {
    const OperandDesc& bias = desc.inputs[i];
    if (bias.present && !bias.layout.is_row_major()) return "reads biases whose keys lie beside each other";
  }
  return needs_unfused(desc);
}

double cost_attention(const StepDesc& desc, const Target& target) {
  const auto width = static_cast<double>(vector_width(target.cluster));
  const Shape& k = desc.inputs[1].type.shape;
  const Shape& v = desc.inputs[2].type.shape;
  const auto size = [](const Dim& dim) { return static_cast<double>(dim.constant().value_or(1)); };
  const double products = result_elements(desc) / std::max(size(v[3]), 1.0) * size(k[2]) * (size(k[3]) + size(v[3]));
  return moving_seconds(desc) + products / (width * 3e9);
}

int64_t round_up(int64_t value, int64_t to) { return ceil_div(value, to) * to; }

// Strides by (batch, head, place, element). Axes of one element do not move; but one of a head's only element is its
// own neighbour.
void copy_strides(const TensorDesc& desc, int64_t* strides, int64_t last) {
  for (int axis = 0; axis < desc.rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    strides[4 - desc.rank + axis] = desc.sizes[i] != 1 ? desc.strides[i] : axis + 1 == desc.rank ? last : 0;
  }
}

// Rows of queries that share each packed block, and keys of a block: what they need together stays in the second-level
// cache. All tiles of a head get about as many queries.
void choose_tile(AttentionPlan& p, int64_t planes, int64_t width) {
  const int64_t group = width == 16 ? 12 : 6;
  const int64_t most = p.value_width <= 128 ? 192 : 144;
  const bool many = planes * ceil_div(p.queries, most) >= 16;
  const int64_t longest = many ? most : 96;
  p.query_tiles = std::max<int64_t>(1, ceil_div(p.queries, longest));
  p.tile_queries = round_up(std::max<int64_t>(1, ceil_div(p.queries, p.query_tiles)), group);
  p.query_tiles = ceil_div(p.queries, p.tile_queries);
  const int64_t fitting = std::clamp<int64_t>(8192 / std::max<int64_t>(1, std::max(p.width, p.value_width)), 64, 256);
  const int64_t blocks = std::max<int64_t>(1, ceil_div(p.keys, fitting));
  p.block_keys = round_up(std::max<int64_t>(1, ceil_div(p.keys, blocks)), 2 * width);
}

void lay_out_scratch(AttentionPlan& p, int64_t width) {
  const int64_t columns = 2 * width;
  p.rows = std::min(p.tile_queries, round_up(p.queries, width == 16 ? 4 : 2));
  // Pitches that are no power of two: rows of one tile do not meet in one set of the cache.
  p.q_pitch = round_up(p.width, width) + 16;
  p.score_pitch = p.block_keys + 16;
  p.o_pitch = round_up(p.value_width, columns) + 16;
  int64_t at = p.rows * p.q_pitch;
  const auto take = [&](int64_t count) {
    const int64_t here = at;
    at += round_up(count, 16);
    return here;
  };
  at = round_up(at, 16);
  p.k_at = take(std::min(p.width, AttentionPlan::inner_block) * p.block_keys);
  p.score_at = take(p.rows * p.score_pitch);
  p.v_at = take(p.block_keys * round_up(p.value_width, columns));
  p.o_at = take(p.rows * p.o_pitch);
  p.state_at = take(4 * p.rows);
  p.scratch = at;
}

Plan plan_attention(const PlanRequest& request, const Target& target) {
  const TensorDesc& q = request.inputs[0];
  const TensorDesc& k = request.inputs[1];
  const TensorDesc& v = request.inputs[2];
  const Attributes& attributes = request.desc.attributes();
  const int64_t width = vector_width(target.cluster);
  AttentionPlan p{};
  p.heads = q.sizes[1];
  p.heads_per_key = k.sizes[1] == 0 ? 1 : q.sizes[1] / k.sizes[1];
  p.queries = q.sizes[2];
  p.keys = k.sizes[2];
  p.width = q.sizes[3];
  p.value_width = v.sizes[3];
  copy_strides(q, p.q, 1);
  copy_strides(k, p.k, 1);
  copy_strides(v, p.v, 1);
  copy_strides(request.outputs[0], p.y, 1);
  for (std::size_t i = 0; i < AttentionPlan::biases; ++i) {
    p.bias[i].present = request.inputs.size() > first_bias + i && request.desc.inputs[first_bias + i].present;
    if (p.bias[i].present) copy_strides(request.inputs[first_bias + i], p.bias[i].strides, 0);
  }
  p.scale = static_cast<float>(attributes.get<double>("scale"));
  p.causal = attributes.get<bool>("causal") ? 1 : 0;
  p.guarded = attributes.get<bool>("guarded") ? 1 : 0;
  choose_tile(p, q.sizes[0] * q.sizes[1], width);
  lay_out_scratch(p, width);
  p.tiles = request.outputs[0].element_count() == 0 ? 0 : q.sizes[0] * q.sizes[1] * p.query_tiles;
  return Plan::of(p);
}

}  // namespace

void add_attention_rows(const ClusterKernels& kernels, RowList& rows) {
  Row row;
  row.name = "attention_blocks";
  row.op = "attention";
  row.doc = "tiles of queries against blocks of keys with a running maximum and sum; the scores never exist at once";
  row.takes = Density::strided;
  row.accepts = accepts_attention;
  row.cost = cost_attention;
  row.plan = plan_attention;
  row.workspace = [](const Plan& plan) {
    return Workspace{0, static_cast<std::size_t>(plan.head<AttentionPlan>().scratch) * sizeof(float)};
  };
  row.tiles = [](const Plan& plan, int) { return plan.head<AttentionPlan>().tiles; };
  row.run = kernels.attention;
  rows.push_back(row);
}

}  // namespace polyphase::cpu

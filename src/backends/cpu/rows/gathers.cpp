// Rows of gather, gather_nd and range: elements by computed index, in any dtype, and the indices that exporters count
// up.
//
// Both gathers are lists of lookups, each a tuple of indices that names one slab of the operand:
//   gather:    y[o, i, :] = x[o, indices[i], :]                 lookups (o, i), tuples of one, the same list for each o
//   gather_nd: y[b, i, :] = x[b, indices[b, i, 0], …, :]        lookups (b, i), a list for each b
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

struct GatherPlan {
  int64_t lookups;
  int64_t per_batch;     // lookups with one place in the operand
  int64_t batch_stride;  // elements of the operand from one place to the next
  int64_t period;        // lookups after which the tuples begin anew
  int64_t depth;
  int64_t sizes[max_rank];  // of the axes that are indexed
  int64_t strides[max_rank];
  int64_t slab_bytes;
  int64_t element_bytes;
  int32_t index_bytes;
  int64_t per_tile;
};

int64_t product_of_axes(const TensorDesc& desc, int first, int last) {
  int64_t out = 1;
  for (int axis = first; axis < last; ++axis) out *= desc.sizes[static_cast<std::size_t>(axis)];
  return out;
}

Plan plan_gather(const PlanRequest& request, const Target&) {
  const TensorDesc& x = request.inputs[0];
  const TensorDesc& indices = request.inputs[1];
  const Attributes& attributes = request.desc.attributes();
  const bool tuples = request.desc.anchor_part().op->name == "gather_nd";
  const auto first = static_cast<int>(attributes.get<int64_t>(tuples ? "batch_dims" : "axis"));
  GatherPlan plan{};
  plan.depth = tuples ? indices.sizes[static_cast<std::size_t>(indices.rank - 1)] : 1;
  const int last = first + static_cast<int>(plan.depth);
  const int64_t batches = product_of_axes(x, 0, first);
  plan.per_batch =
      tuples ? product_of_axes(indices, first, indices.rank - 1) : product_of_axes(indices, 0, indices.rank);
  plan.lookups = batches * plan.per_batch;
  if (request.outputs[0].empty()) plan.lookups = 0;
  plan.period = std::max<int64_t>(1, tuples ? batches * plan.per_batch : plan.per_batch);
  plan.batch_stride = product_of_axes(x, first, x.rank);
  for (int axis = first; axis < last; ++axis) {
    plan.sizes[axis - first] = x.sizes[static_cast<std::size_t>(axis)];
    plan.strides[axis - first] = product_of_axes(x, axis + 1, x.rank);
  }
  plan.element_bytes = static_cast<int64_t>(size_bytes(x.dtype));
  plan.slab_bytes = product_of_axes(x, last, x.rank) * plan.element_bytes;
  plan.index_bytes = static_cast<int32_t>(size_bytes(indices.dtype));
  plan.per_tile = std::max<int64_t>(1, 32768 / std::max<int64_t>(8, plan.slab_bytes));
  return Plan::of(plan);
}

int64_t gather_index(const GatherPlan& p, const std::byte* indices, int64_t i) {
  if (p.index_bytes == 8) return reinterpret_cast<const int64_t*>(indices)[i];
  return reinterpret_cast<const int32_t*>(indices)[i];
}

Fault run_gather(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  const GatherPlan& p = plan.head<GatherPlan>();
  const int64_t end = std::min(p.lookups, (tile + 1) * p.per_tile);
  for (int64_t lookup = tile * p.per_tile; lookup < end; ++lookup) {
    int64_t from = lookup / p.per_batch * p.batch_stride;
    for (int64_t i = 0; i < p.depth; ++i) {
      int64_t index = gather_index(p, pointers.inputs[1], lookup % p.period * p.depth + i);
      if (index < 0) index += p.sizes[i];
      if (index < 0 || index >= p.sizes[i]) return "an index lies outside its axis";
      from += index * p.strides[i];
    }
    const std::byte* slab = pointers.inputs[0] + from * p.element_bytes;
    std::byte* to = pointers.outputs[0] + lookup * p.slab_bytes;
    std::memcpy(to, slab, static_cast<std::size_t>(p.slab_bytes));
  }
  return nullptr;
}

struct RangePlan {
  int64_t start;
  int64_t step;
  int64_t count;
  int64_t stride;
};

Plan plan_range(const PlanRequest& request, const Target&) {
  const Attributes& attributes = request.desc.attributes();
  const TensorDesc& y = request.outputs[0];
  return Plan::of(
      RangePlan{attributes.get<Dim>("start").value(), attributes.get<int64_t>("step"), y.sizes[0], y.strides[0]});
}

// Wraps where int64 ends, as the definition does.
Fault run_range(const Plan& plan, const Pointers& pointers, int, int64_t, std::byte*) {
  const auto& p = plan.head<RangePlan>();
  auto* y = reinterpret_cast<int64_t*>(pointers.outputs[0]);
  auto value = static_cast<uint64_t>(p.start);
  for (int64_t i = 0; i < p.count; ++i, value += static_cast<uint64_t>(p.step))
    y[i * p.stride] = static_cast<int64_t>(value);
  return nullptr;
}

}  // namespace

void add_gather_rows(const ClusterKernels&, RowList& rows) {
  for (const std::string_view op : {"gather", "gather_nd"}) {
    Row row;
    row.name = "slab_lookup";
    row.op = op;
    row.doc = "copies the slab that each index or tuple names";
    row.accepts = [](const StepDesc& desc, const Target&) { return needs_plain(desc); };
    row.cost = [](const StepDesc& desc, const Target&) { return moving_seconds(desc); };
    row.plan = plan_gather;
    row.tiles = [](const Plan& plan, int) {
      return ceil_div(plan.head<GatherPlan>().lookups, plan.head<GatherPlan>().per_tile);
    };
    row.run = run_gather;
    rows.push_back(row);
  }
  Row row;
  row.name = "count_up";
  row.op = "range";
  row.doc = "adds the step, again and again";
  row.takes = Density::strided;
  row.accepts = [](const StepDesc& desc, const Target&) { return needs_unfused(desc); };
  row.cost = [](const StepDesc& desc, const Target&) { return moving_seconds(desc); };
  row.plan = plan_range;
  row.tiles = [](const Plan&, int) -> int64_t { return 1; };
  row.run = run_range;
  rows.push_back(row);
}

}  // namespace polyphase::cpu

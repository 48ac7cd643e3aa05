// The row of gather_elements: y[i, j] = x[i, indices[i, j]], one lookup per element, in any dtype and of any strides.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

struct LookupPlan {
  int32_t rank;  // at least 1
  int32_t x;     // which of the step's operands
  int32_t indices;
  DType index_dtype;
  int64_t element_bytes;
  int64_t axis_size;
  int64_t axis_stride;
  int64_t sizes[max_rank];
  int64_t from[max_rank];  // of x, 0 along the axis
  int64_t at[max_rank];    // of the indices
  int64_t to[max_rank];
  int64_t rows;
  int64_t rows_per_tile;
};

std::string accepts_lookup(const StepDesc& desc, const Target&) { return needs_unfused(desc); }

double cost_lookup(const StepDesc& desc, const Target&) { return moving_seconds(desc) + result_elements(desc) * 2e-9; }

Plan plan_lookup(const PlanRequest& request, const Target&) {
  LookupPlan plan{};
  plan.x = request.desc.anchor_operand(0);
  plan.indices = request.desc.anchor_operand(1);
  const TensorDesc& x = request.inputs[static_cast<std::size_t>(plan.x)];
  const TensorDesc& indices = request.inputs[static_cast<std::size_t>(plan.indices)];
  const TensorDesc& y = request.outputs[0];
  const auto axis = static_cast<std::size_t>(request.desc.attributes().get<int64_t>("axis"));
  plan.rank = y.rank;
  plan.index_dtype = indices.dtype;
  plan.element_bytes = static_cast<int64_t>(size_bytes(x.dtype));
  plan.axis_size = x.sizes[axis];
  plan.axis_stride = x.strides[axis];
  plan.rows = y.empty() ? 0 : 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(y.rank); ++i) {
    plan.sizes[i] = y.sizes[i];
    plan.from[i] = i == axis ? 0 : x.strides[i];
    plan.at[i] = indices.strides[i];
    plan.to[i] = y.strides[i];
    if (i + 1 < static_cast<std::size_t>(y.rank)) plan.rows *= y.sizes[i];
  }
  plan.rows_per_tile = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, plan.sizes[y.rank - 1]));
  return Plan::of(plan);
}

int64_t lookup_tiles(const Plan& plan, int) {
  return ceil_div(plan.head<LookupPlan>().rows, plan.head<LookupPlan>().rows_per_tile);
}

template <class Element, class Index>
Fault look_up_row(const LookupPlan& p, const std::byte* x, const std::byte* indices, std::byte* y) {
  const int last = p.rank - 1;
  const auto* from = reinterpret_cast<const Element*>(x);
  const auto* at = reinterpret_cast<const Index*>(indices);
  auto* to = reinterpret_cast<Element*>(y);
  const int64_t size = p.axis_size;
  for (int64_t i = 0; i < p.sizes[last]; ++i) {
    int64_t index = *at;
    if (index < 0) index += size;
    if (index < 0 || index >= size) return "an index lies outside its axis";
    *to = from[index * p.axis_stride];
    from += p.from[last];
    at += p.at[last];
    to += p.to[last];
  }
  return nullptr;
}

using LookupFunction = Fault (*)(const LookupPlan&, const std::byte*, const std::byte*, std::byte*);

template <class Index>
LookupFunction lookup_of(int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return look_up_row<uint8_t, Index>;
    case 2:
      return look_up_row<uint16_t, Index>;
    case 4:
      return look_up_row<uint32_t, Index>;
    default:
      return look_up_row<uint64_t, Index>;
  }
}

Fault run_lookup(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  const LookupPlan& p = plan.head<LookupPlan>();
  const bool is_wide = p.index_dtype == DType::i64;
  const int64_t index_bytes = is_wide ? 8 : 4;
  const LookupFunction look_up = is_wide ? lookup_of<int64_t>(p.element_bytes) : lookup_of<int32_t>(p.element_bytes);
  const int64_t end = std::min(p.rows, (tile + 1) * p.rows_per_tile);
  for (int64_t row = tile * p.rows_per_tile; row < end; ++row) {
    int64_t from = 0;
    int64_t at = 0;
    int64_t to = 0;
    int64_t rest = row;
    for (int axis = p.rank - 2; axis >= 0; --axis) {
      const int64_t i = rest % p.sizes[axis];
      rest /= p.sizes[axis];
      from += i * p.from[axis];
      at += i * p.at[axis];
      to += i * p.to[axis];
    }
    const Fault fault =
        look_up(p, pointers.inputs[p.x] + from * p.element_bytes, pointers.inputs[p.indices] + at * index_bytes,
                pointers.outputs[0] + to * p.element_bytes);
    if (fault != nullptr) return fault;
  }
  return nullptr;
}

}  // namespace

void add_lookup_rows(const ClusterKernels&, RowList& rows) {
  Row row;
  row.name = "element_lookup";
  row.op = "gather_elements";
  row.doc = "one lookup per element, any dtype and strides";
  row.takes = Density::strided;
  row.accepts = accepts_lookup;
  row.cost = cost_lookup;
  row.plan = plan_lookup;
  row.tiles = lookup_tiles;
  row.run = run_lookup;
  rows.push_back(row);
}

}  // namespace polyphase::cpu

// The row of cum_max and cum_min: the best element so far, column by column.
#include <algorithm>

#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/rows/is_nan.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

constexpr int64_t extreme_columns = 64;

// A tile is one outer index and up to 64 columns of inner.
struct ExtremesPlan {
  DType dtype;
  bool maximum;
  AroundAxis x;
};

std::string accepts_extremes(const StepDesc& desc, const Target&) {
  const DType dtype = desc.inputs[0].type.dtype;
  if (dtype == DType::boolean || (is_float(dtype) && size_bytes(dtype) < 4))
    return "takes f32, f64 and integers, found " + std::string(name_of(dtype));
  return needs_plain(desc);
}

Plan plan_extremes(const PlanRequest& request, const Target&) {
  const TensorDesc& x = request.inputs[0];
  const auto axis = static_cast<std::size_t>(request.desc.attributes().get<int64_t>("axis"));
  ExtremesPlan plan{};
  plan.dtype = x.dtype;
  plan.maximum = request.desc.anchor_part().op->name == "cum_max";
  plan.x = around_axis(x, axis);
  return Plan::of(plan);
}

// Of equals the last, and a NaN of all.
template <bool maximum, typename T>
void walk(const ExtremesPlan& p, const T* __restrict x, T* __restrict values, int64_t* __restrict places,
          int64_t columns) {
  T best[extreme_columns];
  int64_t place[extreme_columns] = {};
  std::copy_n(x, columns, best);
  for (int64_t i = 0; i < p.x.count; ++i) {
    const int64_t row = i * p.x.inner;
    for (int64_t j = 0; j < columns; ++j) {
      const T next = x[row + j];
      const bool better = maximum ? next >= best[j] : next <= best[j];
      const bool takes_over = is_nan(next) || (better && !is_nan(best[j]));
      best[j] = takes_over ? next : best[j];
      place[j] = takes_over ? i : place[j];
      values[row + j] = best[j];
      places[row + j] = place[j];
    }
  }
}

template <typename T>
void run_extreme_columns(const ExtremesPlan& p, const Pointers& pointers, int64_t tile) {
  const int64_t blocks = ceil_div(p.x.inner, extreme_columns);
  const int64_t column = tile % blocks * extreme_columns;
  const int64_t at = tile / blocks * p.x.count * p.x.inner + column;
  const int64_t columns = std::min(extreme_columns, p.x.inner - column);
  const T* x = reinterpret_cast<const T*>(pointers.inputs[0]) + at;
  T* values = reinterpret_cast<T*>(pointers.outputs[0]) + at;
  auto* places = reinterpret_cast<int64_t*>(pointers.outputs[1]) + at;
  if (p.maximum) {
    walk<true>(p, x, values, places, columns);
  } else {
    walk<false>(p, x, values, places, columns);
  }
}

Fault run_extremes(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  const ExtremesPlan& p = plan.head<ExtremesPlan>();
  if (p.dtype == DType::f32) run_extreme_columns<float>(p, pointers, tile);
  if (p.dtype == DType::f64) run_extreme_columns<double>(p, pointers, tile);
  if (p.dtype == DType::i8 || p.dtype == DType::i4) run_extreme_columns<int8_t>(p, pointers, tile);
  if (p.dtype == DType::i16) run_extreme_columns<int16_t>(p, pointers, tile);
  if (p.dtype == DType::i32) run_extreme_columns<int32_t>(p, pointers, tile);
  if (p.dtype == DType::i64) run_extreme_columns<int64_t>(p, pointers, tile);
  if (p.dtype == DType::u8 || p.dtype == DType::u4) run_extreme_columns<uint8_t>(p, pointers, tile);
  if (p.dtype == DType::u16) run_extreme_columns<uint16_t>(p, pointers, tile);
  if (p.dtype == DType::u32) run_extreme_columns<uint32_t>(p, pointers, tile);
  if (p.dtype == DType::u64) run_extreme_columns<uint64_t>(p, pointers, tile);
  return nullptr;
}

}  // namespace

void add_running_extreme_rows(const ClusterKernels&, RowList& rows) {
  for (const std::string_view op : {"cum_max", "cum_min"}) {
    Row row;
    row.name = "running_extremes";
    row.op = op;
    row.doc = "walks the axis once, 64 columns at a time, with the best value and its place in hand";
    row.accepts = accepts_extremes;
    row.cost = [](const StepDesc& desc, const Target&) { return moving_seconds(desc) + result_elements(desc) * 1e-9; };
    row.plan = plan_extremes;
    row.tiles = [](const Plan& plan, int) {
      return plan.head<ExtremesPlan>().x.outer * ceil_div(plan.head<ExtremesPlan>().x.inner, extreme_columns);
    };
    row.run = run_extremes;
    rows.push_back(row);
  }
}

}  // namespace polyphase::cpu

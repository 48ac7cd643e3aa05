// Rows of cum_sum, cum_prod, cum_log_sum_exp and trilu: along an axis, and triangles of matrices.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

constexpr int64_t sum_columns = 64;

// ---------------------------------------------------------------- cum_sum, cum_prod, cum_log_sum_exp

enum class Fold : int8_t { sum, product, log_sum_exp };

// A tile is one outer index and up to 64 columns of inner. Sums of f32 are kept in f64.
struct SumsPlan {
  DType dtype;
  Fold fold;
  bool exclusive;
  bool reverse;
  AroundAxis x;
};

std::string accepts_sums(const StepDesc& desc, const Target&) {
  const DType dtype = desc.inputs[0].type.dtype;
  if (dtype != DType::f32 && dtype != DType::f64 && dtype != DType::i32 && dtype != DType::i64)
    return "takes f32, f64, i32 and i64, found " + std::string(name_of(dtype));
  return needs_plain(desc);
}

double cost_of_sums(const StepDesc& desc, const Target&) {
  const double seconds = desc.anchor_part().op->name == "cum_log_sum_exp" ? 25e-9 : 1e-9;
  return moving_seconds(desc) + result_elements(desc) * seconds;
}

Plan plan_sums(const PlanRequest& request, const Target&) {
  const TensorDesc& x = request.inputs[0];
  const Attributes& attributes = request.desc.attributes();
  const int64_t given = attributes.get<Dim>("axis").value();
  const auto axis = static_cast<std::size_t>(given < 0 ? given + x.rank : given);
  SumsPlan plan{};
  plan.dtype = x.dtype;
  const std::string& op = request.desc.anchor_part().op->name;
  plan.fold = op == "cum_sum" ? Fold::sum : op == "cum_prod" ? Fold::product : Fold::log_sum_exp;
  plan.exclusive = attributes.get<bool>("exclusive");
  plan.reverse = attributes.get<bool>("reverse");
  plan.x = around_axis(x, axis);
  return Plan::of(plan);
}

// log(exp(a) + exp(b)); of two infinities of one sign that one.
double log_add_exp(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  const double high = std::max(a, b);
  return std::isinf(high) ? high : high + std::log1p(std::exp(std::min(a, b) - high));
}

template <Fold fold, typename Sum>
inline Sum joined(Sum before, Sum more) {
  if constexpr (fold == Fold::log_sum_exp) return log_add_exp(before, more);
  return fold == Fold::product ? before * more : before + more;
}

template <Fold fold, typename Sum>
Sum nothing() {
  if constexpr (fold == Fold::log_sum_exp) return -INFINITY;
  return fold == Fold::product ? Sum{1} : Sum{0};
}

// A row of known length is one that compilers vectorise.
template <Fold fold, bool exclusive, typename T, typename Sum>
inline void add_row(const T* __restrict x, T* __restrict y, Sum* __restrict sums, int64_t columns) {
  for (int64_t j = 0; j < columns; ++j) {
    const Sum after = joined<fold>(sums[j], static_cast<Sum>(x[j]));
    y[j] = static_cast<T>(exclusive ? sums[j] : after);
    sums[j] = after;
  }
}

template <Fold fold, bool exclusive, typename T, typename Sum>
void accumulate(const SumsPlan& p, const T* __restrict x, T* __restrict y, int64_t columns) {
  Sum sums[sum_columns];
  std::fill_n(sums, columns, nothing<fold, Sum>());
  for (int64_t i = 0; i < p.x.count; ++i) {
    const int64_t row = (p.reverse ? p.x.count - 1 - i : i) * p.x.inner;
    if (columns == sum_columns) {
      add_row<fold, exclusive>(x + row, y + row, sums, sum_columns);
    } else {
      add_row<fold, exclusive>(x + row, y + row, sums, columns);
    }
  }
}

template <Fold fold, typename T, typename Sum>
void run_sum_columns(const SumsPlan& p, const Pointers& pointers, int64_t tile) {
  const int64_t blocks = ceil_div(p.x.inner, sum_columns);
  const int64_t column = tile % blocks * sum_columns;
  const int64_t at = tile / blocks * p.x.count * p.x.inner + column;
  const int64_t columns = std::min(sum_columns, p.x.inner - column);
  const T* x = reinterpret_cast<const T*>(pointers.inputs[0]) + at;
  T* y = reinterpret_cast<T*>(pointers.outputs[0]) + at;
  if (p.exclusive) {
    accumulate<fold, true, T, Sum>(p, x, y, columns);
  } else {
    accumulate<fold, false, T, Sum>(p, x, y, columns);
  }
}

template <Fold fold>
void run_fold(const SumsPlan& p, const Pointers& pointers, int64_t tile) {
  if (p.dtype == DType::f32) run_sum_columns<fold, float, double>(p, pointers, tile);
  if (p.dtype == DType::f64) run_sum_columns<fold, double, double>(p, pointers, tile);
  if constexpr (fold != Fold::log_sum_exp) {
    if (p.dtype == DType::i32) run_sum_columns<fold, uint32_t, uint32_t>(p, pointers, tile);
    if (p.dtype == DType::i64) run_sum_columns<fold, uint64_t, uint64_t>(p, pointers, tile);
  }
}

Fault run_sums(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  const SumsPlan& p = plan.head<SumsPlan>();
  switch (p.fold) {
    case Fold::sum:
      run_fold<Fold::sum>(p, pointers, tile);
      break;
    case Fold::product:
      run_fold<Fold::product>(p, pointers, tile);
      break;
    case Fold::log_sum_exp:
      run_fold<Fold::log_sum_exp>(p, pointers, tile);
      break;
  }
  return nullptr;
}

// ---------------------------------------------------------------- trilu

struct TrianglePlan {
  bool upper;
  int64_t k;
  int64_t rows;  // of a matrix
  int64_t columns;
  int64_t all_rows;
  int64_t element_bytes;
  int64_t rows_per_tile;
};

Plan plan_triangle(const PlanRequest& request, const Target&) {
  const TensorDesc& x = request.inputs[0];
  TrianglePlan plan{};
  plan.upper = request.desc.attributes().get<bool>("upper");
  plan.rows = x.sizes[static_cast<std::size_t>(x.rank - 2)];
  plan.columns = x.sizes[static_cast<std::size_t>(x.rank - 1)];
  plan.k = std::clamp(request.desc.attributes().get<Dim>("k").value(), -plan.rows - 1, plan.columns + 1);
  plan.all_rows = x.empty() ? 0 : x.element_count() / plan.columns;
  plan.element_bytes = static_cast<int64_t>(size_bytes(x.dtype));
  plan.rows_per_tile = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, plan.columns));
  return Plan::of(plan);
}

Fault run_triangle(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  const TrianglePlan& p = plan.head<TrianglePlan>();
  const int64_t end = std::min(p.all_rows, (tile + 1) * p.rows_per_tile);
  const int64_t row_bytes = p.columns * p.element_bytes;
  for (int64_t row = tile * p.rows_per_tile; row < end; ++row) {
    const int64_t column = std::clamp<int64_t>(row % p.rows + p.k + (p.upper ? 0 : 1), 0, p.columns);
    const int64_t split = column * p.element_bytes;
    const std::byte* from = pointers.inputs[0] + row * row_bytes;
    std::byte* to = pointers.outputs[0] + row * row_bytes;
    const int64_t kept = p.upper ? split : 0;
    const int64_t zeroed = p.upper ? 0 : split;
    std::memcpy(to + kept, from + kept, static_cast<std::size_t>(p.upper ? row_bytes - split : split));
    std::memset(to + zeroed, 0, static_cast<std::size_t>(p.upper ? split : row_bytes - split));
  }
  return nullptr;
}

}  // namespace

void add_running_sum_rows(const ClusterKernels&, RowList& rows) {
  for (const std::string_view op : {"cum_sum", "cum_prod", "cum_log_sum_exp"}) {
    Row row;
    row.name = "running_columns";
    row.op = op;
    row.doc = "walks the axis once, 64 columns at a time; f32 is summed in f64";
    row.accepts = accepts_sums;
    row.cost = cost_of_sums;
    row.plan = plan_sums;
    row.tiles = [](const Plan& plan, int) {
      return plan.head<SumsPlan>().x.outer * ceil_div(plan.head<SumsPlan>().x.inner, sum_columns);
    };
    row.run = run_sums;
    rows.push_back(row);
  }
  Row row;
  row.name = "row_pieces";
  row.op = "trilu";
  row.doc = "copies one piece of each row and clears the other";
  row.accepts = [](const StepDesc& desc, const Target&) { return needs_plain(desc); };
  row.cost = [](const StepDesc& desc, const Target&) { return moving_seconds(desc); };
  row.plan = plan_triangle;
  row.tiles = [](const Plan& plan, int) {
    return ceil_div(plan.head<TrianglePlan>().all_rows, plan.head<TrianglePlan>().rows_per_tile);
  };
  row.run = run_triangle;
  rows.push_back(row);
}

}  // namespace polyphase::cpu

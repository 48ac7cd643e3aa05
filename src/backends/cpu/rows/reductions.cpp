// Rows of the reduce_ family, arg_max and arg_min: in FP32 with lanes of its own, in any dtype by runs of numbers.
#include <algorithm>
#include <limits>

#include "backends/cpu/kernels/reduce.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

struct ReduceWord {
  std::string_view op;
  ReduceKind kind;
};

constexpr ReduceWord reduce_words[] = {
    {"reduce_l1", ReduceKind::l1},           {"reduce_l2", ReduceKind::l2},
    {"reduce_log_sum", ReduceKind::log_sum}, {"reduce_log_sum_exp", ReduceKind::log_sum_exp},
    {"reduce_max", ReduceKind::max},         {"reduce_mean", ReduceKind::mean},
    {"reduce_min", ReduceKind::min},         {"reduce_prod", ReduceKind::prod},
    {"reduce_sum", ReduceKind::sum},         {"reduce_sum_square", ReduceKind::sum_square},
    {"arg_max", ReduceKind::arg_max},        {"arg_min", ReduceKind::arg_min},
};

std::string accepts_reduce(const StepDesc& desc, const Target&) {
  if (std::string refusal = needs_f32(desc); !refusal.empty()) return refusal;
  return needs_unfused(desc);
}

ReduceKind kind_of(const StepDesc& desc) {
  for (const ReduceWord& word : reduce_words) {
    if (word.op == desc.anchor_part().op->name) return word.kind;
  }
  return ReduceKind::sum;
}

bool gives_places(ReduceKind kind) { return kind == ReduceKind::arg_max || kind == ReduceKind::arg_min; }

std::string accepts_number_reduce(const StepDesc& desc, const Target&) {
  const ReduceKind kind = kind_of(desc);
  if (!gives_places(kind)) {
    if (std::string refusal = needs_wide(desc); !refusal.empty()) return refusal;
  }
  const bool real = kind == ReduceKind::l2 || kind == ReduceKind::log_sum || kind == ReduceKind::log_sum_exp;
  if (real && !is_float(desc.data().type.dtype)) return "roots and logarithms of floats only";
  return needs_unfused(desc);
}

double cost_number_reduce(const StepDesc& desc, const Target&) { return moving_seconds(desc) * 8; }

// What the extreme, the sum or the product of no integers is.
int64_t integer_start(ReduceKind kind, DType dtype) {
  if (kind == ReduceKind::prod) return 1;
  if (kind != ReduceKind::max && kind != ReduceKind::min) return 0;
  if (dtype == DType::boolean) return kind == ReduceKind::min ? 1 : 0;
  std::byte element[8] = {};
  const double beyond = std::numeric_limits<double>::infinity();
  store_double(element, dtype, kind == ReduceKind::min ? beyond : -beyond);
  return load_integer(element, dtype);
}

double cost_reduce(const StepDesc& desc, const Target&) { return moving_seconds(desc) * 2; }

struct ReducedAxis {
  int64_t size;
  int64_t from;
  int64_t to;
};

// Largest strides first; axes that continue each other become one.
std::vector<ReducedAxis> merged(std::vector<ReducedAxis> axes) {
  std::stable_sort(axes.begin(), axes.end(),
                   [](const ReducedAxis& a, const ReducedAxis& b) { return a.from > b.from; });
  std::vector<ReducedAxis> out;
  for (const ReducedAxis& axis : axes) {
    if (!out.empty() && out.back().from == axis.from * axis.size && out.back().to == axis.to * axis.size) {
      out.back() = {out.back().size * axis.size, axis.from, axis.to};
    } else {
      out.push_back(axis);
    }
  }
  if (out.empty()) out.push_back({1, 1, 1});
  return out;
}

Plan plan_reduce(const PlanRequest& request, const Target&) {
  const TensorDesc& x = request.inputs[0];
  const TensorDesc& y = request.outputs[0];
  const Attributes& attributes = request.desc.attributes();
  ReducePlan plan{};
  plan.kind = kind_of(request.desc);
  plan.dtype = x.dtype;
  const bool places = gives_places(plan.kind);
  const auto reduced =
      places ? std::vector<int64_t>{attributes.get<int64_t>("axis")} : attributes.get<std::vector<int64_t>>("axes");
  plan.last = places && attributes.get<bool>("last") ? 1 : 0;
  plan.integer_start = is_float(x.dtype) ? 0 : integer_start(plan.kind, x.dtype);
  const bool keep = attributes.get<bool>("keep");
  std::vector<ReducedAxis> kept_axes;
  std::vector<ReducedAxis> reduced_axes;
  std::size_t result_axis = 0;
  plan.count = 1;
  for (int i = 0; i < x.rank; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (std::find(reduced.begin(), reduced.end(), i) != reduced.end()) {
      plan.count *= x.sizes[at];
      if (x.sizes[at] != 1) reduced_axes.push_back({x.sizes[at], x.strides[at], 0});
      if (keep) ++result_axis;
    } else {
      if (x.sizes[at] != 1) kept_axes.push_back({x.sizes[at], x.strides[at], y.strides[result_axis]});
      ++result_axis;
    }
  }
  kept_axes = merged(std::move(kept_axes));
  reduced_axes = merged(std::move(reduced_axes));
  plan.kept_rank = static_cast<int32_t>(kept_axes.size());
  plan.reduced_rank = static_cast<int32_t>(reduced_axes.size());
  int64_t outer = 1;
  for (std::size_t i = 0; i < kept_axes.size(); ++i) {
    plan.kept_sizes[i] = kept_axes[i].size;
    plan.from_kept[i] = kept_axes[i].from;
    plan.to_kept[i] = kept_axes[i].to;
    if (i + 1 < kept_axes.size()) outer *= kept_axes[i].size;
  }
  for (std::size_t i = 0; i < reduced_axes.size(); ++i) {
    plan.reduced_sizes[i] = reduced_axes[i].size;
    plan.from_reduced[i] = reduced_axes[i].from;
  }
  plan.blocks = ceil_div(kept_axes.back().size, reduce_block);
  plan.tiles = y.empty() ? 0 : outer * plan.blocks;
  return Plan::of(plan);
}

}  // namespace

void add_reduce_rows(const ClusterKernels& kernels, RowList& rows) {
  for (const ReduceWord& word : reduce_words) {
    Row row;
    row.name = "strided_reduce";
    row.op = word.op;
    row.doc = "walks the reduced axes with sums in f64; results side by side where those lie inside";
    row.takes = Density::strided;
    row.accepts = accepts_reduce;
    row.cost = cost_reduce;
    row.plan = plan_reduce;
    row.tiles = [](const Plan& plan, int) { return plan.head<ReducePlan>().tiles; };
    row.run = kernels.reduce;
    if (!gives_places(word.kind)) rows.push_back(row);
    row.name = "number_reduce";
    row.doc = "any dtype, by runs of numbers: FP64 sums, integers that wrap, the places of extremes";
    row.accepts = accepts_number_reduce;
    row.cost = cost_number_reduce;
    row.run = kernels.number_reduce;
    rows.push_back(row);
  }
}

}  // namespace polyphase::cpu

// The row of dft in FP32 and FP64.
#include <cmath>
#include <numbers>

#include "backends/cpu/kernels/fourier.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

std::string accepts_fourier(const StepDesc& desc, const Target&) {
  const DType dtype = desc.inputs[0].type.dtype;
  if (dtype != DType::f32 && dtype != DType::f64) return "computes f32 and f64";
  if (!desc.inputs[0].layout.is_row_major() || !desc.outputs[0].layout.is_row_major()) return "needs row-major tensors";
  return needs_unfused(desc);
}

double cost_fourier(const StepDesc& desc, const Target&) { return moving_seconds(desc) + result_elements(desc) * 4e-9; }

// Fours first, then a two, then the odd primes.
std::vector<int32_t> factors_of(int64_t length) {
  std::vector<int32_t> out;
  while (length % 4 == 0) {
    out.push_back(4);
    length /= 4;
  }
  for (int64_t prime = 2; prime * prime <= length; ++prime) {
    while (length % prime == 0) {
      out.push_back(static_cast<int32_t>(prime));
      length /= prime;
    }
  }
  if (length > 1) out.push_back(static_cast<int32_t>(length));
  return out;
}

Plan plan_fourier(const PlanRequest& request, const Target&) {
  const TensorDesc& x = request.inputs[0];
  const TensorDesc& y = request.outputs[0];
  const Attributes& given = request.desc.attributes();
  const auto axis = static_cast<std::size_t>(given.get<int64_t>("axis"));
  const auto last = static_cast<std::size_t>(x.rank - 1);
  FourierPlan head{};
  head.dtype = x.dtype;
  head.length = y.empty() ? 1 : integers_of({given.get<Dim>("length")})[0];
  head.inverse = given.get<bool>("inverse") ? 1 : 0;
  head.mirrored = head.inverse != 0 && given.get<bool>("onesided") ? 1 : 0;
  head.is_complex = x.sizes[last] == 2 ? 1 : 0;
  head.given = std::min(x.sizes[axis], head.mirrored != 0 ? head.length / 2 + 1 : head.length);
  head.bins = y.sizes[axis];
  head.inner = head.outer = 1;
  for (std::size_t i = 0; i < last; ++i) {
    if (i < axis) head.outer *= x.sizes[i];
    if (i > axis) head.inner *= x.sizes[i];
  }
  head.from_steps[2] = x.sizes[last];
  head.from_steps[1] = head.from_steps[2] * head.inner;
  head.from_steps[0] = head.from_steps[1] * x.sizes[axis];
  head.to_steps[2] = y.sizes[last];
  head.to_steps[1] = head.to_steps[2] * head.inner;
  head.to_steps[0] = head.to_steps[1] * y.sizes[axis];
  for (const int32_t factor : factors_of(head.length)) head.factors[head.factor_count++] = factor;
  head.tiles = y.empty() ? 0 : ceil_div(head.outer * head.inner, int64_t{fourier_lanes});
  std::vector<double> turns;
  turns.reserve(static_cast<std::size_t>(2 * head.length));
  for (int64_t i = 0; i < head.length; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(head.length);
    turns.push_back(std::cos(angle));
    turns.push_back(std::sin(angle));
  }
  Plan plan = Plan::of(head);
  const auto at = static_cast<int64_t>(plan.append(std::span<const double>(turns)));
  plan.head<FourierPlan>().turns_at = at;
  return plan;
}

}  // namespace

void add_fourier_rows(const ClusterKernels& kernels, RowList& rows) {
  Row row;
  row.name = "fourier_by_factors";
  row.op = "dft";
  row.doc = "divides the length by its factors, in FP64; lanes are signals";
  row.takes = Density::dense;
  row.accepts = accepts_fourier;
  row.cost = cost_fourier;
  row.plan = plan_fourier;
  row.workspace = [](const Plan& plan) {
    const auto length = plan.head<FourierPlan>().length;
    return Workspace{0, static_cast<std::size_t>(length) * 4 * sizeof(double) * fourier_lanes};
  };
  row.tiles = [](const Plan& plan, int) { return plan.head<FourierPlan>().tiles; };
  row.run = kernels.fourier;
  rows.push_back(row);
}

}  // namespace polyphase::cpu

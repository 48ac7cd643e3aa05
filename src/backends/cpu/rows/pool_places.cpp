// The row of max_pool_indices: where max_pool finds its elements.
#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

constexpr int64_t rows_at_once = 16;

struct PlaceAxis {
  int64_t in;
  int64_t out;
  int64_t taps;
  int64_t stride;
  int64_t dilation;
  int64_t pre;
};

// A tile is 16 rows of one plane of the result.
struct PlacePlan {
  PlaceAxis axes[3];  // leading ones trivial
  bool by_columns;
  int64_t planes;
  int64_t rows;  // of a plane of the result
};

std::string accepts_places(const StepDesc& desc, const Target&) {
  if (desc.inputs[0].type.dtype != DType::f32)
    return "computes in f32 only, found " + std::string(name_of(desc.inputs[0].type.dtype));
  return needs_plain(desc);
}

Plan plan_places(const PlanRequest& request, const Target&) {
  const Attributes& attributes = request.desc.attributes();
  const TensorDesc& x = request.inputs[0];
  const TensorDesc& y = request.outputs[0];
  const auto& kernel = attributes.get<std::vector<int64_t>>("kernel");
  const auto& stride = attributes.get<std::vector<int64_t>>("stride");
  const auto& dilation = attributes.get<std::vector<int64_t>>("dilation");
  const auto pre = integers_of(attributes.get<std::vector<Dim>>("pre"));
  PlacePlan plan{};
  std::fill(std::begin(plan.axes), std::end(plan.axes), PlaceAxis{1, 1, 1, 1, 1, 0});
  const std::size_t spatial = kernel.size();
  for (std::size_t i = 0; i < spatial; ++i)
    plan.axes[3 - spatial + i] = {x.sizes[i + 2], y.sizes[i + 2], kernel[i], stride[i], dilation[i], pre[i]};
  plan.by_columns = attributes.get<bool>("column_major");
  plan.planes = y.empty() ? 0 : y.sizes[0] * y.sizes[1];
  plan.rows = plan.axes[0].out * plan.axes[1].out;
  return Plan::of(plan);
}

// The taps [begin, end) that meet the operand, and where tap 0 lies.
struct Taps {
  int64_t origin;
  int64_t begin;
  int64_t end;
};

Taps taps_of(const PlaceAxis& axis, int64_t out) {
  const int64_t origin = out * axis.stride - axis.pre;
  const int64_t begin = origin >= 0 ? 0 : ceil_div(-origin, axis.dilation);
  const int64_t end = origin >= axis.in ? 0 : ceil_div(axis.in - origin, axis.dilation);
  return {origin, std::min(begin, axis.taps), std::min(end, axis.taps)};
}

// Of equals the first counts; NaN is greater than all. A window of padding alone gives 0.
int64_t find(const PlacePlan& p, const float* plane, const Taps& d, const Taps& h, const Taps& w) {
  int64_t best = -1;
  float held = 0;
  for (int64_t k = d.begin; k < d.end; ++k) {
    for (int64_t i = h.begin; i < h.end; ++i) {
      const int64_t line = (d.origin + k * p.axes[0].dilation) * p.axes[1].in + h.origin + i * p.axes[1].dilation;
      for (int64_t j = w.begin; j < w.end; ++j) {
        const int64_t place = line * p.axes[2].in + w.origin + j * p.axes[2].dilation;
        const float value = plane[place];
        if (best >= 0 && !(value > held) && !(std::isnan(value) && !std::isnan(held))) continue;
        best = place;
        held = value;
      }
    }
  }
  return std::max<int64_t>(best, 0);
}

int64_t column_major(const PlacePlan& p, int64_t place) {
  if (place == 0) return 0;  // also of an operand without elements
  const int64_t w = place % p.axes[2].in;
  const int64_t h = place / p.axes[2].in % p.axes[1].in;
  const int64_t d = place / p.axes[2].in / p.axes[1].in;
  return d + p.axes[0].in * (h + p.axes[1].in * w);
}

Fault run_places(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  const PlacePlan& p = plan.head<PlacePlan>();
  const int64_t blocks = ceil_div(p.rows, rows_at_once);
  const int64_t plane = tile / blocks;
  const int64_t first = tile % blocks * rows_at_once;
  const int64_t offset = plane * p.axes[0].in * p.axes[1].in * p.axes[2].in;
  const float* x = reinterpret_cast<const float*>(pointers.inputs[0]) + offset;
  auto* y = reinterpret_cast<int64_t*>(pointers.outputs[0]) + plane * p.rows * p.axes[2].out;
  for (int64_t row = first; row < std::min(p.rows, first + rows_at_once); ++row) {
    const Taps d = taps_of(p.axes[0], row / p.axes[1].out);
    const Taps h = taps_of(p.axes[1], row % p.axes[1].out);
    for (int64_t i = 0; i < p.axes[2].out; ++i) {
      const int64_t place = find(p, x, d, h, taps_of(p.axes[2], i));
      y[row * p.axes[2].out + i] = offset + (p.by_columns ? column_major(p, place) : place);
    }
  }
  return nullptr;
}

}  // namespace

void add_pool_place_rows(const ClusterKernels&, RowList& rows) {
  Row row;
  row.name = "window_search";
  row.op = "max_pool_indices";
  row.doc = "searches each window in order";
  row.accepts = accepts_places;
  row.cost = [](const StepDesc& desc, const Target&) { return moving_seconds(desc) + result_elements(desc) * 1e-8; };
  row.plan = plan_places;
  row.tiles = [](const Plan& plan, int) {
    return plan.head<PlacePlan>().planes * ceil_div(plan.head<PlacePlan>().rows, rows_at_once);
  };
  row.run = run_places;
  rows.push_back(row);
}

}  // namespace polyphase::cpu

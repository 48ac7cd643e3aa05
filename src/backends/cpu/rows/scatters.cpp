// Rows of scatter_elements and scatter_nd: a copy of x, then the updates.
//
//   phase 0   x → y by tiles of bytes
//   phase 1   elements: tiles of lines along the axis; no two lines meet an element of y
//             tuples:   tiles of columns of the slabs; each walks all tuples in order
//
// So an element's updates meet it in the order of the definition, whatever the number of threads.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/rows/is_nan.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

constexpr int64_t copy_bytes = 1 << 16;
constexpr int64_t lines_at_once = 64;
constexpr int64_t scatter_columns = 1024;

enum class Meeting : int32_t { replace, add, mul, max, min };

struct ScatterPlan {
  Meeting meeting;
  DType dtype;
  bool wide_indices;  // i64
  int64_t bytes;      // of x
  int64_t element_bytes;
  // Elements: lines of `length` indices; `sizes`: the indices' with the axis as 1. Tuples: `length` of `rank` indices.
  int64_t rank;
  int64_t length;
  int64_t lines;       // of elements, or columns of a slab
  int64_t index_step;  // from one index of a line to the next
  int64_t axis_size;
  int64_t axis_stride;
  int64_t sizes[max_rank];
  int64_t strides[max_rank];        // of x
  int64_t index_strides[max_rank];  // of the indices
};

template <Meeting meeting, typename T>
T met(T a, T b) {
  if constexpr (meeting == Meeting::add) return static_cast<T>(a + b);
  if constexpr (meeting == Meeting::mul) return static_cast<T>(a * b);
  if constexpr (meeting == Meeting::max) return b > a || is_nan(b) ? b : a;
  if constexpr (meeting == Meeting::min) return b < a || is_nan(b) ? b : a;
  return b;
}

// Integers are met as unsigned where they may wrap.
template <typename F>
Fault with_type(Meeting meeting, DType dtype, int64_t element_bytes, F&& f) {
  const auto ordered = [&]<typename T>(T type) {
    return meeting == Meeting::max ? f.template operator()<Meeting::max>(type)
                                   : f.template operator()<Meeting::min>(type);
  };
  const auto summed = [&]<typename T>(T type) {
    return meeting == Meeting::add ? f.template operator()<Meeting::add>(type)
                                   : f.template operator()<Meeting::mul>(type);
  };
  if (meeting == Meeting::replace) {
    if (element_bytes == 1) return f.template operator()<Meeting::replace>(uint8_t{});
    if (element_bytes == 2) return f.template operator()<Meeting::replace>(uint16_t{});
    if (element_bytes == 4) return f.template operator()<Meeting::replace>(uint32_t{});
    return f.template operator()<Meeting::replace>(uint64_t{});
  }
  const bool is_sum = meeting == Meeting::add || meeting == Meeting::mul;
  if (dtype == DType::f32) return is_sum ? summed(float{}) : ordered(float{});
  if (dtype == DType::f64) return is_sum ? summed(double{}) : ordered(double{});
  if (dtype == DType::i32) return is_sum ? summed(uint32_t{}) : ordered(int32_t{});
  return is_sum ? summed(uint64_t{}) : ordered(int64_t{});
}

std::string accepts_scatter(const StepDesc& desc, const Target&) {
  for (const OperandDesc& operand : desc.inputs) {
    if (operand.present && !operand.layout.is_row_major()) return "takes row-major operands only";
  }
  if (!desc.outputs[0].layout.is_row_major()) return "gives a row-major result only";
  const DType dtype = desc.outputs[0].type.dtype;
  const bool computes = dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i32 || dtype == DType::i64;
  if (!computes && desc.attributes().get<std::string>("reduction") != "none")
    return "reduces f32, f64, i32 and i64, found " + std::string(name_of(dtype));
  return needs_unfused(desc);
}

Meeting meeting_of(const Attributes& attributes) {
  constexpr std::string_view words[] = {"none", "add", "mul", "max", "min"};
  const auto* found = std::find(std::begin(words), std::end(words), attributes.get<std::string>("reduction"));
  return static_cast<Meeting>(found - std::begin(words));
}

int64_t product_of_sizes(const int64_t* first, const int64_t* last) {
  int64_t out = 1;
  for (; first != last; ++first) out *= *first;
  return out;
}

Plan plan_scatter(const PlanRequest& request, const Target&) {
  const TensorDesc& x = request.inputs[0];
  const TensorDesc& indices = request.inputs[1];
  ScatterPlan plan{};
  plan.meeting = meeting_of(request.desc.attributes());
  plan.dtype = x.dtype;
  plan.wide_indices = indices.dtype == DType::i64;
  plan.element_bytes = static_cast<int64_t>(size_bytes(x.dtype));
  plan.bytes = x.element_count() * plan.element_bytes;
  std::copy_n(x.strides.begin(), max_rank, plan.strides);
  std::copy_n(indices.strides.begin(), max_rank, plan.index_strides);
  if (request.desc.anchor_part().op->name == "scatter_nd") {
    plan.rank = indices.sizes[static_cast<std::size_t>(indices.rank - 1)];
    plan.length = indices.element_count() / plan.rank;
    plan.lines = product_of_sizes(x.sizes.data() + plan.rank, x.sizes.data() + x.rank);
    std::copy_n(x.sizes.begin(), max_rank, plan.sizes);
  } else {
    const auto axis = static_cast<std::size_t>(request.desc.attributes().get<int64_t>("axis"));
    plan.rank = x.rank;
    plan.length = indices.sizes[axis];
    std::copy_n(indices.sizes.begin(), max_rank, plan.sizes);
    plan.sizes[axis] = 1;
    plan.lines = product_of_sizes(plan.sizes, plan.sizes + plan.rank);
    plan.index_step = indices.strides[axis];
    plan.axis_size = x.sizes[axis];
    plan.axis_stride = x.strides[axis];
  }
  if (indices.empty() || plan.bytes == 0) plan.lines = 0;
  return Plan::of(plan);
}

int64_t scatter_index(const ScatterPlan& p, const std::byte* indices, int64_t i) {
  return p.wide_indices ? reinterpret_cast<const int64_t*>(indices)[i] : reinterpret_cast<const int32_t*>(indices)[i];
}

void copy_tile(const ScatterPlan& p, const Pointers& pointers, int64_t tile) {
  const int64_t begin = tile * copy_bytes;
  std::memcpy(pointers.outputs[0] + begin, pointers.inputs[0] + begin,
              static_cast<std::size_t>(std::min(copy_bytes, p.bytes - begin)));
}

constexpr Fault outside = "an index lies outside its axis";

// Lines [first, first + count), step by step along the axis, so that neighbouring lines share cache lines.
template <Meeting meeting, typename T>
Fault scatter_lines(const ScatterPlan& p, const Pointers& pointers, int64_t first, int64_t count) {
  int64_t from[lines_at_once];
  int64_t to[lines_at_once];
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = first + i;
    from[i] = 0;
    to[i] = 0;
    for (int64_t axis = p.rank - 1; axis >= 0; --axis) {
      from[i] += rest % p.sizes[axis] * p.index_strides[axis];
      to[i] += rest % p.sizes[axis] * p.strides[axis];
      rest /= p.sizes[axis];
    }
  }
  const T* updates = reinterpret_cast<const T*>(pointers.inputs[2]);
  T* y = reinterpret_cast<T*>(pointers.outputs[0]);
  for (int64_t step = 0; step < p.length; ++step) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = from[i] + step * p.index_step;
      int64_t index = scatter_index(p, pointers.inputs[1], at);
      if (index < 0) index += p.axis_size;
      if (index < 0 || index >= p.axis_size) return outside;
      T& element = y[to[i] + index * p.axis_stride];
      element = met<meeting>(element, updates[at]);
    }
  }
  return nullptr;
}

// Columns [first, first + count) of every slab.
template <Meeting meeting, typename T>
Fault scatter_slabs(const ScatterPlan& p, const Pointers& pointers, int64_t first, int64_t count) {
  for (int64_t tuple = 0; tuple < p.length; ++tuple) {
    int64_t to = first;
    for (int64_t i = 0; i < p.rank; ++i) {
      int64_t index = scatter_index(p, pointers.inputs[1], tuple * p.rank + i);
      if (index < 0) index += p.sizes[i];
      if (index < 0 || index >= p.sizes[i]) return outside;
      to += index * p.strides[i];
    }
    const T* from = reinterpret_cast<const T*>(pointers.inputs[2]) + tuple * p.lines + first;
    T* slab = reinterpret_cast<T*>(pointers.outputs[0]) + to;
    for (int64_t i = 0; i < count; ++i) slab[i] = met<meeting>(slab[i], from[i]);
  }
  return nullptr;
}

int64_t tiles_of_elements(const Plan& plan, int phase) {
  const ScatterPlan& p = plan.head<ScatterPlan>();
  return phase == 0 ? ceil_div(p.bytes, copy_bytes) : ceil_div(p.lines, lines_at_once);
}

int64_t tiles_of_tuples(const Plan& plan, int phase) {
  const ScatterPlan& p = plan.head<ScatterPlan>();
  return phase == 0 ? ceil_div(p.bytes, copy_bytes) : ceil_div(p.lines, scatter_columns);
}

Fault run_elements(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte*) {
  const ScatterPlan& p = plan.head<ScatterPlan>();
  if (phase == 0) {
    copy_tile(p, pointers, tile);
    return nullptr;
  }
  const int64_t first = tile * lines_at_once;
  return with_type(p.meeting, p.dtype, p.element_bytes, [&]<Meeting meeting, typename T>(T) {
    return scatter_lines<meeting, T>(p, pointers, first, std::min(lines_at_once, p.lines - first));
  });
}

Fault run_tuples(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte*) {
  const ScatterPlan& p = plan.head<ScatterPlan>();
  if (phase == 0) {
    copy_tile(p, pointers, tile);
    return nullptr;
  }
  const int64_t first = tile * scatter_columns;
  return with_type(p.meeting, p.dtype, p.element_bytes, [&]<Meeting meeting, typename T>(T) {
    return scatter_slabs<meeting, T>(p, pointers, first, std::min(scatter_columns, p.lines - first));
  });
}

}  // namespace

void add_scatter_rows(const ClusterKernels&, RowList& rows) {
  for (const bool tuples : {false, true}) {
    Row row;
    row.name = tuples ? "slab_scatter" : "element_scatter";
    row.op = tuples ? "scatter_nd" : "scatter_elements";
    row.doc = "copies x, then places the updates in the order of the definition";
    row.accepts = accepts_scatter;
    row.cost = [](const StepDesc& desc, const Target&) { return moving_seconds(desc); };
    row.plan = plan_scatter;
    row.phases = [](const Plan&) { return 2; };
    row.tiles = tuples ? tiles_of_tuples : tiles_of_elements;
    row.run = tuples ? run_tuples : run_elements;
    rows.push_back(row);
  }
}

}  // namespace polyphase::cpu

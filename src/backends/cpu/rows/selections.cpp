// Rows of top_k, count_nonzero, nonzero and one_hot: elements chosen by value, and marks by index.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/rows/row_list.h"
#include "ops/elements.h"

namespace polyphase::cpu {
namespace {

double cost_of_moving(const StepDesc& desc, const Target&) { return moving_seconds(desc); }

// ---------------------------------------------------------------- top_k

// Lines of `length` elements, `inner` apart. A candidate is one number: the key of its value above its index, so that
// the greatest candidates are the wanted ones, of equals those with the least index first.
struct TopPlan {
  DType dtype;
  bool largest;
  int64_t lines;
  int64_t length;
  int64_t inner;
  int64_t k;
  int64_t lines_per_tile;
};

uint32_t key_of(float x) {
  if (std::isnan(x)) return UINT32_MAX;
  const auto bits = std::bit_cast<uint32_t>(x + 0.0F);
  return (bits >> 31U) != 0 ? ~bits : bits | 0x80000000U;
}
uint32_t key_of(int32_t x) { return static_cast<uint32_t>(x) ^ 0x80000000U; }

// i32, and types whose numbers f32 holds exactly.
bool has_short_keys(DType dtype) {
  return dtype == DType::f32 || dtype == DType::i32 || (dtype != DType::boolean && size_bytes(dtype) <= 2);
}

std::string accepts_top(const StepDesc& desc, const Target&) {
  const DType dtype = desc.inputs[0].type.dtype;
  if (!has_short_keys(dtype)) return "orders numbers of up to 32 bits, found " + std::string(name_of(dtype));
  return needs_plain(desc);
}

double cost_top(const StepDesc& desc, const Target&) {
  const auto elements = desc.inputs[0].type.shape.element_count().constant().value_or(0);
  return moving_seconds(desc) + static_cast<double>(elements) * 2e-9;
}

Plan plan_top(const PlanRequest& request, const Target&) {
  const TensorDesc& x = request.inputs[0];
  const auto axis = static_cast<std::size_t>(request.desc.attributes().get<int64_t>("axis"));
  TopPlan plan{};
  plan.dtype = x.dtype;
  plan.largest = request.desc.attributes().get<bool>("largest");
  plan.length = x.sizes[axis];
  plan.k = request.outputs[0].sizes[axis];
  plan.inner = around_axis(x, axis).inner;
  plan.lines = request.outputs[0].empty() ? 0 : x.element_count() / plan.length;
  plan.lines_per_tile = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, plan.length));
  return Plan::of(plan);
}

uint64_t candidate(uint32_t key, bool largest, int64_t place) {
  return static_cast<uint64_t>(key ^ (largest ? 0 : UINT32_MAX)) << 32U | (UINT32_MAX - static_cast<uint64_t>(place));
}

template <typename T>
void make_candidates(const TopPlan& p, const std::byte* line, uint64_t* out) {
  const T* x = reinterpret_cast<const T*>(line);
  for (int64_t i = 0; i < p.length; ++i) out[i] = candidate(key_of(x[i * p.inner]), p.largest, i);
}

// Narrow types by way of f32.
void make_narrow_candidates(const TopPlan& p, const std::byte* line, int64_t element_bytes, uint64_t* out) {
  double numbers[block_elements];
  for (int64_t first = 0; first < p.length; first += block_elements) {
    const int64_t count = std::min(block_elements, p.length - first);
    read_block(line + first * p.inner * element_bytes, p.dtype, p.inner, count, numbers);
    for (int64_t i = 0; i < count; ++i)
      out[first + i] = candidate(key_of(static_cast<float>(numbers[i])), p.largest, first + i);
  }
}

// The k greatest candidates first, in falling order.
void order_candidates(const TopPlan& p, uint64_t* candidates) {
  if (p.k * 16 > p.length && p.k < p.length) {
    std::nth_element(candidates, candidates + p.k, candidates + p.length, std::greater<>());
    std::sort(candidates, candidates + p.k, std::greater<>());
  } else {
    std::partial_sort(candidates, candidates + p.k, candidates + p.length, std::greater<>());
  }
}

Fault run_top(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte* scratch) {
  const auto& p = plan.head<TopPlan>();
  const auto width = static_cast<int64_t>(size_bytes(p.dtype));
  if (p.length >= INT64_C(1) << 32) return "an axis has more elements than the kernel can order";
  const int64_t end = std::min(p.lines, (tile + 1) * p.lines_per_tile);
  for (int64_t line = tile * p.lines_per_tile; line < end; ++line) {
    const int64_t from = line / p.inner * p.inner * p.length + line % p.inner;
    const int64_t to = line / p.inner * p.inner * p.k + line % p.inner;
    const std::byte* x = pointers.inputs[0] + from * width;
    auto* candidates = reinterpret_cast<uint64_t*>(scratch);
    if (p.dtype == DType::f32) {
      make_candidates<float>(p, x, candidates);
    } else if (p.dtype == DType::i32) {
      make_candidates<int32_t>(p, x, candidates);
    } else {
      make_narrow_candidates(p, x, width, candidates);
    }
    order_candidates(p, candidates);
    auto* places = reinterpret_cast<int64_t*>(pointers.outputs[1]) + to;
    for (int64_t i = 0; i < p.k; ++i) {
      const auto place = static_cast<int64_t>(UINT32_MAX - (candidates[i] & UINT32_MAX));
      std::memcpy(pointers.outputs[0] + (to + i * p.inner) * width, x + place * p.inner * width,
                  static_cast<std::size_t>(width));
      places[i * p.inner] = place;
    }
  }
  return nullptr;
}

Row top_row() {
  Row row;
  row.name = "ordered_candidates";
  row.op = "top_k";
  row.doc = "one integer per candidate, its value's key above its index; then a partial sort";
  row.accepts = accepts_top;
  row.cost = cost_top;
  row.plan = plan_top;
  row.workspace = [](const Plan& plan) {
    return Workspace{0, static_cast<std::size_t>(plan.head<TopPlan>().length) * sizeof(uint64_t)};
  };
  row.tiles = [](const Plan& plan, int) {
    return ceil_div(plan.head<TopPlan>().lines, plan.head<TopPlan>().lines_per_tile);
  };
  row.run = run_top;
  return row;
}

// ---------------------------------------------------------------- count_nonzero, nonzero

// Both count per chunk first, into the shared memory; then the sum of the counts is the result, or tells each chunk
// where its columns begin.
struct NonzeroPlan {
  DType dtype;
  int64_t elements;
  int64_t chunks;
  int64_t rank;
  int64_t count;  // columns of the result
  int64_t sizes[max_rank];
};

constexpr int64_t chunk_elements = 1 << 14;

Plan plan_nonzero(const PlanRequest& request, const Target&) {
  const TensorDesc& x = request.inputs[0];
  NonzeroPlan plan{};
  plan.dtype = x.dtype;
  plan.elements = x.element_count();
  plan.chunks = ceil_div(plan.elements, chunk_elements);
  plan.rank = x.rank;
  plan.count = request.outputs[0].rank == 2 ? request.outputs[0].sizes[1] : 0;
  std::copy_n(x.sizes.begin(), max_rank, plan.sizes);
  return Plan::of(plan);
}

// f(i) for each element of the chunk that is not 0; both zeros of a float are.
template <typename F>
void visit(const NonzeroPlan& p, const std::byte* x, int64_t chunk, F&& f) {
  const int64_t begin = chunk * chunk_elements;
  const int64_t end = std::min(p.elements, begin + chunk_elements);
  const auto search = [&]<typename T>(T magnitude) {
    const T* elements = reinterpret_cast<const T*>(x);
    for (int64_t i = begin; i < end; ++i) {
      if ((elements[i] & magnitude) != 0) f(i);
    }
  };
  const bool magnitude_only = is_float(p.dtype);
  switch (size_bytes(p.dtype)) {
    case 1:
      return search(magnitude_only ? uint8_t{0x7F} : uint8_t{0xFF});
    case 2:
      return search(magnitude_only ? uint16_t{0x7FFF} : uint16_t{0xFFFF});
    case 4:
      return search(magnitude_only ? UINT32_MAX >> 1U : UINT32_MAX);
    default:
      return search(magnitude_only ? UINT64_MAX >> 1U : UINT64_MAX);
  }
}

void count_chunk(const NonzeroPlan& p, const Pointers& pointers, int64_t chunk) {
  int64_t count = 0;
  visit(p, pointers.inputs[0], chunk, [&](int64_t) { ++count; });
  reinterpret_cast<int64_t*>(pointers.shared)[chunk] = count;
}

Fault run_count(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte*) {
  const auto& p = plan.head<NonzeroPlan>();
  if (phase == 0) {
    count_chunk(p, pointers, tile);
    return nullptr;
  }
  const auto* counts = reinterpret_cast<const int64_t*>(pointers.shared);
  int64_t sum = 0;
  for (int64_t i = 0; i < p.chunks; ++i) sum += counts[i];
  *reinterpret_cast<int64_t*>(pointers.outputs[0]) = sum;
  return nullptr;
}

Fault run_nonzero(const Plan& plan, const Pointers& pointers, int phase, int64_t tile, std::byte*) {
  const auto& p = plan.head<NonzeroPlan>();
  if (phase == 0) {
    count_chunk(p, pointers, tile);
    return nullptr;
  }
  const auto* counts = reinterpret_cast<const int64_t*>(pointers.shared);
  int64_t column = 0;
  int64_t total = 0;
  for (int64_t i = 0; i < p.chunks; ++i) {
    if (i < tile) column += counts[i];
    total += counts[i];
  }
  if (total != p.count) return "the number of elements that are not 0 is not the attribute's count";
  auto* y = reinterpret_cast<int64_t*>(pointers.outputs[0]);
  visit(p, pointers.inputs[0], tile, [&](int64_t element) {
    for (int64_t axis = p.rank - 1; axis >= 0; --axis) {
      y[axis * p.count + column] = element % p.sizes[axis];
      element /= p.sizes[axis];
    }
    ++column;
  });
  return nullptr;
}

Row nonzero_row(bool lists) {
  Row row;
  row.name = lists ? "list_by_chunks" : "count_by_chunks";
  row.op = lists ? "nonzero" : "count_nonzero";
  row.doc = "counts chunk by chunk; the counts before a chunk say where its part of the result begins";
  row.accepts = [](const StepDesc& desc, const Target&) { return needs_plain(desc); };
  row.cost = cost_of_moving;
  row.plan = plan_nonzero;
  row.workspace = [](const Plan& plan) {
    return Workspace{static_cast<std::size_t>(plan.head<NonzeroPlan>().chunks) * sizeof(int64_t), 0};
  };
  row.phases = [](const Plan&) { return 2; };
  row.tiles = [](const Plan& plan, int phase) {
    const auto& p = plan.head<NonzeroPlan>();
    return phase == 0 || p.count > 0 ? p.chunks : int64_t{0};
  };
  if (!lists) {
    row.tiles = [](const Plan& plan, int phase) { return phase == 0 ? plan.head<NonzeroPlan>().chunks : int64_t{1}; };
  }
  row.run = lists ? run_nonzero : run_count;
  return row;
}

// ---------------------------------------------------------------- one_hot

struct MarkPlan {
  AroundAxis y;
  int64_t element_bytes;
  bool wide_indices;
};

Plan plan_marks(const PlanRequest& request, const Target&) {
  const TensorDesc& y = request.outputs[0];
  const auto axis = static_cast<std::size_t>(request.desc.attributes().get<int64_t>("axis"));
  MarkPlan plan{};
  plan.y = around_axis(y, axis);
  plan.element_bytes = static_cast<int64_t>(size_bytes(y.dtype));
  plan.wide_indices = request.inputs[0].dtype == DType::i64;
  return Plan::of(plan);
}

int64_t marks_per_tile(const MarkPlan& p) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, p.y.count * p.y.inner));
}

template <typename T>
void mark(const MarkPlan& p, const Pointers& pointers, int64_t first, int64_t end) {
  const T* values = reinterpret_cast<const T*>(pointers.inputs[1]);
  for (int64_t outer = first; outer < end; ++outer) {
    T* block = reinterpret_cast<T*>(pointers.outputs[0]) + outer * p.y.count * p.y.inner;
    std::fill_n(block, p.y.count * p.y.inner, values[0]);
    for (int64_t i = 0; i < p.y.inner; ++i) {
      const int64_t at = outer * p.y.inner + i;
      int64_t index = p.wide_indices ? reinterpret_cast<const int64_t*>(pointers.inputs[0])[at]
                                     : reinterpret_cast<const int32_t*>(pointers.inputs[0])[at];
      if (index < 0) index += p.y.count;
      if (index >= 0 && index < p.y.count) block[index * p.y.inner + i] = values[1];
    }
  }
}

Fault run_marks(const Plan& plan, const Pointers& pointers, int, int64_t tile, std::byte*) {
  const auto& p = plan.head<MarkPlan>();
  const int64_t first = tile * marks_per_tile(p);
  const int64_t end = std::min(p.y.outer, first + marks_per_tile(p));
  if (p.element_bytes == 1) mark<uint8_t>(p, pointers, first, end);
  if (p.element_bytes == 2) mark<uint16_t>(p, pointers, first, end);
  if (p.element_bytes == 4) mark<uint32_t>(p, pointers, first, end);
  if (p.element_bytes == 8) mark<uint64_t>(p, pointers, first, end);
  return nullptr;
}

Row mark_row() {
  Row row;
  row.name = "fill_and_mark";
  row.op = "one_hot";
  row.doc = "fills with `off`, then sets one element per index";
  row.accepts = [](const StepDesc& desc, const Target&) { return needs_plain(desc); };
  row.cost = cost_of_moving;
  row.plan = plan_marks;
  row.tiles = [](const Plan& plan, int) {
    const auto& p = plan.head<MarkPlan>();
    return ceil_div(p.y.outer, marks_per_tile(p));
  };
  row.run = run_marks;
  return row;
}

}  // namespace

void add_selection_rows(const ClusterKernels&, RowList& rows) {
  rows.push_back(top_row());
  rows.push_back(nonzero_row(false));
  rows.push_back(nonzero_row(true));
  rows.push_back(mark_row());
}

}  // namespace polyphase::cpu

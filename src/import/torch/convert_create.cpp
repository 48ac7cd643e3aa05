// Tensors out of nothing: constants, counts, triangles.
#include <cmath>

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;

// The dtype argument, else what the program declares.
DType dtype_created(AtenNode& node, DType otherwise) {
  return node.dtype("dtype").value_or(node.result_dtype().value_or(otherwise));
}

Result<Values> filled(AtenNode& node, Value* element, Sizes sizes) {
  Composer c(node);
  for (const Dim& size : sizes) {
    if (size.range().high < 0) return broken_program("a tensor has the size " + size.text() + ".");
  }
  return c.results({c.expand(element, std::move(sizes))});
}

template <int value>
Result<Values> convert_filled(AtenNode& node) {
  return filled(node, node.Emitter::scalar(dtype_created(node, DType::f32), value), node.sizes("size"));
}

template <int value>
Result<Values> convert_filled_like(AtenNode& node) {
  Value* const self = node.tensor("self");
  return filled(node, node.Emitter::scalar(dtype_created(node, self->type.dtype), value), self->type.shape.dims());
}

Result<Values> convert_full(AtenNode& node) {
  return filled(node, node.tensor_as("fill_value", dtype_created(node, DType::f32)), node.sizes("size"));
}

Result<Values> convert_full_like(AtenNode& node) {
  Value* const self = node.tensor("self");
  return filled(node, node.tensor_as("fill_value", dtype_created(node, self->type.dtype)), self->type.shape.dims());
}

Result<Values> convert_scalar_tensor(AtenNode& node) {
  return Values{node.tensor_as("s", dtype_created(node, DType::f32))};
}

// start, start + step, …, below end.
Result<Values> counted(AtenNode& node, bool has_start, bool has_step) {
  Composer c(node);
  using Kind = AtenScalar::Kind;
  const auto is_real = [&](const char* parameter) { return node.scalar(parameter).kind == Kind::real; };
  const bool real = is_real("end") || (has_start && is_real("start")) || (has_step && is_real("step"));
  const DType dtype = dtype_created(node, real ? DType::f32 : DType::i64);
  if (!real) {
    const Dim start = has_start ? node.size("start") : Dim(0);
    const std::int64_t step = has_step ? node.integer("step") : 1;
    if (step == 0) return broken_program("step must be nonzero");
    const Dim distance = step > 0 ? node.size("end") - start : start - node.size("end");
    const Dim count = max(ceil_div(distance, std::abs(step)), Dim(0));
    return c.results(
        {c.cast(c.op("range", {}, Attributes({{"start", start}, {"count", count}, {"step", step}})), dtype)});
  }
  constexpr double most = 1 << 20;
  const double start = has_start ? node.real("start") : 0;
  const double step = has_step ? node.real("step") : 1;
  const double count = std::ceil((node.real("end") - start) / step);
  TRY_VOID(node.finish());
  if (!(count <= most))
    return lacking("a range of floats with more than a million numbers.", "Count integers and multiply.");
  std::vector<double> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(start + step * i);
  const std::vector<std::int64_t> sizes{static_cast<std::int64_t>(numbers.size())};
  return Values{node.constant(Tensor::from_values(dtype, sizes, numbers))};
}

Result<Values> convert_arange(AtenNode& node) { return counted(node, false, false); }
Result<Values> convert_arange_start(AtenNode& node) { return counted(node, true, false); }
Result<Values> convert_arange_step(AtenNode& node) { return counted(node, true, true); }

// From both ends towards the middle, as PyTorch counts; the end is exact.
Result<Values> convert_linspace(AtenNode& node) {
  const DType dtype = dtype_created(node, DType::f32);
  const std::int64_t steps = node.integer("steps");
  const double start = node.real("start");
  const double end = node.real("end");
  TRY_VOID(node.finish());
  constexpr std::int64_t most = 1 << 20;
  if (steps < 0) return broken_program("number of steps must be non-negative");
  if (steps > most) return lacking("linspace of more than a million numbers.", "Count integers and multiply.");
  std::vector<double> numbers;
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  for (std::int64_t i = 0; i < steps; ++i)
    numbers.push_back(i < steps / 2 || steps == 1 ? start + step * static_cast<double>(i)
                                                  : end - step * static_cast<double>(steps - 1 - i));
  if (!is_float(dtype)) {
    for (double& number : numbers) number = std::trunc(number);
  }
  return Values{node.constant(Tensor::from_values(dtype, std::vector<std::int64_t>{steps}, numbers))};
}

Result<Values> convert_eye(AtenNode& node) {
  Composer c(node);
  const Dim rows = node.size("n");
  const Dim columns = node.takes("m") ? node.size("m") : rows;
  Value* const same = c.op("equal", {c.unsqueeze(c.counting(rows, DType::i64), 1), c.counting(columns, DType::i64)});
  return c.results({c.cast(same, dtype_created(node, DType::f32))});
}

template <bool upper>
Result<Values> convert_triangle(AtenNode& node) {
  Composer c(node);
  return c.results(
      {c.op("trilu", {node.tensor("self")}, Attributes({{"k", node.size("diagonal")}, {"upper", upper}}))});
}

}  // namespace

std::vector<AtenEntry> aten_create_entries() {
  return {
      {"arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
       "-> "
       "Tensor",
       convert_arange},
      {"arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? "
       "pin_memory=None) -> Tensor",
       convert_arange_start},
      {"arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       convert_arange_step},
      {"empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       convert_filled<0>},
      {"empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       convert_filled_like<0>},
      {"empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       convert_filled<0>},
      {"empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       convert_filled<0>},
      {"eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
       "Tensor",
       convert_eye},
      {"eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       convert_eye},
      {"full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? "
       "pin_memory=None) -> Tensor",
       convert_full},
      {"full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       convert_full_like},
      {"linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       convert_linspace},
      {"new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None) -> Tensor",
       convert_filled<0>},
      {"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       convert_filled<0>},
      {"new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       convert_full},
      {"new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? "
       "pin_memory=None) -> Tensor",
       convert_filled<1>},
      {"new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? "
       "pin_memory=None) -> Tensor",
       convert_filled<0>},
      {"ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> "
       "Tensor",
       convert_filled<1>},
      {"ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, "
       "MemoryFormat? memory_format=None) -> Tensor",
       convert_filled_like<1>},
      {"scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       convert_scalar_tensor},
      {"tril(Tensor self, SymInt diagonal=0) -> Tensor", convert_triangle<false>},
      {"triu(Tensor self, SymInt diagonal=0) -> Tensor", convert_triangle<true>},
      {"zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) "
       "-> Tensor",
       convert_filled<0>},
      {"zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       convert_filled_like<0>},
  };
}

}  // namespace polyphase

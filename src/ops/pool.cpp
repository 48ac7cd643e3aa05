// max_pool, avg_pool: the largest value or the mean under a sliding window.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cut.h"
#include "ops/dense.h"
#include "ops/families.h"
#include "ops/window.h"

namespace polyphase {
namespace {

using Integers = std::vector<std::int64_t>;

// Windows whose first tap lies beyond the operand and its pre padding are left out in ceil mode, as PyTorch has it.
Result<std::vector<Type>> infer_pool(const InferContext& context, const std::string& op) {
  const Type& x = context.input(0);
  const int spatial = x.shape.rank() - 2;
  if (spatial < 1 || spatial > 3) {
    return Error{ErrorCode::invalid_model,
                 op + ": the operand must be (N, C, one to three spatial axes), rank 3 to 5, found " + x.text() + "."};
  }
  TRY(const WindowAttributes window, window_attributes(context, op, spatial));
  const auto& kernel = context.attributes().get<Integers>("kernel");
  if (kernel.size() != static_cast<std::size_t>(spatial) ||
      std::any_of(kernel.begin(), kernel.end(), [](std::int64_t k) { return k < 1; })) {
    return Error{ErrorCode::invalid_model,
                 op + ": attribute 'kernel' must have one entry of at least 1 per spatial axis (" +
                     std::to_string(spatial) + "), found " + print_attribute(kernel) + "."};
  }
  const bool ceil = context.attributes().get<bool>("ceil");
  Shape out{x.shape[0], x.shape[1]};
  for (int axis = 2; axis < x.shape.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis - 2);
    const Dim stride(window.stride[i]);
    const Dim span = dilated_kernel(kernel[i], window.dilation[i]);
    const Dim padded = x.shape[axis] + window.pre[i] + window.post[i];
    TRY_VOID(context.require(span, DimCheck::Relation::less_equal, ceil ? padded + stride - 1 : padded,
                             op + ": the kernel must fit into the padded operand on axis " + std::to_string(axis) +
                                 ", but it spans " + span.text() + " and the padded size is " + padded.text() + "."));
    const Dim last =
        stride - 1;  // ceil(a / b) as floor((a + b - 1) / b): the same normal form as a convolution's sizes
    out.push_back(
        ceil ? min(floor_div(padded - span + last, stride) + 1, floor_div(x.shape[axis] + window.pre[i] + last, stride))
             : floor_div(padded - span, stride) + 1);
  }
  return std::vector<Type>{{x.dtype, out}};
}

Result<std::vector<Type>> infer_max_pool(const InferContext& context) {
  if (context.input(0).dtype == DType::boolean) {
    return Error{ErrorCode::invalid_model,
                 "max_pool: the operand must be numeric, found " + context.input(0).text() + "."};
  }
  return infer_pool(context, "max_pool");
}

Result<std::vector<Type>> infer_avg_pool(const InferContext& context) {
  if (!is_float(context.input(0).dtype)) {
    return Error{ErrorCode::invalid_model,
                 "avg_pool: the operand must be of a float dtype, found " + context.input(0).text() + "."};
  }
  return infer_pool(context, "avg_pool");
}

// What a window of padding alone gives.
double lowest(double, DType) { return -std::numeric_limits<double>::infinity(); }
std::int64_t lowest(std::int64_t, DType dtype) {
  if (!is_signed(dtype)) return dtype == DType::u64 ? std::numeric_limits<std::int64_t>::min() : 0;
  const int bits = dtype == DType::i4 ? 4 : 8 * static_cast<int>(size_bytes(dtype));
  return -(std::int64_t{1} << (bits - 2)) * 2;
}

// A NaN wins, as in PyTorch.
double larger(double a, double b) { return b > a || std::isnan(b) ? b : a; }
std::int64_t larger(std::int64_t a, std::int64_t b) { return std::max(a, b); }

// u64 keeps its order as int64 when the top bit is flipped.
template <typename T>
void flip_top_bit(std::vector<T>& values, DType dtype) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    if (dtype != DType::u64) return;
    for (T& value : values) value ^= std::numeric_limits<std::int64_t>::min();
  }
}

template <typename T>
void pool_max(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& y = context.outputs[0];
  const Window window = make_window(context.attributes, context.attributes.get<Integers>("kernel"), y, x);
  std::vector<T> operand = dense_values<T>(x);
  flip_top_bit(operand, x.dtype);
  std::vector<T> result(static_cast<std::size_t>(y.element_count()), lowest(T{}, x.dtype));
  const std::int64_t step = window.inner_stride();
  const std::int64_t planes = y.sizes[0] * y.sizes[1];
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    window.for_each_row([&](std::int64_t, std::int64_t small, std::int64_t big, std::int64_t count) {
      T* to = result.data() + plane * window.small_count() + small;
      const T* from = operand.data() + plane * window.big_count() + big;
      for (std::int64_t i = 0; i < count; ++i) to[i] = larger(to[i], from[i * step]);
    });
  }
  flip_top_bit(result, x.dtype);
  store_values(result, y);
}

Result<void> reference_max_pool(const ReferenceContext& context) {
  with_accumulator(context.inputs[0].dtype, [&]<typename T>(T) { pool_max<T>(context); });
  return {};
}

// The place of an element in its plane, with the first axis moving fastest.
std::int64_t column_major(const Window& window, std::int64_t place) {
  if (place == 0) return 0;  // also of an operand without elements
  std::int64_t index[3];
  for (int i = 2; i >= 0; --i) {
    index[i] = place % window.axis(static_cast<std::size_t>(i)).big_size;
    place /= window.axis(static_cast<std::size_t>(i)).big_size;
  }
  return index[0] + window.axis(0).big_size * (index[1] + window.axis(1).big_size * index[2]);
}

// Of equals the first counts, of NaN the last, which is greater than all: as in PyTorch.
bool wins_window(double a, double b) { return a > b || std::isnan(a); }
bool wins_window(std::int64_t a, std::int64_t b) { return a > b; }

template <typename T>
void find_max(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& y = context.outputs[0];
  const Window window = make_window(context.attributes, context.attributes.get<Integers>("kernel"), y, x);
  const bool by_columns = context.attributes.get<bool>("column_major");
  std::vector<T> operand = dense_values<T>(x);
  flip_top_bit(operand, x.dtype);
  std::vector<std::int64_t> best(static_cast<std::size_t>(window.small_count()));
  std::vector<std::int64_t> result;
  result.reserve(static_cast<std::size_t>(y.element_count()));
  const std::int64_t step = window.inner_stride();
  for (std::int64_t plane = 0; plane < y.sizes[0] * y.sizes[1]; ++plane) {
    const T* from = operand.data() + plane * window.big_count();
    std::fill(best.begin(), best.end(), -1);
    window.for_each_row([&](std::int64_t, std::int64_t small, std::int64_t big, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t& held = best[static_cast<std::size_t>(small + i)];
        const std::int64_t place = big + i * step;
        if (held < 0 || wins_window(from[place], from[held])) held = place;
      }
    });
    for (const std::int64_t place : best) {
      const std::int64_t there = std::max<std::int64_t>(place, 0);
      result.push_back(plane * window.big_count() + (by_columns ? column_major(window, there) : there));
    }
  }
  store_values(result, y);
}

Result<std::vector<Type>> infer_max_pool_indices(const InferContext& context) {
  TRY(std::vector<Type> types, infer_max_pool(context));
  types[0].dtype = DType::i64;
  return types;
}

Result<void> reference_max_pool_indices(const ReferenceContext& context) {
  with_accumulator(context.inputs[0].dtype, [&]<typename T>(T) { find_max<T>(context); });
  return {};
}

// For each window along one axis, its taps that count: those inside the operand, or inside the operand and its padding.
std::vector<double> counted_taps(const WindowAxis& axis, std::int64_t low, std::int64_t high) {
  std::vector<double> out(static_cast<std::size_t>(axis.small_size));
  for (std::int64_t o = 0; o < axis.small_size; ++o) {
    const std::int64_t origin = o * axis.stride - axis.pre;
    const std::int64_t begin = std::max<std::int64_t>(0, ceil_div(low - origin, axis.dilation));
    const std::int64_t end = std::min(axis.taps, ceil_div(high - origin, axis.dilation));
    out[static_cast<std::size_t>(o)] = static_cast<double>(std::max<std::int64_t>(0, end - begin));
  }
  return out;
}

std::vector<double> divisors(const ReferenceContext& context, const Window& window) {
  const bool include_pad = context.attributes.get<bool>("include_pad");
  const Integers post = integers_of(context.attributes.get<std::vector<Dim>>("post"));
  std::vector<double> out{1};
  for (std::size_t i = 0; i < 3; ++i) {
    const WindowAxis& axis = window.axis(i);
    const std::int64_t after = include_pad && i + post.size() >= 3 ? post[i + post.size() - 3] : 0;
    std::vector<double> product;
    for (const double outer : out) {
      for (const double count : counted_taps(axis, include_pad ? -axis.pre : 0, axis.big_size + after))
        product.push_back(outer * count);
    }
    out = std::move(product);
  }
  return out;
}

Result<void> reference_avg_pool(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& y = context.outputs[0];
  const Window window = make_window(context.attributes, context.attributes.get<Integers>("kernel"), y, x);
  const std::vector<double> divisor = divisors(context, window);
  const std::vector<double> operand = dense_values<double>(x);
  std::vector<double> result(static_cast<std::size_t>(y.element_count()));
  const std::int64_t step = window.inner_stride();
  const std::int64_t planes = y.sizes[0] * y.sizes[1];
  double* to = result.data();
  for (std::int64_t plane = 0; plane < planes; ++plane, to += window.small_count()) {
    window.for_each_row([&](std::int64_t, std::int64_t small, std::int64_t big, std::int64_t count) {
      const double* from = operand.data() + plane * window.big_count() + big;
      for (std::int64_t i = 0; i < count; ++i) to[small + i] += from[i * step];
    });
    for (std::size_t i = 0; i < divisor.size(); ++i) to[i] = divisor[i] == 0 ? 0 : to[i] / divisor[i];
  }
  store_values(result, y);
  return {};
}

std::vector<AttributeSpec> pool_attributes() {
  return {
      {"kernel", AttributeKind::integers, "taps per spatial axis, at least 1"},
      {"stride", AttributeKind::integers, "distance of neighbouring windows per spatial axis, at least 1"},
      {"dilation", AttributeKind::integers, "distance of neighbouring taps per spatial axis, at least 1"},
      {"pre", AttributeKind::dims, "padding before the first element per spatial axis; negative crops"},
      {"post", AttributeKind::dims, "padding after the last element per spatial axis; negative crops"},
      {"ceil", AttributeKind::boolean,
       "round the number of windows up; windows that would begin beyond the operand and its pre padding do not count",
       Attribute(false)}};
}

}  // namespace

std::vector<OpDef> pool_operators() {
  const std::string sizes =
      "Output size per axis: floor((I + pre + post - (k-1)*dilation - 1) / stride) + 1; with ceil rounded up, but at "
      "most\n"
      "ceil((I + pre) / stride).\n";
  std::vector<AttributeSpec> mean_attributes = pool_attributes();
  mean_attributes.push_back({"include_pad", AttributeKind::boolean,
                             "the divisor counts padding too (not what ceil adds beyond it)", Attribute(false)});
  std::vector<AttributeSpec> place_attributes = pool_attributes();
  place_attributes.push_back({"column_major", AttributeKind::boolean,
                              "counts a plane's elements with the first spatial axis moving fastest",
                              Attribute(false)});
  return {
      OpDef{.name = "max_pool_indices",
            .doc = "Where max_pool finds its elements: numbers in the whole operand, row-major; of equals the first, "
                   "of NaN the last. A window of padding alone gives its plane's first.\n" +
                   sizes + "Source: ONNX operator MaxPool, result Indices.",
            .inputs = {{"x", "(N, C, spatial...), one to three spatial axes, numeric"}},
            .outputs = {{"indices", "i64, (N, C, spatial...)"}},
            .attributes = place_attributes,
            .infer = infer_max_pool_indices,
            .reference = reference_max_pool_indices},
      OpDef{.name = "max_pool",
            .doc = "The largest element under each window, per channel, over one to three spatial axes. Padding "
                   "counts as minus infinity; a\n"
                   "window of padding alone gives minus infinity, or the lowest integer. NaN wins.\n" +
                   sizes + "Source: ONNX operator MaxPool; torch.nn.functional.max_pool2d.",
            .inputs = {{"x", "(N, C, spatial...), one to three spatial axes, numeric"}},
            .outputs = {{"y", "(N, C, spatial...)"}},
            .attributes = pool_attributes(),
            .infer = infer_max_pool,
            .reference = reference_max_pool,
            .cut = cut_pool,
            .layout = LayoutRule::spatial},
      OpDef{.name = "avg_pool",
            .doc = "The mean of the elements under each window, per channel, over one to three spatial axes: their "
                   "sum divided by the number of\n"
                   "taps inside the operand or, with include_pad, inside the padded operand. A window without any "
                   "gives 0.\n" +
                   sizes + "Source: ONNX operator AveragePool; torch.nn.functional.avg_pool2d.",
            .inputs = {{"x", "(N, C, spatial...), one to three spatial axes, float"}},
            .outputs = {{"y", "(N, C, spatial...)"}},
            .attributes = mean_attributes,
            .infer = infer_avg_pool,
            .reference = reference_avg_pool,
            .cut = cut_pool,
            .layout = LayoutRule::spatial}};
}

}  // namespace polyphase

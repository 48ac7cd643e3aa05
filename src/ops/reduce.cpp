// reduce_*: many elements along some axes to one. One table of name, meaning, start, step and end.
#include <cmath>
#include <limits>

#include "ops/cut.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

Result<std::vector<bool>> reduced_axes(const InferContext& context) {
  const int rank = context.shape(0).rank();
  std::vector<bool> reduced(static_cast<std::size_t>(rank), false);
  for (const std::int64_t axis : context.attributes().get<std::vector<std::int64_t>>("axes")) {
    if (axis < 0 || axis >= rank || reduced[static_cast<std::size_t>(axis)]) {
      return refuse(context, "attribute 'axes' must name axes of " + context.input(0).text() +
                                 " from 0, each once, found " +
                                 print_attribute(context.attributes().values().find("axes")->second) + ".");
    }
    reduced[static_cast<std::size_t>(axis)] = true;
  }
  return reduced;
}

template <DTypeSet set>
Result<std::vector<Type>> infer_reduce(const InferContext& context) {
  TRY_VOID(expect_dtype(context, 0, set));
  TRY(const std::vector<bool> reduced, reduced_axes(context));
  Type result{context.input(0).dtype, {}};
  for (int axis = 0; axis < context.shape(0).rank(); ++axis) {
    if (!reduced[static_cast<std::size_t>(axis)]) {
      result.shape.push_back(context.shape(0)[axis]);
    } else if (context.attributes().get<bool>("keep")) {
      result.shape.push_back(1);
    }
  }
  return std::vector<Type>{std::move(result)};
}

// Strides of a result that walks along with x: 0 on reduced axes.
std::array<std::int64_t, max_rank> strides_along(const TensorView& x, const TensorView& result,
                                                 const Attributes& attributes) {
  std::array<bool, max_rank> reduced{};
  for (const std::int64_t axis : attributes.get<std::vector<std::int64_t>>("axes"))
    reduced[static_cast<std::size_t>(axis)] = true;
  const bool keep = attributes.get<bool>("keep");
  std::array<std::int64_t, max_rank> strides{};
  std::size_t own = 0;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(x.rank); ++axis) {
    if (!reduced[axis]) strides[axis] = result.strides[own];
    if (!reduced[axis] || keep) ++own;
  }
  return strides;
}

// Folds x into accumulators shaped like the result, row-major. Each accumulator sees its elements in index order,
// whatever the strides. step(accumulator, element, accumulator's number).
template <typename Number, typename Step>
void accumulate(const ReferenceContext& context, std::vector<Number>& sums, Step step) {
  const TensorView& x = context.inputs[0];
  const TensorView dense(TensorDesc::row_major(context.outputs[0].dtype, context.outputs[0].size_span()), nullptr);
  const auto along = strides_along(x, dense, context.attributes);
  for_each_block<2>(x.size_span(), {x.strides.data(), along.data()}, RowOrder::logical,
                    [&](const auto& at, std::int64_t count, const auto& steps) {
                      Number values[block_elements];
                      read_block(element_at(x, at[0]), x.dtype, steps[0], count, values);
                      for (std::int64_t i = 0; i < count; ++i) {
                        const auto place = static_cast<std::size_t>(at[1] + i * steps[1]);
                        sums[place] = step(sums[place], values[i], place);
                      }
                    });
}

template <typename Number>
void store(const std::vector<Number>& values, const TensorView& result) {
  const TensorDesc dense = TensorDesc::row_major(result.dtype, result.size_span());
  for_each_block<2>(result.size_span(), {result.strides.data(), dense.strides.data()}, RowOrder::logical,
                    [&](const auto& at, std::int64_t count, const auto& steps) {
                      Number row[block_elements];
                      for (std::int64_t i = 0; i < count; ++i)
                        row[i] = values[static_cast<std::size_t>(at[1] + i * steps[1])];
                      write_block(element_at(result, at[0]), result.dtype, steps[0], count, row);
                    });
}

// How many elements make one result.
std::int64_t elements_per_result(const ReferenceContext& context) {
  std::int64_t count = 1;
  for (const std::int64_t axis : context.attributes.get<std::vector<std::int64_t>>("axes")) {
    count *= context.inputs[0].sizes[static_cast<std::size_t>(axis)];
  }
  return count;
}

// A fold: start(dtype), step(sum, element), end(sum, count). Number is double or int64; u64 folds on its bits, ordered
// by `less`.
template <typename Fold, typename Number>
void run_fold(const ReferenceContext& context) {
  const DType dtype = context.inputs[0].dtype;
  std::vector<Number> sums(static_cast<std::size_t>(context.outputs[0].element_count()),
                           Fold::template start<Number>(dtype));
  accumulate(context, sums, [dtype](Number sum, Number element, std::size_t) {
    return Fold::step(sum, element, dtype == DType::u64);
  });
  const std::int64_t count = elements_per_result(context);
  for (Number& sum : sums) sum = Fold::end(sum, count);
  store(sums, context.outputs[0]);
}

// Exact folds: integers and bool stay int64.
template <typename Fold>
Result<void> reference_exact(const ReferenceContext& context) {
  if (is_float(context.inputs[0].dtype)) {
    run_fold<Fold, double>(context);
  } else {
    run_fold<Fold, std::int64_t>(context);
  }
  return {};
}

// Folds with roots and logarithms: integers are computed in double and truncated.
template <typename Fold>
Result<void> reference_real(const ReferenceContext& context) {
  run_fold<Fold, double>(context);
  return {};
}

bool less_than(double a, double b, bool) { return a < b || std::isnan(a); }
bool less_than(std::int64_t a, std::int64_t b, bool is_unsigned) {
  return is_unsigned ? static_cast<std::uint64_t>(a) < static_cast<std::uint64_t>(b) : a < b;
}
bool greater_than(double a, double b, bool) { return a > b || std::isnan(a); }
bool greater_than(std::int64_t a, std::int64_t b, bool is_unsigned) { return less_than(b, a, is_unsigned); }

// The least or greatest integer of a dtype, as load_integer gives it.
std::int64_t integer_end(DType dtype, bool greatest) {
  std::byte element[8];
  store_double(element, dtype,
               greatest ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
  return load_integer(element, dtype);
}

template <typename Number>
Number worst(DType dtype, bool greatest) {
  if constexpr (std::is_same_v<Number, double>) {
    return greatest ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  } else {
    return dtype == DType::boolean ? (greatest ? 1 : 0) : integer_end(dtype, greatest);
  }
}

double add(double a, double b) { return a + b; }
std::int64_t add(std::int64_t a, std::int64_t b) { return wrapping_add(a, b); }
double times(double a, double b) { return a * b; }
std::int64_t times(std::int64_t a, std::int64_t b) { return wrapping_multiply(a, b); }

struct Unended {
  template <typename Number>
  static Number end(Number sum, std::int64_t) {
    return sum;
  }
  template <typename Number>
  static Number start(DType) {
    return 0;
  }
};

struct Sum : Unended {
  template <typename Number>
  static Number step(Number sum, Number x, bool) {
    return add(sum, x);
  }
};

struct Mean : Sum {
  static double end(double sum, std::int64_t count) { return sum / static_cast<double>(count); }
  static std::int64_t end(std::int64_t sum, std::int64_t count) { return total_divide(sum, count); }
};

struct Product : Unended {
  template <typename Number>
  static Number start(DType) {
    return 1;
  }
  template <typename Number>
  static Number step(Number product, Number x, bool) {
    return times(product, x);
  }
};

struct Maximum : Unended {
  template <typename Number>
  static Number start(DType dtype) {
    return worst<Number>(dtype, false);
  }
  template <typename Number>
  static Number step(Number best, Number x, bool is_unsigned) {
    return greater_than(x, best, is_unsigned) ? x : best;
  }
};

struct Minimum : Unended {
  template <typename Number>
  static Number start(DType dtype) {
    return worst<Number>(dtype, true);
  }
  template <typename Number>
  static Number step(Number best, Number x, bool is_unsigned) {
    return less_than(x, best, is_unsigned) ? x : best;
  }
};

struct AbsoluteSum : Unended {
  static double step(double sum, double x, bool) { return sum + std::fabs(x); }
  static std::int64_t step(std::int64_t sum, std::int64_t x, bool is_unsigned) {
    return wrapping_add(sum, x < 0 && !is_unsigned ? wrapping_subtract<std::int64_t>(0, x) : x);
  }
};

struct SquareSum : Unended {
  template <typename Number>
  static Number step(Number sum, Number x, bool) {
    return add(sum, times(x, x));
  }
};

struct EuclideanNorm : SquareSum {
  static double end(double sum, std::int64_t) { return std::sqrt(sum); }
};

struct LogarithmOfSum : Sum {
  static double end(double sum, std::int64_t) { return std::log(sum); }
};

// log(sum(exp(x))) = m + log(sum(exp(x - m))) with m the greatest x, so that nothing overflows.
Result<void> reference_log_sum_exp(const ReferenceContext& context) {
  const auto results = static_cast<std::size_t>(context.outputs[0].element_count());
  std::vector<double> greatest(results, -std::numeric_limits<double>::infinity());
  accumulate(context, greatest,
             [](double best, double x, std::size_t) { return greater_than(x, best, false) ? x : best; });
  std::vector<double> sums(results, 0);
  accumulate(context, sums, [&](double sum, double x, std::size_t place) {
    return sum + (std::isinf(greatest[place]) ? (x == greatest[place] ? 1.0 : 0.0) : std::exp(x - greatest[place]));
  });
  for (std::size_t i = 0; i < results; ++i) sums[i] = sums[i] == 0 ? greatest[i] : greatest[i] + std::log(sums[i]);
  store(sums, context.outputs[0]);
  return {};
}

// Sums, products and extremes of sizes are sizes.
template <Dim (*combine)(const Dim&, const Dim&), bool has_start, std::int64_t start>
Contents reduce_contents(const InferContext& context) {
  const std::vector<Dim>* x = context.contents(0);
  const DType dtype = context.input(0).dtype;
  const auto sizes = context.shape(0).evaluate({});
  if (x == nullptr || !sizes.has_value() || (dtype != DType::i64 && dtype != DType::i32)) return std::nullopt;
  const auto types = context.op().infer(context);
  if (!types.ok()) return std::nullopt;
  const std::vector<std::int64_t> result_sizes = types->front().shape.evaluate({}).value();
  const TensorView from(TensorDesc::row_major(dtype, *sizes), nullptr);
  const TensorView to(TensorDesc::row_major(dtype, result_sizes), nullptr);
  const auto along = strides_along(from, to, context.attributes());
  std::vector<Dim> out(static_cast<std::size_t>(to.element_count()), Dim(start));
  std::vector<bool> begun(out.size(), has_start);
  for_each_index<2>(*sizes, {from.strides.data(), along.data()}, [&](const auto& at) {
    const auto place = static_cast<std::size_t>(at[1]);
    const Dim& element = (*x)[static_cast<std::size_t>(at[0])];
    out[place] = begun[place] ? combine(out[place], element) : element;
    begun[place] = true;
  });
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!begun[i] || out[i].overflowed()) return std::nullopt;
  }
  return out;
}

Dim add_sizes(const Dim& a, const Dim& b) { return a + b; }
Dim multiply_sizes(const Dim& a, const Dim& b) { return a * b; }

using Reference = Result<void> (*)(const ReferenceContext&);
using ContentsRule = Contents (*)(const InferContext&);

OpDef reduce_line(const char* name, const char* doc, DTypeSet set, Reference reference,
                  ContentsRule contents_rule = nullptr) {
  return {.name = name,
          .doc = doc,
          .inputs = {{"x", "any shape"}},
          .outputs = {{"y", "x with the axes of size 1, or without them"}},
          .attributes = {{"axes", AttributeKind::integers, "which axes, from 0; none: nothing is reduced"},
                         {"keep", AttributeKind::boolean, "the axes stay, with size 1", Attribute(true)}},
          .infer = set == DTypeSet::any ? infer_reduce<DTypeSet::any> : infer_reduce<DTypeSet::numbers>,
          .reference = reference,
          .cut = cut_reduction,
          .layout = LayoutRule::per_axis,
          .contents = contents_rule};
}

}  // namespace

std::vector<OpDef> reduce_operators() {
  constexpr DTypeSet numbers = DTypeSet::numbers;
  return {
      reduce_line("reduce_sum", "The sum; 0 of nothing.", numbers, reference_exact<Sum>,
                  reduce_contents<add_sizes, true, 0>),
      reduce_line("reduce_mean",
                  "The sum divided by the number of elements; integers truncate; NaN (integers: 0) of nothing.",
                  numbers, reference_exact<Mean>),
      reduce_line("reduce_max",
                  "The greatest element, of bool whether any; NaN if one is; the least value there is of nothing.",
                  DTypeSet::any, reference_exact<Maximum>, reduce_contents<max, false, 0>),
      reduce_line("reduce_min",
                  "The least element, of bool whether all; NaN if one is; the greatest value there is of nothing.",
                  DTypeSet::any, reference_exact<Minimum>, reduce_contents<min, false, 0>),
      reduce_line("reduce_prod", "The product; 1 of nothing.", numbers, reference_exact<Product>,
                  reduce_contents<multiply_sizes, true, 1>),
      reduce_line("reduce_l1", "The sum of absolute values.", numbers, reference_exact<AbsoluteSum>),
      reduce_line("reduce_l2", "The square root of the sum of squares; integers truncate.", numbers,
                  reference_real<EuclideanNorm>),
      reduce_line("reduce_log_sum", "The logarithm of the sum; integers truncate.", numbers,
                  reference_real<LogarithmOfSum>),
      reduce_line("reduce_log_sum_exp", "log(sum(exp(x))), without overflow; integers truncate.", numbers,
                  reference_log_sum_exp),
      reduce_line("reduce_sum_square", "The sum of squares.", numbers, reference_exact<SquareSum>),
  };
}

}  // namespace polyphase

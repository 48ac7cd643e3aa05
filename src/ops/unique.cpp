// count_unique, unique: the different elements, or slices along an axis. The count, bound to a symbol, is a size of the
// results.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/dense.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

constexpr std::int64_t flat = -1;

// Which slice is the first of its kind, and how the kinds follow one another.
struct Kinds {
  std::vector<std::int64_t> first;   // by kind: the first slice of it
  std::vector<std::int64_t> of;      // by slice: its kind
  std::vector<std::int64_t> counts;  // by kind
};

// NaN is greater than all numbers and equal to itself.
int compared(double a, double b) {
  if (a == b) return 0;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? (std::isnan(b) ? 0 : 1) : -1;
  return a < b ? -1 : 1;
}
int compared(std::int64_t a, std::int64_t b) { return a == b ? 0 : (a < b ? -1 : 1); }

template <typename T>
Kinds kinds_among(const std::vector<T>& slices, std::int64_t count, std::int64_t length, bool sorted) {
  const auto order = [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t i = 0; i < length; ++i) {
      const int found =
          compared(slices[static_cast<std::size_t>(a * length + i)], slices[static_cast<std::size_t>(b * length + i)]);
      if (found != 0) return found;
    }
    return 0;
  };
  std::vector<std::int64_t> by_value(static_cast<std::size_t>(count));
  std::iota(by_value.begin(), by_value.end(), 0);
  std::stable_sort(by_value.begin(), by_value.end(), [&](std::int64_t a, std::int64_t b) { return order(a, b) < 0; });
  Kinds out;
  out.of.resize(by_value.size());
  for (std::size_t i = 0; i < by_value.size(); ++i) {
    if (i == 0 || order(by_value[i - 1], by_value[i]) != 0) {
      out.first.push_back(by_value[i]);
      out.counts.push_back(0);
    }
    out.of[static_cast<std::size_t>(by_value[i])] = static_cast<std::int64_t>(out.first.size()) - 1;
    ++out.counts.back();
  }
  if (sorted) return out;
  // In order of first appearance.
  std::vector<std::int64_t> rank(out.first.size());
  std::iota(rank.begin(), rank.end(), 0);
  const auto first_of = [&](std::int64_t kind) { return out.first[static_cast<std::size_t>(kind)]; };
  std::sort(rank.begin(), rank.end(), [&](std::int64_t a, std::int64_t b) { return first_of(a) < first_of(b); });
  Kinds by_place = out;
  std::vector<std::int64_t> place(rank.size());
  for (std::size_t i = 0; i < rank.size(); ++i) {
    const auto kind = static_cast<std::size_t>(rank[i]);
    place[kind] = static_cast<std::int64_t>(i);
    by_place.first[i] = out.first[kind];
    by_place.counts[i] = out.counts[kind];
  }
  for (std::int64_t& kind : by_place.of) kind = place[static_cast<std::size_t>(kind)];
  return by_place;
}

// Slices as rows of one matrix; u64 in the order of int64.
template <typename T>
std::vector<T> rows_of(const TensorView& x, std::int64_t axis) {
  TensorView view = x;
  if (axis > 0) {
    std::rotate(view.sizes.begin(), view.sizes.begin() + axis, view.sizes.begin() + axis + 1);
    std::rotate(view.strides.begin(), view.strides.begin() + axis, view.strides.begin() + axis + 1);
  }
  std::vector<T> out = dense_values<T>(view);
  if constexpr (std::is_same_v<T, std::int64_t>) {
    if (x.dtype == DType::u64) {
      for (T& value : out) value ^= INT64_MIN;
    }
  }
  return out;
}

Kinds kinds_of(const ReferenceContext& context, bool sorted) {
  const TensorView& x = context.inputs[0];
  const auto axis = context.attributes.get<std::int64_t>("axis");
  const std::int64_t elements = x.element_count();
  const std::int64_t count = axis == flat ? elements : x.sizes[static_cast<std::size_t>(axis)];
  return with_accumulator(x.dtype, [&]<typename T>(T) {
    return kinds_among(rows_of<T>(x, axis), count, count == 0 ? 0 : elements / count, sorted);
  });
}

Result<std::int64_t> unique_axis(const InferContext& context) {
  const auto axis = context.attributes().get<std::int64_t>("axis");
  const int rank = context.shape(0).rank();
  if (axis == flat || (axis >= 0 && axis < rank)) return axis;
  return refuse(context, "attribute 'axis' must be an axis of " + context.input(0).text() +
                             ", or -1 for all of it, found " + std::to_string(axis) + ".");
}

Result<std::vector<Type>> infer_unique_count(const InferContext& context) {
  TRY_VOID(unique_axis(context));
  return std::vector<Type>{{DType::i64, Shape{}}};
}

Result<void> reference_unique_count(const ReferenceContext& context) {
  *context.outputs[0].as<std::int64_t>() = static_cast<std::int64_t>(kinds_of(context, true).first.size());
  return {};
}

Result<std::vector<Type>> infer_unique(const InferContext& context) {
  TRY(const std::int64_t axis, unique_axis(context));
  const Type& x = context.input(0);
  const Dim& count = context.attributes().get<Dim>("count");
  TRY_VOID(context.require(0, DimCheck::Relation::less_equal, count,
                           "unique: the count must not be negative, found " + count.text() + "."));
  const Dim slices = axis == flat ? x.shape.element_count() : x.shape[static_cast<int>(axis)];
  Shape values{count};
  if (axis != flat) {
    values = x.shape;
    values[static_cast<int>(axis)] = count;
  }
  return std::vector<Type>{
      {x.dtype, values}, {DType::i64, Shape{count}}, {DType::i64, Shape{slices}}, {DType::i64, Shape{count}}};
}

void store_list(const std::vector<std::int64_t>& list, const TensorView& to) {
  for (std::size_t i = 0; i < list.size(); ++i)
    to.as<std::int64_t>()[static_cast<std::int64_t>(i) * to.strides[0]] = list[i];
}

// The slices of x that `first` names; without an axis x counts as one list.
void copy_slices(const TensorView& x, std::int64_t axis, const std::vector<std::int64_t>& first, const TensorView& y) {
  const auto width = static_cast<std::int64_t>(size_bytes(x.dtype));
  for (std::size_t k = 0; k < first.size(); ++k) {
    const auto to = static_cast<std::int64_t>(k);
    if (axis == flat) {
      std::int64_t rest = first[k];
      std::int64_t from = 0;
      for (auto i = static_cast<std::size_t>(x.rank); i-- > 0;) {
        from += rest % x.sizes[i] * x.strides[i];
        rest /= x.sizes[i];
      }
      std::copy_n(x.data + from * width, width, y.data + to * y.strides[0] * width);
      continue;
    }
    const auto at = static_cast<std::size_t>(axis);
    TensorView source = x;
    TensorView target = y;
    source.sizes[at] = target.sizes[at] = 1;
    source.data += first[k] * x.strides[at] * width;
    target.data += to * y.strides[at] * width;
    copy_elements(source, target);
  }
}

Result<void> reference_unique(const ReferenceContext& context) {
  const Kinds kinds = kinds_of(context, context.attributes.get<bool>("sorted"));
  const auto count = static_cast<std::int64_t>(kinds.first.size());
  if (count != context.outputs[1].sizes[0]) {
    return Error{ErrorCode::invalid_argument, "the operand has " + std::to_string(count) +
                                                  " different elements; the attribute 'count' says " +
                                                  std::to_string(context.outputs[1].sizes[0]) + "."};
  }
  copy_slices(context.inputs[0], context.attributes.get<std::int64_t>("axis"), kinds.first, context.outputs[0]);
  store_list(kinds.first, context.outputs[1]);
  store_list(kinds.of, context.outputs[2]);
  store_list(kinds.counts, context.outputs[3]);
  return {};
}

}  // namespace

std::vector<OpDef> unique_operators() {
  const OperandSpec x{"x", "any dtype"};
  const AttributeSpec axis{"axis", AttributeKind::integer, "compares slices along this axis; -1: elements",
                           Attribute(flat)};
  return {
      OpDef{.name = "count_unique",
            .doc = "How many different elements (or slices along an axis) there are. NaNs are equal to one another.",
            .inputs = {x},
            .outputs = {{"count", "i64, a scalar"}},
            .attributes = {axis},
            .infer = infer_unique_count,
            .reference = reference_unique_count},
      OpDef{.name = "unique",
            .doc = "The different elements of x, or its different slices along an axis; where each is first, which "
                   "one each slice is, and how often it is there. Source: ONNX operator Unique; torch.unique.",
            .inputs = {x},
            .outputs = {{"y", "[count], or x with count slices along the axis"},
                        {"first", "i64, [count]: the first place of each"},
                        {"which", "i64, one per element or slice of x: its place in y"},
                        {"counts", "i64, [count]"}},
            .attributes = {{"count", AttributeKind::dim,
                            "how many there are: a symbol that `bind` gave to count_unique's result"},
                           axis,
                           {"sorted", AttributeKind::boolean, "in rising order, else in order of first appearance",
                            Attribute(true)}},
            .infer = infer_unique,
            .reference = reference_unique}};
}

}  // namespace polyphase

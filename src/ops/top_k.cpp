// top_k: the greatest or least elements along an axis, in order, and where they stand.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/cut.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_top_k(const InferContext& context) {
  TRY_VOID(expect_dtype(context, 0, DTypeSet::numbers));
  const Type& x = context.input(0);
  TRY(const int axis, expect_axis(context, "axis", x.shape.rank()));
  const Dim& k = context.attributes().get<Dim>("k");
  TRY_VOID(
      context.require(0, DimCheck::Relation::less_equal, k, "top_k: k must not be negative, found " + k.text() + "."));
  TRY_VOID(context.require(
      k, DimCheck::Relation::less_equal, x.shape[axis],
      "top_k: k (" + k.text() + ") must not exceed axis " + std::to_string(axis) + " of " + x.text() + "."));
  Shape shape;
  for (int i = 0; i < x.shape.rank(); ++i) shape.push_back(i == axis ? k : x.shape[i]);
  return std::vector<Type>{{x.dtype, shape}, {DType::i64, shape}};
}

// A key that orders as the number does, NaN above all, both zeros alike.
std::uint64_t key_of(double x) {
  if (std::isnan(x)) return UINT64_MAX;
  const double positive_zero = x + 0.0;
  std::uint64_t bits = 0;
  std::memcpy(&bits, &positive_zero, sizeof(bits));
  return (bits >> 63U) != 0 ? ~bits : bits | (std::uint64_t{1} << 63U);
}
std::uint64_t key_of(std::int64_t x) { return static_cast<std::uint64_t>(x) ^ (std::uint64_t{1} << 63U); }

struct Entry {
  std::uint64_t key;  // the least comes first
  std::int64_t index;
  bool operator<(const Entry& other) const { return key != other.key ? key < other.key : index < other.index; }
};

template <typename Number>
void search_top(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& values = context.outputs[0];
  const TensorView& places = context.outputs[1];
  const auto axis = static_cast<std::size_t>(context.attributes.get<std::int64_t>("axis"));
  const std::int64_t k = values.sizes[axis];
  std::uint64_t flip = context.attributes.get<bool>("largest") ? UINT64_MAX : 0;
  const std::uint64_t unsigned_flip = x.dtype == DType::u64 ? std::uint64_t{1} << 63U : 0;
  std::array<std::int64_t, max_rank> sizes = x.sizes;
  sizes[axis] = 1;
  std::vector<Entry> entries(static_cast<std::size_t>(x.sizes[axis]));
  const std::size_t width = size_bytes(x.dtype);
  for_each_index<3>({sizes.data(), static_cast<std::size_t>(x.rank)},
                    {x.strides.data(), values.strides.data(), places.strides.data()}, [&](const auto& at) {
                      for_each_on_axis<Number>(x, axis, at[0], [&](std::int64_t here, Number number) {
                        entries[static_cast<std::size_t>(here)] = {(key_of(number) ^ unsigned_flip) ^ flip, here};
                      });
                      std::partial_sort(entries.begin(), entries.begin() + k, entries.end());
                      for (std::int64_t i = 0; i < k; ++i) {
                        const std::int64_t index = entries[static_cast<std::size_t>(i)].index;
                        std::copy_n(element_at(x, at[0] + index * x.strides[axis]), width,
                                    element_at(values, at[1] + i * values.strides[axis]));
                        places.as<std::int64_t>()[at[2] + i * places.strides[axis]] = index;
                      }
                    });
}

Result<void> reference_top_k(const ReferenceContext& context) {
  if (is_float(context.inputs[0].dtype)) {
    search_top<double>(context);
  } else {
    search_top<std::int64_t>(context);
  }
  return {};
}

}  // namespace

std::vector<OpDef> top_k_operators() {
  return {OpDef{.name = "top_k",
                .doc = "The k greatest (or least) elements along an axis, best first, and their indices. Of equals the "
                       "one with the least index comes first; NaN counts as greater than all. Source: ONNX operator "
                       "TopK; torch.topk.",
                .inputs = {{"x", "any number dtype, rank >= 1"}},
                .outputs = {{"values", "x with k elements along the axis"}, {"indices", "i64, the shape of values"}},
                .attributes = {{"axis", AttributeKind::integer, "which axis, from 0"},
                               {"k", AttributeKind::dim, "how many; at most the axis holds"},
                               {"largest", AttributeKind::boolean, "the greatest, else the least", Attribute(true)}},
                .infer = infer_top_k,
                .reference = reference_top_k,
                .cut = cut_beside_axis}};
}

}  // namespace polyphase

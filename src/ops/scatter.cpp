// scatter_elements, scatter_nd: a copy of x in which the elements that indices name are replaced or combined.
#include <cmath>

#include "ops/dense.h"
#include "ops/families.h"
#include "ops/indices.h"

namespace polyphase {
namespace {

enum class Reduction : std::uint8_t { none, add, mul, max, min };

Reduction reduction_of(const Attributes& attributes) {
  const std::string& word = attributes.get<std::string>("reduction");
  if (word == "add") return Reduction::add;
  if (word == "mul") return Reduction::mul;
  if (word == "max") return Reduction::max;
  return word == "min" ? Reduction::min : Reduction::none;
}

Result<void> expect_updates(const InferContext& context, const Shape& expected) {
  TRY_VOID(expect_same_dtype(context, 0, 2));
  if (context.attributes().get<std::string>("reduction") != "none") {
    TRY_VOID(expect_dtype(context, 0, DTypeSet::numbers));
  }
  const Shape& updates = context.shape(2);
  if (updates.rank() != expected.rank()) {
    return refuse(context, "'updates' must have the shape " + expected.text() + ", found " + updates.text() + ".");
  }
  for (int i = 0; i < updates.rank(); ++i) {
    const std::string words = "axis " + std::to_string(i) + " of 'updates'";
    TRY_VOID(expect_equal(context, updates[i], words, expected[i], "what x and indices ask for"));
  }
  return {};
}

Result<std::vector<Type>> infer_scatter_elements(const InferContext& context) {
  TRY_VOID(expect_indices(context));
  const Type& x = context.input(0);
  const Shape& indices = context.shape(1);
  TRY(const int axis, expect_axis(context, "axis", x.shape.rank()));
  if (indices.rank() != x.shape.rank()) {
    return refuse(context,
                  "'indices' must have the rank of 'x', found " + indices.text() + " and " + x.shape.text() + ".");
  }
  TRY_VOID(expect_updates(context, indices));
  for (int i = 0; i < indices.rank(); ++i) {
    if (i == axis) continue;
    TRY_VOID(context.require(indices[i], DimCheck::Relation::less_equal, x.shape[i],
                             "scatter_elements: axis " + std::to_string(i) + " of 'indices' (" + indices[i].text() +
                                 ") must not exceed that of 'x' (" + x.shape[i].text() + ")."));
  }
  return std::vector<Type>{x};
}

Result<std::vector<Type>> infer_scatter_nd(const InferContext& context) {
  TRY_VOID(expect_indices(context));
  const Type& x = context.input(0);
  const Shape& indices = context.shape(1);
  const auto depth = indices.rank() < 1 ? std::nullopt : indices[indices.rank() - 1].constant();
  if (!depth.has_value() || *depth < 1 || *depth > x.shape.rank()) {
    return refuse(context, "the last axis of 'indices' must be a known number from 1 to the rank of 'x', " +
                               std::to_string(x.shape.rank()) + ", found " + indices.text() + ".");
  }
  Shape updates;
  for (int i = 0; i + 1 < indices.rank(); ++i) updates.push_back(indices[i]);
  for (int i = static_cast<int>(*depth); i < x.shape.rank(); ++i) updates.push_back(x.shape[i]);
  TRY_VOID(expect_updates(context, updates));
  return std::vector<Type>{x};
}

// u64 keeps its order as int64 when the top bits are flipped. NaN wins over numbers.
double greater(double a, double b) { return b > a || std::isnan(b) ? b : a; }
std::int64_t greater(std::int64_t a, std::int64_t b) { return std::max(a, b); }
double lesser(double a, double b) { return b < a || std::isnan(b) ? b : a; }
std::int64_t lesser(std::int64_t a, std::int64_t b) { return std::min(a, b); }

template <typename T>
T combine_element(Reduction reduction, T a, T b) {
  switch (reduction) {
    case Reduction::add:
      return multiply_add(a, b, T{1});
    case Reduction::mul:
      return multiply_add(T{0}, a, b);
    case Reduction::max:
      return greater(a, b);
    case Reduction::min:
      return lesser(a, b);
    case Reduction::none:
      break;
  }
  return b;
}

// Row-major numbers of x and the updates; place(i, j) combines element i of x with update j.
template <typename T>
struct Combined {
  explicit Combined(const ReferenceContext& context)
      : reduction(reduction_of(context.attributes)),
        x(dense_values<T>(context.inputs[0])),
        updates(dense_values<T>(context.inputs[2])),
        flips(context.inputs[0].dtype == DType::u64 && (reduction == Reduction::max || reduction == Reduction::min)) {}

  void place(std::int64_t i, std::int64_t j) {
    T& to = x[static_cast<std::size_t>(i)];
    T by = updates[static_cast<std::size_t>(j)];
    if constexpr (std::is_same_v<T, std::int64_t>) {
      const std::int64_t flip = flips ? INT64_MIN : 0;
      to = combine_element(reduction, to ^ flip, by ^ flip) ^ flip;
    } else {
      to = combine_element(reduction, to, by);
    }
  }

  Reduction reduction;
  std::vector<T> x;
  std::vector<T> updates;
  bool flips;
};

// Calls place(element of x, update) for each index; both numbered in row-major order.
template <typename F>
Result<void> walk_elements(const ReferenceContext& context, F&& place) {
  const TensorDesc x = TensorDesc::row_major(context.inputs[0].dtype, context.inputs[0].size_span());
  const TensorView& indices = context.inputs[1];
  const auto axis = static_cast<std::size_t>(context.attributes.get<std::int64_t>("axis"));
  std::array<std::int64_t, max_rank> strides = x.strides;
  strides[axis] = 0;
  Result<void> done;
  std::int64_t update = 0;
  for_each_index<2>(indices.size_span(), {indices.strides.data(), strides.data()}, [&](const auto& at) {
    if (!done.ok()) return;
    auto index = index_at(indices, at[0], x.sizes[axis]);
    if (index.ok()) {
      place(at[1] + *index * x.strides[axis], update++);
    } else {
      done = std::move(index).error();
    }
  });
  return done;
}

// The same for tuples: each names a slab of x, all of whose elements meet as many updates.
template <typename F>
Result<void> walk_tuples(const ReferenceContext& context, F&& place) {
  const TensorDesc x = TensorDesc::row_major(context.inputs[0].dtype, context.inputs[0].size_span());
  const TensorView& indices = context.inputs[1];
  const auto tuple_axis = static_cast<std::size_t>(indices.rank - 1);
  const auto depth = static_cast<std::size_t>(indices.sizes[tuple_axis]);
  std::int64_t slab = 1;
  for (std::size_t i = depth; i < static_cast<std::size_t>(x.rank); ++i) slab *= x.sizes[i];
  Result<void> done;
  std::int64_t update = 0;
  for_each_index<1>({indices.sizes.data(), tuple_axis}, {indices.strides.data()}, [&](const auto& at) {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < depth && done.ok(); ++i) {
      auto index = index_at(indices, at[0] + static_cast<std::int64_t>(i) * indices.strides[tuple_axis], x.sizes[i]);
      if (index.ok()) {
        first += *index * x.strides[i];
      } else {
        done = std::move(index).error();
      }
    }
    if (!done.ok()) return;
    for (std::int64_t i = 0; i < slab; ++i) place(first + i, update++);
  });
  return done;
}

template <typename Walk>
Result<void> scatter_elements(const ReferenceContext& context, Walk&& walk) {
  return with_accumulator(context.inputs[0].dtype, [&]<typename T>(T) -> Result<void> {
    Combined<T> combined(context);
    TRY_VOID(walk(context, [&](std::int64_t i, std::int64_t j) { combined.place(i, j); }));
    store_values(combined.x, context.outputs[0]);
    return {};
  });
}

Result<void> reference_scatter_elements(const ReferenceContext& context) {
  return scatter_elements(context, [](const ReferenceContext& c, auto&& place) { return walk_elements(c, place); });
}

Result<void> reference_scatter_nd(const ReferenceContext& context) {
  return scatter_elements(context, [](const ReferenceContext& c, auto&& place) { return walk_tuples(c, place); });
}

}  // namespace

std::vector<OpDef> scatter_operators() {
  const OperandSpec indices{"indices",
                            "i64 or i32; negative ones count from the end; one out of range is an error at run time"};
  const AttributeSpec reduction{"reduction",
                                AttributeKind::word,
                                "how an update meets the element; none replaces it, and of two for one element the "
                                "last in row-major order counts",
                                Attribute(std::string("none")),
                                {"none", "add", "mul", "max", "min"}};
  return {
      OpDef{.name = "scatter_elements",
            .doc = "A copy y of x with y[i, …, indices[i, j, …], …] = updates[i, j, …]: one index per update, along an "
                   "axis. Source: ONNX operator ScatterElements; torch.scatter.",
            .inputs = {{"x", "any dtype, rank >= 1"}, indices, {"updates", "the dtype of x, the shape of indices"}},
            .outputs = {{"y", "the type of x"}},
            .attributes = {{"axis", AttributeKind::integer, "which axis is indexed"}, reduction},
            .infer = infer_scatter_elements,
            .reference = reference_scatter_elements,
            .one_dtype = 0b101},
      OpDef{.name = "scatter_nd",
            .doc = "A copy y of x in which the slab y[indices[i, 0], indices[i, 1], …, :] is updates[i, :]. Source: "
                   "ONNX operator ScatterND; x[…] = updates in PyTorch.",
            .inputs = {{"x", "any dtype, rank >= 1"},
                       indices,
                       {"updates",
                        "the dtype of x; the shape of indices without its last axis, then the axes of x "
                        "that are not indexed"}},
            .outputs = {{"y", "the type of x"}},
            .attributes = {reduction},
            .infer = infer_scatter_nd,
            .reference = reference_scatter_nd,
            .one_dtype = 0b101},
  };
}

}  // namespace polyphase

// Pairs taken apart and put together.
#include "import/torch/complex_parts.h"

#include <cmath>

namespace polyphase {
namespace {

// The value before a reshape that only adds the axis of the pair; else null.
Value* without_pair_axis(const Composer& c, Value* value) {
  const Node* const node = value->producer;
  if (node == nullptr || !node->is("reshape")) return nullptr;
  Composer::Sizes shape = c.sizes(value);
  shape.pop_back();
  return c.sizes(node->input(0)) == shape ? node->input(0) : nullptr;
}

}  // namespace

ComplexParts parts_of(Composer& c, Value* pairs) {
  if (!c.ok()) return {};
  const int last = c.rank(pairs) - 1;
  if (const Node* const node = pairs->producer; node != nullptr && node->is("concat") && node->inputs().size() == 2 &&
                                                node->attributes().get<std::int64_t>("axis") == last) {
    const ComplexParts found{without_pair_axis(c, node->input(0)), without_pair_axis(c, node->input(1))};
    if (found.real != nullptr && found.imaginary != nullptr) return found;
  }
  const auto part = [&](std::int64_t which) { return c.squeeze(c.slice(pairs, last, which, 1), last); };
  return {part(0), part(1)};
}

Value* joined(Composer& c, const ComplexParts& parts) {
  const int rank = c.rank(parts.real);
  return c.concat({c.unsqueeze(parts.real, rank), c.unsqueeze(parts.imaginary, rank)}, rank);
}

bool is_nothing(const Value* value) {
  const Node* const node = value == nullptr ? nullptr : value->producer;
  if (node == nullptr) return false;
  if (node->is("expand")) return is_nothing(node->input(0));
  const Tensor* const tensor = node->constant();
  return tensor != nullptr && tensor->view().element_count() == 1 && is_float(value->type.dtype) &&
         load_double(tensor->view().data, value->type.dtype) == 0;
}

Value* nothing_like(Composer& c, Value* value) { return c.expand(c.number(0, c.dtype(value)), c.sizes(value)); }

Value* as_pairs(Composer& c, Value* value, bool is_complex, DType dtype) {
  value = c.cast(value, dtype);
  return is_complex || !c.ok() ? value : joined(c, {value, nothing_like(c, value)});
}

Value* as_pairs(AtenNode& node, Composer& c, std::string_view parameter, DType dtype) {
  if (node.is_number(parameter)) {
    const AtenScalar& number = node.scalar(parameter);
    if (number.kind == AtenScalar::Kind::complex)
      return node.constant(
          Tensor::from_values(dtype, Composer::Integers{2}, std::vector{number.value, number.imaginary}));
  }
  return as_pairs(c, node.tensor_as(parameter, dtype), node.is_complex(parameter), dtype);
}

int program_rank(AtenNode& node, std::string_view parameter) {
  const Values given = node.tensors(parameter);
  if (given.empty() || given.front() == nullptr) return 0;
  return given.front()->type.shape.rank() - (node.is_complex(parameter) ? 1 : 0);
}

// In one reduction, whose squares do not overflow.
Value* magnitude(Composer& c, Value* pairs) { return c.reduce("reduce_l2", pairs, {c.rank(pairs) - 1}, false); }

Value* product(Composer& c, Value* a, Value* b) {
  const ComplexParts left = parts_of(c, a);
  const ComplexParts right = parts_of(c, b);
  return joined(c, {c.sub(c.mul(left.real, right.real), c.mul(left.imaginary, right.imaginary)),
                    c.add(c.mul(left.real, right.imaginary), c.mul(left.imaginary, right.real))});
}

Value* angle_of(Composer& c, Value* y, Value* x) {
  const DType dtype = c.dtype(x);
  const auto number = [&](double value) { return c.number(value, dtype); };
  Value* const zero = number(0);
  Value* const below = c.op("less", {y, zero});
  // 1/x tells -0 from 0.
  Value* const left = c.op("less", {x, zero});
  Value* const minus_zero = c.op("and", {c.op("equal", {x, zero}), c.op("less", {c.op("reciprocal", {x}), zero})});
  Value* const y_sign =
      c.op("or", {below, c.op("and", {c.op("equal", {y, zero}), c.op("less", {c.op("reciprocal", {y}), zero})})});
  Value* const half_turn = c.where(y_sign, number(-M_PI), number(M_PI));
  Value* const quarter = c.where(y_sign, number(-M_PI / 2), number(M_PI / 2));
  Value* const slope = c.op("atan", {c.div(y, x)});
  Value* const turned = c.where(left, c.add(slope, half_turn), slope);
  // On the vertical axis, and at its middle.
  Value* const middle = c.where(minus_zero, half_turn, c.mul(quarter, 0.0));
  Value* const vertical = c.where(c.op("equal", {y, zero}), middle, quarter);
  Value* const both_infinite = c.op("and", {c.op("is_inf", {x}), c.op("is_inf", {y})});
  Value* const corner = c.where(left, c.mul(quarter, 1.5), c.mul(quarter, 0.5));
  Value* const found = c.where(c.op("equal", {x, zero}), vertical, turned);
  // A NaN in y has no place on the axis; one in x is in the slope.
  return c.where(both_infinite, corner, c.where(c.op("is_nan", {y}), y, found));
}

}  // namespace polyphase

// The arithmetic that a shape rule calls, and what it wrote, read back.
#include "plugin/shape_rule.h"

#include <algorithm>
#include <array>

#include "plugin/definition.h"
#include "plugin/values.h"

namespace polyphase {
namespace {

constexpr std::size_t most_handles = 100'000;  // a rule that loops for ever must not eat the memory

// What the callbacks find behind the struct that they are given: every size that this call has named, by handle - 1.
struct ShapeCall : polyphase_op_shapes {
  mutable std::vector<Dim> handles;
  mutable std::string refusal;  // of a `require`
  std::vector<DimCheck>* checks = nullptr;

  polyphase_size handle_of(Dim size) const {
    if (handles.size() >= most_handles) return 0;
    handles.push_back(std::move(size));
    return static_cast<polyphase_size>(handles.size());
  }
  bool knows(polyphase_size handle) const { return handle > 0 && static_cast<std::size_t>(handle) <= handles.size(); }
  Dim at(polyphase_size handle) const {
    return knows(handle) ? handles[static_cast<std::size_t>(handle) - 1] : Dim::poisoned();
  }
};

const ShapeCall& call_of(const polyphase_op_shapes* shapes) { return *static_cast<const ShapeCall*>(shapes); }

using Combine = Dim (*)(const Dim&, const Dim&);

template <Combine combine>
polyphase_size combined(const polyphase_op_shapes* shapes, polyphase_size a, polyphase_size b) {
  const ShapeCall& call = call_of(shapes);
  return call.handle_of(combine(call.at(a), call.at(b)));
}

Dim sum_of(const Dim& a, const Dim& b) { return a + b; }
Dim difference_of(const Dim& a, const Dim& b) { return a - b; }
Dim product_of(const Dim& a, const Dim& b) { return a * b; }
Dim quotient_of(const Dim& a, const Dim& b) { return floor_div(a, b); }
Dim remainder_of(const Dim& a, const Dim& b) { return floor_mod(a, b); }
Dim smaller_of(const Dim& a, const Dim& b) { return min(a, b); }
Dim larger_of(const Dim& a, const Dim& b) { return max(a, b); }

int32_t known_size(const polyphase_op_shapes* shapes, polyphase_size size, int64_t* value) {
  const auto number = call_of(shapes).at(size).constant();
  if (number.has_value() && value != nullptr) *value = *number;
  return number.has_value() ? 1 : 0;
}

template <DimCheck::Relation relation>
int32_t require(const polyphase_op_shapes* shapes, polyphase_size a, polyphase_size b, const char* why) {
  const ShapeCall& call = call_of(shapes);
  if (!call.refusal.empty()) return 1;
  const Dim left = call.at(a);
  const Dim right = call.at(b);
  std::string words = plain_text(why);
  if (words.empty()) words = left.text() + " " + std::string(name_of(relation)) + " " + right.text() + " must hold.";
  if (left.overflowed() || right.overflowed()) {
    call.refusal = "a size that is no handle of this call, or overflows, is where this must hold: " + words;
    return 1;
  }
  auto done = DimDemands(*call.checks).require(left, relation, right, words);
  if (done.ok()) return 0;
  call.refusal = done.error().message;
  return 1;
}

Error lie(const OpDef& op, std::string what) {
  return {ErrorCode::invalid_model, "the shape rule of the plugin's operator '" + op.name + "' is wrong: " + what,
          "Correct the plugin's shape function; include/polyphase/polyphase_op.h says what it is given and gives."};
}

Result<Type> type_written(const ShapeCall& call, const OpDef& op, std::size_t i) {
  const polyphase_op_type& written = call.outputs[i];
  const std::string who = "result " + std::to_string(i) + " ('" + op.outputs[i].name + "') ";
  if (written.dtype < 0 || written.dtype >= dtype_count) {
    return lie(op, who + "has dtype number " + std::to_string(written.dtype) + ", which is none" +
                       (written.dtype == -1 ? ": it was not written." : "."));
  }
  if (written.rank < 0 || written.rank > max_rank) {
    return lie(op,
               who + "has rank " + std::to_string(written.rank) + "; the highest is " + std::to_string(max_rank) + ".");
  }
  Type type{static_cast<DType>(written.dtype), {}};
  for (int axis = 0; axis < written.rank; ++axis) {
    const polyphase_size handle = written.sizes[axis];
    const std::string where = "axis " + std::to_string(axis) + " of " + who;
    if (!call.knows(handle))
      return lie(op, where + "is " + std::to_string(handle) + ", no size that this call has given.");
    const Dim size = call.at(handle);
    if (size.overflowed()) return lie(op, where + "overflows 64 bits, or divides by 0.");
    if (size.range().high < 0) return lie(op, where + "is negative: " + size.text() + ".");
    type.shape.push_back(size);
  }
  return type;
}

void write_inputs(ShapeCall& call, std::span<const OperandInfo> inputs, std::vector<polyphase_op_type>& types) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    polyphase_op_type& type = types[i];
    type.dtype = -1;
    if (!inputs[i].present()) continue;
    type.dtype = static_cast<polyphase_dtype>(inputs[i].type->dtype);
    type.rank = inputs[i].type->shape.rank();
    for (int axis = 0; axis < type.rank; ++axis) type.sizes[axis] = call.handle_of(inputs[i].type->shape[axis]);
  }
}

void write_arithmetic(polyphase_op_shapes& shapes) {
  shapes.constant = [](const polyphase_op_shapes* of, int64_t value) { return call_of(of).handle_of(Dim(value)); };
  shapes.add = combined<sum_of>;
  shapes.subtract = combined<difference_of>;
  shapes.multiply = combined<product_of>;
  shapes.floor_divide = combined<quotient_of>;
  shapes.modulo = combined<remainder_of>;
  shapes.minimum = combined<smaller_of>;
  shapes.maximum = combined<larger_of>;
  shapes.known = known_size;
  shapes.require_equal = require<DimCheck::Relation::equal>;
  shapes.require_less_equal = require<DimCheck::Relation::less_equal>;
}

Error refused_by_rule(const OpDef& op, int32_t status, std::string words) {
  if (words.empty()) words = "it returned " + std::to_string(status) + " and no message.";
  return {ErrorCode::invalid_model,
          "the shape rule of the plugin's operator '" + op.name + "' refuses the operands: " + words,
          "Give the operator what its plugin takes."};
}

}  // namespace

Result<std::vector<Type>> call_shape_rule(const ShapeRule& rule, const OpDef& op, const Attributes& attributes,
                                          std::span<const OperandInfo> inputs, std::vector<DimCheck>& checks) {
  std::vector<polyphase_op_value> values(op.attributes.size());
  write_values(attributes, op.attributes, values.data());
  std::vector<polyphase_op_type> in(std::max(inputs.size(), op.inputs.size()));
  std::vector<polyphase_op_type> out(op.outputs.size(), polyphase_op_type{-1, -1, {}});
  std::array<char, plugin_message_bytes> message{};
  ShapeCall call{};
  write_inputs(call, inputs, in);
  for (std::size_t i = inputs.size(); i < in.size(); ++i) in[i].dtype = -1;
  write_arithmetic(call);
  call.struct_size = sizeof(polyphase_op_shapes);
  call.op = rule.given;
  call.input_count = in.size();
  call.inputs = in.data();
  call.attributes = values.data();
  call.output_count = out.size();
  call.outputs = out.data();
  call.message = message.data();
  call.message_bytes = message.size();
  call.checks = &checks;
  int32_t status = 0;
  try {
    status = rule.definition.shape(&call);
  } catch (...) {
    return lie(op, "it threw a C++ exception.");
  }
  message.back() = '\0';
  if (!call.refusal.empty()) return refused_by_rule(op, status, call.refusal);
  if (status != 0) return refused_by_rule(op, status, plain_text(message.data()));
  if (call.handles.size() >= most_handles)
    return lie(op, "one call of it makes more than " + std::to_string(most_handles) + " sizes.");
  std::vector<Type> types;
  for (std::size_t i = 0; i < out.size(); ++i) {
    TRY(Type type, type_written(call, op, i));
    types.push_back(std::move(type));
  }
  return types;
}

}  // namespace polyphase

// A plugin whose operators do what they should not, one each, beside some that are right; and, compiled with FAULT,
// ones that cannot even be loaded.
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "polyphase/polyphase_op.h"

#ifndef FAULT
#define FAULT 0
#endif

namespace {

std::int32_t say(char* message, std::size_t bytes, const char* words) {
  std::snprintf(message, bytes, "%s", words);
  return 7;
}

// ------------------------------------------------------------ shape rules

using Shapes = const polyphase_op_shapes*;

std::int32_t same(Shapes s) {
  s->outputs[0] = s->inputs[0];
  return 0;
}
void set_last(Shapes s, polyphase_size size) { s->outputs[0].sizes[s->outputs[0].rank - 1] = size; }
polyphase_size last(Shapes s) { return s->inputs[0].sizes[s->inputs[0].rank - 1]; }

std::int32_t negative(Shapes s) {
  same(s);
  set_last(s, s->constant(s, -1));
  return 0;
}
std::int32_t unwritten(Shapes) { return 0; }
std::int32_t strange_dtype(Shapes s) {
  same(s);
  s->outputs[0].dtype = 99;
  return 0;
}
std::int32_t strange_rank(Shapes s) {
  same(s);
  s->outputs[0].rank = 9;
  return 0;
}
std::int32_t strange_handle(Shapes s) {
  same(s);
  set_last(s, 12345);
  return 0;
}
std::int32_t overflows(Shapes s) {
  same(s);
  set_last(s, s->multiply(s, s->constant(s, INT64_MAX), s->constant(s, 3)));
  return 0;
}
std::int32_t divides_by_zero(Shapes s) {
  same(s);
  set_last(s, s->floor_divide(s, last(s), s->constant(s, 0)));
  return 0;
}
// Says one thing of sizes that are not known and another once they are.
std::int32_t lies(Shapes s) {
  same(s);
  std::int64_t size = 0;
  if (s->known(s, last(s), &size)) set_last(s, s->add(s, last(s), s->constant(s, 1)));
  return 0;
}
std::int32_t lies_at_77(Shapes s) {
  same(s);
  std::int64_t size = 0;
  if (s->known(s, last(s), &size) && size == 77) set_last(s, s->constant(s, 78));
  return 0;
}
std::int32_t refuses(Shapes s) { return say(s->message, s->message_bytes, "only on\nTuesdays."); }
std::int32_t refuses_silently(Shapes) { return -3; }
std::int32_t throws(Shapes) { throw std::runtime_error("no"); }
std::int32_t is_endless(Shapes s) {
  same(s);
  for (int i = 0; i < 1'000'000; ++i) set_last(s, s->add(s, last(s), s->constant(s, i)));
  return 0;
}
// All operations, for a size that is (2·n + 6) / 3 with floor((2·n + 6) mod 3, …) ignored: max(min(q, 1000), r - 5).
std::int32_t reckons(Shapes s) {
  same(s);
  const polyphase_size sum = s->add(s, s->multiply(s, last(s), s->constant(s, 2)), s->constant(s, 6));
  const polyphase_size quotient = s->floor_divide(s, sum, s->constant(s, 3));
  const polyphase_size rest = s->modulo(s, sum, s->constant(s, 3));
  set_last(s, s->maximum(s, s->minimum(s, quotient, s->constant(s, 1000)), s->subtract(s, rest, s->constant(s, 5))));
  return s->require_less_equal(s, s->constant(s, 2), last(s), "reckons needs two places.");
}
std::int32_t shrinks(Shapes s) {
  same(s);
  set_last(s, s->subtract(s, last(s), s->constant(s, 5)));
  return 0;
}
std::int32_t equals(Shapes s) {
  same(s);
  return s->require_equal(s, last(s), s->inputs[1].sizes[s->inputs[1].rank - 1], "equals needs equal sizes.");
}
std::int32_t ignores_refusal(Shapes s) {
  same(s);
  s->require_equal(s, s->constant(s, 1), s->constant(s, 2), "one is not two.");
  return 0;
}

// ------------------------------------------------------------ kernels

using Call = const polyphase_op_call*;

std::int64_t count(const polyphase_op_tensor& tensor) {
  std::int64_t out = 1;
  for (std::int32_t axis = 0; axis < tensor.rank; ++axis) out *= tensor.sizes[axis];
  return out;
}
const float* floats(const polyphase_op_tensor& tensor) { return static_cast<const float*>(tensor.data); }

// All operands that are there, added up, times the attribute, plus that of the tensor's first element.
std::int32_t sum(Call call) {
  auto* to = static_cast<float*>(call->outputs[0].data);
  const float times = call->op->attribute_count == 0 ? 1 : static_cast<float>(call->attributes[0].real);
  const std::int64_t all = count(call->outputs[0]);
  for (std::int64_t i = call->tile; i < all; i += call->tile_count) {
    to[i] = 0;
    for (std::size_t operand = 0; operand < call->input_count; ++operand) {
      if (call->inputs[operand].dtype == -1) continue;
      to[i] += times * floats(call->inputs[operand])[i % count(call->inputs[operand])];
    }
  }
  return 0;
}
std::int32_t zeros(Call call) {
  std::memset(call->outputs[0].data, 0, static_cast<std::size_t>(count(call->outputs[0])) * sizeof(float));
  return 0;
}
std::int32_t fails_on_negative(Call call) {
  if (floats(call->inputs[0])[0] < 0) return say(call->message, call->message_bytes, "found a negative number.");
  return sum(call);
}
std::int32_t kernel_throws(Call) { throw 3; }
std::int32_t by_scratch(Call call) {
  if (call->scratch_bytes != 4096 || reinterpret_cast<std::uintptr_t>(call->scratch) % 64 != 0)
    return say(call->message, call->message_bytes, "the scratch is not what was asked for.");
  std::memset(call->scratch, 0x5a, call->scratch_bytes);
  return sum(call);
}
// Hands the attributes on as numbers: flag, integer, real, text length, sum of integers, sum of reals.
std::int32_t tells_attributes(Call call) {
  auto* to = static_cast<float*>(call->outputs[0].data);
  const polyphase_op_value* given = call->attributes;
  to[0] = static_cast<float>(given[0].integer);
  to[1] = static_cast<float>(given[1].integer);
  to[2] = static_cast<float>(given[2].real);
  to[3] = static_cast<float>(std::strlen(given[3].text));
  to[4] = to[5] = 0;
  for (std::size_t i = 0; i < given[4].count; ++i) to[4] += static_cast<float>(given[4].integers[i]);
  for (std::size_t i = 0; i < given[5].count; ++i) to[5] += static_cast<float>(given[5].reals[i]);
  return 0;
}
std::int32_t six(Shapes s) {
  s->outputs[0].dtype = POLYPHASE_F32;
  s->outputs[0].rank = 1;
  s->outputs[0].sizes[0] = s->constant(s, 6);
  return 0;
}

std::int32_t seven_tiles(Call, polyphase_op_plan* plan) {
  plan->tile_count = 7;
  plan->scratch_bytes = 4096;
  return 0;
}
std::int32_t minus_one_tile(Call, polyphase_op_plan* plan) {
  plan->tile_count = -1;
  return 0;
}

// ------------------------------------------------------------ tables

const polyphase_op_operand one_input[] = {{"x", 0}};
const polyphase_op_operand two_inputs[] = {{"x", 0}, {"y", 0}};
const polyphase_op_operand maybe_inputs[] = {{"x", 0}, {"y", POLYPHASE_OP_OPTIONAL}, {"z", POLYPHASE_OP_OPTIONAL}};
const polyphase_op_operand many_inputs[] = {{"x", 0}, {"others", POLYPHASE_OP_VARIADIC}};
#if FAULT == 6
const polyphase_op_operand optional_input[] = {{"x", POLYPHASE_OP_OPTIONAL}};
#endif
const char* const y_output[] = {"y"};

polyphase_op_value real_value(double real) {
  polyphase_op_value out{};
  out.kind = POLYPHASE_OP_REAL;
  out.real = real;
  return out;
}
polyphase_op_value of_kind(polyphase_op_kind kind) {
  polyphase_op_value out{};
  out.kind = kind;
  out.text = "";
  return out;
}

const polyphase_op_attribute times[] = {{"times", POLYPHASE_OP_REAL, 0, real_value(2)}};
const polyphase_op_attribute every_kind[] = {{"flag", POLYPHASE_OP_BOOLEAN, 0, of_kind(POLYPHASE_OP_BOOLEAN)},
                                             {"number", POLYPHASE_OP_INTEGER, 1, {}},
                                             {"real", POLYPHASE_OP_REAL, 0, real_value(0.5)},
                                             {"text", POLYPHASE_OP_TEXT, 0, of_kind(POLYPHASE_OP_TEXT)},
                                             {"integers", POLYPHASE_OP_INTEGERS, 0, of_kind(POLYPHASE_OP_INTEGERS)},
                                             {"reals", POLYPHASE_OP_REALS, 0, of_kind(POLYPHASE_OP_REALS)}};

struct Made : polyphase_op {
  Made(const char* its_name, std::int32_t (*rule)(Shapes), std::int32_t (*kernel)(Call) = sum) : polyphase_op{} {
    struct_size = sizeof(polyphase_op);
    name = its_name;
    version = 3;
    input_count = 1;
    inputs = one_input;
    output_count = 1;
    outputs = y_output;
    shape = rule;
    run = kernel;
  }
  template <std::size_t N>
  Made& takes(const polyphase_op_operand (&operands)[N]) {
    input_count = N;
    inputs = operands;
    return *this;
  }
  template <std::size_t N>
  Made& has(const polyphase_op_attribute (&list)[N]) {
    attribute_count = N;
    attributes = list;
    return *this;
  }
  Made& divides(std::int32_t (*how)(Call, polyphase_op_plan*)) {
    plan = how;
    return *this;
  }
};

#if FAULT == 9
const polyphase_op_onnx_claim claims[] = {{"", "Relu"}};
#else
const polyphase_op_onnx_claim claims[] = {{"com.example", "Twice"}};
#endif

const polyphase_op_cuda cuda = {1, sizeof(polyphase_op_cuda)};

Made twice() {
  Made out = Made("twice", same).has(times);
  out.onnx_claim_count = 1;
  out.onnx_claims = claims;
  out.cuda = &cuda;
#if FAULT == 3
  out.run = nullptr;
#elif FAULT == 4
  out.struct_size = 8;
#elif FAULT == 5
  out.name = "Twice!";
#elif FAULT == 6
  out.inputs = optional_input;
#elif FAULT == 7
  out.inputs = nullptr;
#elif FAULT == 10
  out.version = 4;
#endif
  return out;
}

Made made[] = {
    twice(),
    Made("negative", negative),
    Made("unwritten", unwritten),
    Made("strange_dtype", strange_dtype),
    Made("strange_rank", strange_rank),
    Made("strange_handle", strange_handle),
    Made("overflows", overflows),
    Made("divides_by_zero", divides_by_zero),
    Made("lies", lies),
    Made("lies_at_77", lies_at_77),
    Made("refuses", refuses),
    Made("refuses_silently", refuses_silently),
    Made("throws", throws),
    Made("endless", is_endless),
    Made("reckons", reckons, zeros),
    Made("shrinks", shrinks, zeros),
    Made("equals", equals).takes(two_inputs),
    Made("ignores_refusal", ignores_refusal),
    Made("fails_on_negative", same, fails_on_negative),
    Made("kernel_throws", same, kernel_throws),
    Made("tiled", same, by_scratch).divides(seven_tiles),
    Made("minus_one_tile", same).divides(minus_one_tile),
    Made("maybe", same).takes(maybe_inputs),
    Made("many", same).takes(many_inputs),
    Made("tells_attributes", six, tells_attributes).has(every_kind),
};

constexpr std::size_t made_count = sizeof(made) / sizeof(made[0]);
[[maybe_unused]] const polyphase_op* ops[made_count];
[[maybe_unused]] polyphase_plugin plugin = {POLYPHASE_OP_ABI, sizeof(polyphase_plugin), "faulty", made_count, ops};

}  // namespace

#if FAULT != 1
extern "C" const polyphase_plugin* polyphase_get_plugin(void) {
  for (std::size_t i = 0; i < made_count; ++i) ops[i] = &made[i];
#if FAULT == 2
  plugin.abi = 99;
#elif FAULT == 8
  return nullptr;
#elif FAULT == 11
  plugin.name = "other";
#elif FAULT == 12
  plugin.op_count = 0;
#endif
  return &plugin;
}
#endif

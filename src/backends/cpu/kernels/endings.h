// What a kernel does to its results before they leave the registers or the innermost cache: the ending program.
//
// A program is at most sixteen steps, and as many that keep what is between them, each an elementwise function of the
// running value and, for the binary ones, of an operand that broadcasts by strides of 0: a bias has only a channel
// stride, a residual has all of them, a scalar none.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv_shape.h"
#include "kernel/row.h"

namespace polyphase::cpu {

enum class EndingKind : uint8_t {
  add,            // x + v
  add_bf16,       // x + v, which is stored in bf16
  subtract,       // x - v
  multiply,       // x * v
  divide,         // x / v
  subtract_from,  // v - x
  divide_into,    // v / x
  minimum,        // NaN if either is
  maximum,
  power,       // x to the v
  keep,        // x, which is written to v as well
  prelu,       // x < 0 ? x * v : x; the last with an operand
  relu,        // max(0, x)
  leaky_relu,  // x < 0 ? x * alpha : x
  clip,        // min(beta, max(alpha, x))
  sigmoid,
  tanh,
  silu,          // x * sigmoid(x)
  gelu_erf,      // x/2 * (1 + erf(x / sqrt 2))
  gelu_tanh,     // x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
  hard_sigmoid,  // clip(alpha * x + beta, 0, 1)
  hard_swish,    // x * clip(x/6 + 1/2, 0, 1)
  mish,          // x * tanh(softplus(x))
  elu,           // x < 0 ? alpha * (exp(x) - 1) : x
  softplus,      // log(1 + exp(x))
  exp,
  log,
  abs,
  negate,
  square,
  square_root,
  reciprocal,
  floor,
  ceil,
  round,  // ties to even
  sign,
  sin,
  cos,
  erf,
  softsign,          // x / (1 + |x|)
  selu,              // beta * (x > 0 ? x : alpha * (exp(x) - 1))
  celu,              // x > 0 ? x : alpha * (exp(x / alpha) - 1)
  thresholded_relu,  // x > alpha ? x : 0
  round_f16,         // to the nearest number that the dtype holds: what a cast in the middle of a chain does
  round_bf16,
  asin,
  acos,
  atan,
  tan,  // from here on lane by lane, by the C library
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
};

inline bool takes_operand(EndingKind kind) { return kind <= EndingKind::prelu; }

struct EndingStep {
  EndingKind kind;
  int8_t operand;  // index into the operands of the run; -1: none
  float alpha;
  float beta;
};

struct EndingProgram {
  static constexpr int most_endings = 16;
  static constexpr int max_steps = 2 * most_endings;
  int32_t count;
  EndingStep steps[max_steps];
  ImageStrides operands[max_steps];  // by EndingStep::operand
};

// Where a run finds the operands of a program, by EndingStep::operand: an input of the step, or one of what is kept.
struct EndingOperands {
  int32_t count;
  int32_t from[EndingProgram::max_steps];

  static constexpr int kept(std::size_t i) { return -1 - static_cast<int>(i); }
  void find(const Pointers& pointers, const float** out) const {
    for (int i = 0; i < count; ++i) {
      const std::byte* const at = from[i] >= 0 ? pointers.inputs[from[i]] : pointers.kept[kept(0) - from[i]];
      out[i] = reinterpret_cast<const float*>(at);
    }
  }
};

// Whether every operand of the endings is a constant or lies like a dense channels-last result.
inline bool endings_run(const EndingProgram& endings, int64_t channels) {
  return std::all_of(endings.steps, endings.steps + endings.count, [&](const EndingStep& step) {
    if (!takes_operand(step.kind)) return true;
    const ImageStrides& s = endings.operands[step.operand];
    return (s.channel == 1 && s.axis[2] == channels) || (s.channel == 0 && s.axis[2] == 0);
  });
}

// A program that is done in one pass on the way out, channels of one pixel at a time: a sum with what lies like them,
// then a (leaky) ReLU or a clip, either or none.
struct BriefEndings {
  bool are_all;  // of the program; otherwise the rest is not set
  int8_t added;  // which operand; -1: none
  bool added_in_bf16;
  EndingKind activation;  // relu, leaky_relu, clip, or keep: none
  float alpha;
  float beta;
};

inline BriefEndings brief_endings(const EndingProgram& program) {
  BriefEndings out = {true, -1, false, EndingKind::keep, 0, 0};
  int32_t i = 0;
  if (i < program.count &&
      (program.steps[i].kind == EndingKind::add || program.steps[i].kind == EndingKind::add_bf16) &&
      program.operands[program.steps[i].operand].channel == 1) {
    out.added_in_bf16 = program.steps[i].kind == EndingKind::add_bf16;
    out.added = program.steps[i++].operand;
  }
  const EndingKind last = i < program.count ? program.steps[i].kind : EndingKind::keep;
  if (last == EndingKind::relu || last == EndingKind::leaky_relu || last == EndingKind::clip) {
    out.activation = last;
    out.alpha = program.steps[i].alpha;
    out.beta = program.steps[i++].beta;
  }
  out.are_all = i == program.count;
  return out;
}

// Whether each element of an operand lies where the result's does, from the first one on.
inline bool lies_alike(const ImageStrides& operand, const ImageStrides& result, const ConvShape& shape) {
  bool alike = shape.batch == 1 || operand.batch == result.batch;
  alike = alike && (shape.groups * shape.out_channels == 1 || operand.channel == result.channel);
  for (int a = 0; a < 3; ++a) alike = alike && (shape.out[a] == 1 || operand.axis[a] == result.axis[a]);
  return alike;
}

// The same for a kernel that does them to its sums while they are in registers: what it adds lies in FP32 as the result
// does, of which each sum is stored where it belongs.
inline BriefEndings register_endings(const EndingProgram& program, const ImageStrides& result, const ConvShape& shape,
                                     bool stores_in_place) {
  BriefEndings out = brief_endings(program);
  if (out.added >= 0) {
    out.are_all =
        out.are_all && stores_in_place && !out.added_in_bf16 && lies_alike(program.operands[out.added], result, shape);
  }
  return out;
}

}  // namespace polyphase::cpu

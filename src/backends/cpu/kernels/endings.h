// What a kernel does to its results before they leave the registers or the innermost cache: the ending program.
//
// A program is at most eight steps, each an elementwise function of the running value and, for the binary ones, of an
// operand that broadcasts by strides of 0: a bias has only a channel stride, a residual has all of them, a scalar none.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv_shape.h"

namespace polyphase::cpu {

enum class EndingKind : uint8_t {
  kAdd,           // x + v
  kSubtract,      // x - v
  kMultiply,      // x * v
  kDivide,        // x / v
  kSubtractFrom,  // v - x
  kDivideInto,    // v / x
  kMinimum,       // NaN if either is
  kMaximum,
  kPower,      // x to the v
  kPrelu,      // x < 0 ? x * v : x; the last with an operand
  kRelu,       // max(0, x)
  kLeakyRelu,  // x < 0 ? x * alpha : x
  kClip,       // min(beta, max(alpha, x))
  kSigmoid,
  kTanh,
  kSilu,         // x * sigmoid(x)
  kGeluErf,      // x/2 * (1 + erf(x / sqrt 2))
  kGeluTanh,     // x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
  kHardSigmoid,  // clip(alpha * x + beta, 0, 1)
  kHardSwish,    // x * clip(x/6 + 1/2, 0, 1)
  kMish,         // x * tanh(softplus(x))
  kElu,          // x < 0 ? alpha * (exp(x) - 1) : x
  kSoftplus,     // log(1 + exp(x))
  kExp,
  kLog,
  kAbs,
  kNegate,
  kSquareRoot,
  kReciprocal,
  kFloor,
  kCeil,
  kRound,  // ties to even
  kSign,
  kSin,
  kCos,
  kErf,
  kSoftsign,         // x / (1 + |x|)
  kSelu,             // beta * (x > 0 ? x : alpha * (exp(x) - 1))
  kCelu,             // x > 0 ? x : alpha * (exp(x / alpha) - 1)
  kThresholdedRelu,  // x > alpha ? x : 0
  kTan,              // from here on lane by lane, by the C library
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
};

inline bool takes_operand(EndingKind kind) { return kind <= EndingKind::kPrelu; }

struct EndingStep {
  EndingKind kind;
  int8_t operand;  // index into the operands of the run; -1: none
  float alpha;
  float beta;
};

struct EndingProgram {
  static constexpr int kMaxSteps = 8;
  int32_t count;
  EndingStep steps[kMaxSteps];
  ImageStrides operands[kMaxSteps];  // by EndingStep::operand
};

}  // namespace polyphase::cpu

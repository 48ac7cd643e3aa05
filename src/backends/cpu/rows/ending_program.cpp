// The table from the IR's words to ending steps.
#include "backends/cpu/rows/ending_program.h"

#include <algorithm>
#include <string_view>

namespace polyphase::cpu {
namespace {

struct Word {
  std::string_view op;
  EndingKind kind;
  std::string_view alpha = {};  // the attributes that become EndingStep::alpha and beta
  std::string_view beta = {};
};

constexpr Word unary_words[] = {
    {"abs", EndingKind::kAbs},
    {"acos", EndingKind::kAcos},
    {"acosh", EndingKind::kAcosh},
    {"asin", EndingKind::kAsin},
    {"asinh", EndingKind::kAsinh},
    {"atan", EndingKind::kAtan},
    {"atanh", EndingKind::kAtanh},
    {"ceil", EndingKind::kCeil},
    {"celu", EndingKind::kCelu, "alpha"},
    {"clip", EndingKind::kClip, "low", "high"},
    {"cos", EndingKind::kCos},
    {"cosh", EndingKind::kCosh},
    {"elu", EndingKind::kElu, "alpha"},
    {"erf", EndingKind::kErf},
    {"exp", EndingKind::kExp},
    {"floor", EndingKind::kFloor},
    {"hard_sigmoid", EndingKind::kHardSigmoid, "alpha", "beta"},
    {"hard_swish", EndingKind::kHardSwish},
    {"leaky_relu", EndingKind::kLeakyRelu, "alpha"},
    {"log", EndingKind::kLog},
    {"mish", EndingKind::kMish},
    {"neg", EndingKind::kNegate},
    {"reciprocal", EndingKind::kReciprocal},
    {"relu", EndingKind::kRelu},
    {"round", EndingKind::kRound},
    {"selu", EndingKind::kSelu, "alpha", "gamma"},
    {"sigmoid", EndingKind::kSigmoid},
    {"sign", EndingKind::kSign},
    {"silu", EndingKind::kSilu},
    {"sin", EndingKind::kSin},
    {"sinh", EndingKind::kSinh},
    {"softplus", EndingKind::kSoftplus},
    {"softsign", EndingKind::kSoftsign},
    {"sqrt", EndingKind::kSquareRoot},
    {"tan", EndingKind::kTan},
    {"tanh", EndingKind::kTanh},
    {"thresholded_relu", EndingKind::kThresholdedRelu, "alpha"},
};

struct BinaryWord {
  std::string_view op;
  EndingKind kind;
  std::optional<EndingKind> swapped;  // with the chain's value as second operand
};

constexpr BinaryWord binary_words[] = {
    {"add", EndingKind::kAdd, EndingKind::kAdd},           {"div", EndingKind::kDivide, EndingKind::kDivideInto},
    {"max", EndingKind::kMaximum, EndingKind::kMaximum},   {"min", EndingKind::kMinimum, EndingKind::kMinimum},
    {"mul", EndingKind::kMultiply, EndingKind::kMultiply}, {"pow", EndingKind::kPower, std::nullopt},
    {"prelu", EndingKind::kPrelu, std::nullopt},           {"sub", EndingKind::kSubtract, EndingKind::kSubtractFrom},
};

float setting(const Part& part, std::string_view attribute) {
  return attribute.empty() ? 0.0F : static_cast<float>(part.attributes.get<double>(attribute));
}

}  // namespace

int running_operand(const Part& part) {
  const auto place = std::find(part.operands.begin(), part.operands.end(), static_cast<int>(Part::running));
  return place == part.operands.end() ? -1 : static_cast<int>(place - part.operands.begin());
}

std::optional<EndingStep> ending_step(const Part& part, bool running_is_second) {
  const std::string& name = part.op->name;
  if (part.operands.size() == 1) {
    if (name == "gelu") {
      const bool exact = part.attributes.get<std::string>("approximate") == "none";
      return EndingStep{exact ? EndingKind::kGeluErf : EndingKind::kGeluTanh, -1, 0, 0};
    }
    for (const Word& word : unary_words) {
      if (word.op == name) return EndingStep{word.kind, -1, setting(part, word.alpha), setting(part, word.beta)};
    }
    return std::nullopt;
  }
  if (part.operands.size() != 2) return std::nullopt;
  for (const BinaryWord& word : binary_words) {
    if (word.op != name) continue;
    if (running_is_second && !word.swapped.has_value()) return std::nullopt;
    const int other = part.operands[running_is_second ? 0 : 1];
    return EndingStep{running_is_second ? *word.swapped : word.kind, static_cast<int8_t>(other), 0, 0};
  }
  return std::nullopt;
}

std::string refuse_endings(const StepDesc& desc) {
  if (desc.endings().size() > EndingProgram::kMaxSteps) return "takes at most 8 endings";
  for (const Part& part : desc.endings()) {
    const int running = running_operand(part);
    const bool twice = std::count(part.operands.begin(), part.operands.end(), static_cast<int>(Part::running)) > 1;
    if (running < 0 || twice || !ending_step(part, running == 1).has_value())
      return "has no ending for " + part.op->name;
    for (const int operand : part.operands) {
      if (operand >= 0 && desc.inputs[static_cast<std::size_t>(operand)].type.dtype != DType::f32)
        return "endings compute in f32 only";
    }
  }
  return {};
}

}  // namespace polyphase::cpu

// The table from the IR's words to ending steps.
#include "backends/cpu/rows/ending_program.h"

#include <algorithm>
#include <string_view>

namespace polyphase::cpu {
namespace {

struct EndingWord {
  std::string_view op;
  EndingKind kind;
  std::string_view alpha = {};  // the attributes that become EndingStep::alpha and beta
  std::string_view beta = {};
};

constexpr EndingWord unary_words[] = {
    {"abs", EndingKind::abs},
    {"acos", EndingKind::acos},
    {"acosh", EndingKind::acosh},
    {"asin", EndingKind::asin},
    {"asinh", EndingKind::asinh},
    {"atan", EndingKind::atan},
    {"atanh", EndingKind::atanh},
    {"ceil", EndingKind::ceil},
    {"celu", EndingKind::celu, "alpha"},
    {"clip", EndingKind::clip, "low", "high"},
    {"cos", EndingKind::cos},
    {"cosh", EndingKind::cosh},
    {"elu", EndingKind::elu, "alpha"},
    {"erf", EndingKind::erf},
    {"exp", EndingKind::exp},
    {"floor", EndingKind::floor},
    {"hard_sigmoid", EndingKind::hard_sigmoid, "alpha", "beta"},
    {"hard_swish", EndingKind::hard_swish},
    {"leaky_relu", EndingKind::leaky_relu, "alpha"},
    {"log", EndingKind::log},
    {"mish", EndingKind::mish},
    {"neg", EndingKind::negate},
    {"reciprocal", EndingKind::reciprocal},
    {"relu", EndingKind::relu},
    {"round", EndingKind::round},
    {"selu", EndingKind::selu, "alpha", "gamma"},
    {"sigmoid", EndingKind::sigmoid},
    {"sign", EndingKind::sign},
    {"silu", EndingKind::silu},
    {"sin", EndingKind::sin},
    {"sinh", EndingKind::sinh},
    {"softplus", EndingKind::softplus},
    {"softsign", EndingKind::softsign},
    {"sqrt", EndingKind::square_root},
    {"square", EndingKind::square},
    {"tan", EndingKind::tan},
    {"tanh", EndingKind::tanh},
    {"thresholded_relu", EndingKind::thresholded_relu, "alpha"},
};

struct BinaryWord {
  std::string_view op;
  EndingKind kind;
  std::optional<EndingKind> swapped;  // with the chain's value as second operand
};

constexpr BinaryWord binary_words[] = {
    {"add", EndingKind::add, EndingKind::add},
    {"add_mixed", EndingKind::add, std::nullopt},
    {"div", EndingKind::divide, EndingKind::divide_into},
    {"max", EndingKind::maximum, EndingKind::maximum},
    {"min", EndingKind::minimum, EndingKind::minimum},
    {"mul", EndingKind::multiply, EndingKind::multiply},
    {"pow", EndingKind::power, std::nullopt},
    {"prelu", EndingKind::prelu, std::nullopt},
    {"sub", EndingKind::subtract, EndingKind::subtract_from},
};

// A sum with what is stored in bf16.
bool adds_bf16(const Part& part, DType operand) { return part.op->name == "add_mixed" && operand == DType::bf16; }

float setting(const Part& part, std::string_view attribute) {
  return attribute.empty() ? 0.0F : static_cast<float>(part.attributes.get<double>(attribute));
}

// The strides of an operand that broadcasts to `rank` axes by numpy's rule.
ImageStrides broadcast_strides_of(const TensorDesc& desc, int rank) {
  TensorDesc full;
  full.rank = rank;
  const int lead = rank - desc.rank;
  for (int axis = lead; axis < rank; ++axis) {
    const auto from = static_cast<std::size_t>(axis - lead);
    full.strides[static_cast<std::size_t>(axis)] = desc.sizes[from] == 1 ? 0 : desc.strides[from];
  }
  return image_strides_of(full);
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
      return EndingStep{exact ? EndingKind::gelu_erf : EndingKind::gelu_tanh, -1, 0, 0};
    }
    for (const EndingWord& word : unary_words) {
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

std::string refuse_endings(const StepDesc& desc, bool narrows) {
  if (desc.endings().size() > EndingProgram::most_endings) return "takes at most 16 endings";
  for (const Part& part : desc.endings()) {
    if (narrows && &part == &desc.parts.back()) continue;
    const int running = running_operand(part);
    const bool twice = std::count(part.operands.begin(), part.operands.end(), static_cast<int>(Part::running)) > 1;
    if (running < 0 || twice || !ending_step(part, running == 1).has_value())
      return "has no ending for " + part.op->name;
    for (const int operand : part.operands) {
      if (operand < 0) continue;
      const Type& type = desc.inputs[static_cast<std::size_t>(operand)].type;
      if (type.dtype != DType::f32 && !adds_bf16(part, type.dtype)) return "endings compute in f32 only";
      if (type.shape.rank() > desc.outputs[0].type.shape.rank())
        return "an ending's operand has more axes than the result";
    }
  }
  return {};
}

TranslatedEndings translate_endings(const PlanRequest& request) {
  const StepDesc& desc = request.desc;
  TranslatedEndings out;
  const auto add_operand = [&](const ImageStrides& strides, int input) {
    const int32_t operand = out.operands.count++;
    out.program.operands[operand] = strides;
    out.operands.from[operand] = input;
    return static_cast<std::int8_t>(operand);
  };
  std::size_t kept = 0;
  const auto keep = [&](std::size_t part) {
    if (kept == request.kept.size() || request.kept[kept].part != part) return;
    const std::int8_t operand = add_operand(image_strides_of(request.kept[kept].desc), EndingOperands::kept(kept));
    out.program.steps[out.program.count++] = {EndingKind::keep, operand, 0, 0};
    ++kept;
  };
  keep(desc.anchor);
  for (std::size_t i = desc.anchor + 1; i < desc.parts.size(); ++i) {
    const Part& part = desc.parts[i];
    if (part.op->name == "cast") continue;  // the last one
    EndingStep step = *ending_step(part, running_operand(part) == 1);
    if (step.operand >= 0) {
      const auto input = static_cast<std::uint8_t>(step.operand);  // not negative
      if (adds_bf16(part, request.inputs[input].dtype)) step.kind = EndingKind::add_bf16;
      step.operand = add_operand(broadcast_strides_of(request.inputs[input], request.outputs[0].rank), input);
    }
    out.program.steps[out.program.count++] = step;
    keep(i);
  }
  return out;
}

ImageStrides image_strides_of(const TensorDesc& desc) {
  ImageStrides out = {desc.strides[0], desc.strides[1], {0, 0, 0}};
  for (int axis = 2; axis < desc.rank; ++axis) {
    out.axis[axis + 3 - desc.rank] = desc.strides[static_cast<std::size_t>(axis)];
  }
  return out;
}

}  // namespace polyphase::cpu

// Rules and estimates that rows share.
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {

namespace {

std::string refuse_unless_f32(const OperandDesc& operand) {
  if (!operand.present || operand.type.dtype == DType::f32) return {};
  return "computes in f32 only, found " + std::string(name_of(operand.type.dtype));
}

std::string all_f32(const std::vector<OperandDesc>& operands) {
  for (const OperandDesc& operand : operands) {
    if (std::string refusal = refuse_unless_f32(operand); !refusal.empty()) return refusal;
  }
  return {};
}

}  // namespace

std::string needs_f32_operands(const StepDesc& desc) {
  for (const int operand : desc.anchor_part().operands) {
    if (operand < 0) continue;
    if (std::string refusal = refuse_unless_f32(desc.inputs[static_cast<std::size_t>(operand)]); !refusal.empty())
      return refusal;
  }
  return {};
}

std::string needs_f32(const StepDesc& desc) {
  const std::string refusal = all_f32(desc.inputs);
  return refusal.empty() ? all_f32(desc.outputs) : refusal;
}

std::string needs_wide(const StepDesc& desc) {
  const DType dtype = desc.data().type.dtype;
  return dtype == DType::f16 || dtype == DType::bf16 ? std::string(name_of(dtype)) + " is computed in f32" : "";
}

std::string needs_unfused(const StepDesc& desc) {
  return desc.parts.size() == 1 ? "" : "takes no beginnings or endings";
}

std::string needs_plain(const StepDesc& desc) {
  for (const auto* side : {&desc.inputs, &desc.outputs}) {
    for (const OperandDesc& operand : *side) {
      if (operand.present && !operand.layout.is_row_major()) return "takes row-major operands only";
    }
  }
  return needs_unfused(desc);
}

namespace {

ClusterKernels with_pairs(const PairUnit& unit) {
  ClusterKernels out = polyphase_cpu_rows_avx512;
  out.pair_unit = &unit;
  return out;
}

// A matrix unit reads rows of pixels; the rest is multiplied with the vector instructions that come with it.
const PairUnit& matrix_unit() {
  static const PairUnit unit = [] {
    PairUnit out = *polyphase_cpu_pairs_avx512_bf16;
    out.prepare = polyphase_cpu_pairs_amx->prepare;
    out.multiply = polyphase_cpu_pairs_amx->multiply;
    out.release = polyphase_cpu_pairs_amx->release;
    return out;
  }();
  return unit;
}

}  // namespace

const ClusterKernels& kernels_of(Cluster cluster) {
  static const ClusterKernels avx512_bf16 = with_pairs(*polyphase_cpu_pairs_avx512_bf16);
  static const ClusterKernels amx = with_pairs(matrix_unit());
  switch (cluster) {
    case Cluster::amx:
      return amx;
    case Cluster::avx512_bf16:
      return avx512_bf16;
    case Cluster::avx512:
      return polyphase_cpu_rows_avx512;
    case Cluster::avx2:
      return polyphase_cpu_rows_avx2;
    case Cluster::scalar:
      break;
  }
  return polyphase_cpu_rows_scalar;
}

int vector_width(Cluster cluster) { return kernels_of(cluster).vector_width; }

AroundAxis around_axis(const TensorDesc& desc, std::size_t axis) {
  AroundAxis out{desc.empty() ? 0 : 1, desc.sizes[axis], 1};
  for (std::size_t i = 0; i < axis; ++i) out.outer *= desc.sizes[i];
  for (std::size_t i = axis + 1; i < static_cast<std::size_t>(desc.rank); ++i) out.inner *= desc.sizes[i];
  return out;
}

double moving_seconds(const StepDesc& desc) {
  constexpr double bytes_per_second = 8e9;
  double bytes = 0;
  for (const auto* side : {&desc.inputs, &desc.outputs}) {
    for (const OperandDesc& operand : *side) {
      if (!operand.present) continue;
      bytes += static_cast<double>(operand.type.shape.element_count().constant().value_or(0)) *
               static_cast<double>(size_bytes(operand.type.dtype));
    }
  }
  return bytes / bytes_per_second + 1e-6;
}

double result_elements(const StepDesc& desc) {
  return static_cast<double>(desc.outputs.at(0).type.shape.element_count().constant().value_or(0));
}

}  // namespace polyphase::cpu

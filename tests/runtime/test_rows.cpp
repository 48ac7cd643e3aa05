// Rows for tests.
#include "runtime/test_rows.h"

#include <algorithm>
#include <cmath>

namespace polyphase {
namespace {

std::string only_f32(const StepDesc& desc) {
  for (const OperandDesc& input : desc.inputs) {
    if (input.present && input.type.dtype != DType::f32) return "only f32";
  }
  return {};
}

double cheap(const StepDesc& desc, const Target&) {
  double elements = 1;
  for (const OperandDesc& output : desc.outputs) {
    elements += static_cast<double>(output.type.shape.element_count().constant().value_or(1000));
  }
  return elements * 1e-7;  // enough to be shared among workers
}

// ---------------------------------------------------------------- elementwise

struct ElementwisePlan {
  char kind;
  int operands;
  TensorDesc inputs[2];  // strides broadcast to the result's axes
  TensorDesc output;
};

std::string accepts_elementwise(const StepDesc& desc, const Target&) {
  if (desc.parts.size() != 1) return "no endings";
  for (const OperandDesc& input : desc.inputs) {
    if (!(input.layout == desc.outputs[0].layout) && input.type.shape.rank() == desc.outputs[0].type.shape.rank())
      return "one layout";
  }
  return only_f32(desc);
}

Plan plan_elementwise(const PlanRequest& request, const Target&) {
  plans_made.fetch_add(1);
  const std::string& op = request.desc.anchor_part().op->name;
  ElementwisePlan plan{op[0], static_cast<int>(request.inputs.size()), {}, request.outputs[0]};
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    TensorDesc wide = request.outputs[0];
    const int added = wide.rank - request.inputs[i].rank;
    for (int axis = 0; axis < wide.rank; ++axis) {
      const auto from = static_cast<std::size_t>(axis - added);
      const bool broadcast = axis < added || request.inputs[i].sizes[from] == 1;
      wide.strides[static_cast<std::size_t>(axis)] = broadcast ? 0 : request.inputs[i].strides[from];
    }
    plan.inputs[i] = wide;
  }
  return Plan::of(plan);
}

Fault run_elementwise(const Plan& plan, const Pointers& pointers, int, std::int64_t tile, std::byte*) {
  const auto& p = *reinterpret_cast<const ElementwisePlan*>(plan.bytes());
  const auto* a = reinterpret_cast<const float*>(pointers.inputs[0]);
  const auto* b = p.operands > 1 ? reinterpret_cast<const float*>(pointers.inputs[1]) : a;
  auto* out = reinterpret_cast<float*>(pointers.outputs[0]);
  const std::int64_t* strides_b = p.operands > 1 ? p.inputs[1].strides.data() : p.inputs[0].strides.data();
  const std::size_t first = p.output.rank == 0 ? 0 : 1;
  if (first == 1) {
    a += tile * p.inputs[0].strides[0];
    b += tile * strides_b[0];
    out += tile * p.output.strides[0];
  }
  for_each_index<3>(
      p.output.size_span().subspan(first),
      {p.inputs[0].strides.data() + first, strides_b + first, p.output.strides.data() + first},
      [&](const std::array<std::int64_t, 3>& at) {
        const float x = a[at[0]];
        const float y = b[at[1]];
        out[at[2]] = p.kind == 'r' ? std::max(x, 0.0F) : p.kind == 'n' ? -x : p.kind == 'a' ? x + y : x * y;
      });
  return nullptr;
}

Row elementwise(std::string_view op) {
  return {.name = "test_elementwise",
          .op = op,
          .doc = "for tests",
          .takes = Density::pitched,
          .in_place = true,
          .accepts = accepts_elementwise,
          .cost = cheap,
          .packing = {},
          .plan = plan_elementwise,
          .workspace = nullptr,
          .phases = nullptr,
          .tiles = [](const Plan& plan, int) -> std::int64_t {
            const auto& p = *reinterpret_cast<const ElementwisePlan*>(plan.bytes());
            return p.output.rank == 0 ? 1 : p.output.sizes[0];
          },
          .run = run_elementwise};
}

// ---------------------------------------------------------------- convolutions

struct ConvPlan {
  const StepDesc* desc;
  TensorDesc input, weight, bias, output, residual;
  int residual_operand;
  int has_bias;
  int relu;
};

std::string accepts_conv(const StepDesc& desc, const Target&) {
  if (desc.anchor != 0) return "no beginnings";
  for (const Part& ending : desc.endings()) {
    if (ending.op->name == "relu") continue;
    if (ending.op->name != "add" || ending.operands.size() != 2 || ending.operands[0] != Part::running)
      return "relu and add only";
    const OperandDesc& other = desc.inputs[static_cast<std::size_t>(ending.operands[1])];
    if (!(other.type == desc.outputs[0].type)) return "residuals of the result's shape only";
    if (&ending != &desc.endings().front()) return "one add, first";
  }
  for (const OperandDesc* operand : {&desc.data(), &desc.outputs[0]}) {
    if (!operand->layout.is_row_major()) return "row-major only";
  }
  return only_f32(desc);
}

std::vector<int> packed_inputs(const StepDesc& desc) {
  std::vector<int> out{desc.anchor_operand(1)};
  if (desc.anchor_operand(2) >= 0) out.push_back(desc.anchor_operand(2));
  return out;
}

std::size_t packed_bytes(const StepDesc& desc, const Target&) {
  std::int64_t count = 0;
  for (const int operand : packed_inputs(desc)) {
    count += desc.inputs[static_cast<std::size_t>(operand)].type.shape.element_count().value();
  }
  return static_cast<std::size_t>(count) * sizeof(float);
}

void pack_weights(const StepDesc&, const Target&, std::span<const TensorView> views, PackShare share, std::byte* out) {
  if (share.index != 0) return;
  packs_made.fetch_add(1);
  for (const TensorView& view : views) {
    copy_elements(view, TensorView(TensorDesc::row_major(DType::f32, view.size_span()), out));
    out += view.element_count() * static_cast<std::int64_t>(sizeof(float));
  }
}

Plan plan_conv(const PlanRequest& request, const Target&) {
  plans_made.fetch_add(1);
  const StepDesc& desc = request.desc;
  const auto dense = [&](int operand) {
    const auto sizes = *desc.inputs[static_cast<std::size_t>(operand)].type.shape.evaluate({});
    return TensorDesc::row_major(DType::f32, sizes);
  };
  ConvPlan plan{&desc,
                request.inputs[static_cast<std::size_t>(desc.anchor_operand(0))],
                dense(desc.anchor_operand(1)),
                {},
                request.outputs[0],
                {},
                -1,
                0,
                0};
  if (desc.anchor_operand(2) >= 0) {
    plan.bias = dense(desc.anchor_operand(2));
    plan.has_bias = 1;
  }
  for (const Part& ending : desc.endings()) {
    if (ending.op->name == "relu") plan.relu = 1;
    if (ending.op->name != "add") continue;
    plan.residual_operand = ending.operands[1];
    plan.residual = request.inputs[static_cast<std::size_t>(plan.residual_operand)];
  }
  return Plan::of(plan);
}

TensorDesc image(TensorDesc all) {
  all.sizes[0] = 1;
  return all;
}

// Phase 0 convolves into shared memory image by image, phase 1 ends: so results cross a barrier.
Fault run_conv(const Plan& plan, const Pointers& pointers, int phase, std::int64_t tile, std::byte*) {
  const auto& p = *reinterpret_cast<const ConvPlan*>(plan.bytes());
  const TensorDesc dense = TensorDesc::row_major(DType::f32, p.output.size_span());
  const TensorView middle(image(dense),
                          pointers.shared + tile * dense.strides[0] * static_cast<std::int64_t>(sizeof(float)));
  if (phase == 0) {
    auto* packed = const_cast<std::byte*>(pointers.packed);
    TensorView inputs[3];
    inputs[0] = TensorView(image(p.input), const_cast<std::byte*>(pointers.inputs[p.desc->anchor_operand(0)]) +
                                               tile * p.input.strides[0] * static_cast<std::int64_t>(sizeof(float)));
    inputs[1] = TensorView(p.weight, packed);
    if (p.has_bias != 0) {
      inputs[2] = TensorView(p.bias, packed + p.weight.element_count() * static_cast<std::int64_t>(sizeof(float)));
    }
    const std::size_t count = p.has_bias != 0 ? 3 : 2;
    const Part& part = p.desc->anchor_part();
    return part.op->reference({part.attributes, {inputs, count}, {&middle, 1}}).ok() ? nullptr : "a bad shape";
  }
  const auto* residual =
      p.residual_operand < 0 ? nullptr : reinterpret_cast<const float*>(pointers.inputs[p.residual_operand]);
  auto* out = reinterpret_cast<float*>(pointers.outputs[0]);
  const std::int64_t* strides = p.residual_operand < 0 ? p.output.strides.data() : p.residual.strides.data();
  if (residual != nullptr) residual += tile * p.residual.strides[0];
  out += tile * p.output.strides[0];
  for_each_index<3>(middle.size_span(), {middle.strides.data(), strides, p.output.strides.data()},
                    [&](const std::array<std::int64_t, 3>& at) {
                      float value = middle.as<float>()[at[0]];
                      if (residual != nullptr) value += residual[at[1]];
                      out[at[2]] = p.relu != 0 ? std::max(value, 0.0F) : value;
                    });
  return nullptr;
}

Row convolution(std::string_view op) {
  return {.name = "test_convolution",
          .op = op,
          .doc = "for tests",
          .takes = Density::pitched,
          .in_place = true,
          .accepts = accepts_conv,
          .cost = cheap,
          .packing = {"test_weights/1", packed_inputs, packed_bytes, pack_weights},
          .plan = plan_conv,
          .workspace =
              [](const Plan& plan) {
                const auto& p = *reinterpret_cast<const ConvPlan*>(plan.bytes());
                return Workspace{static_cast<std::size_t>(p.output.element_count()) * sizeof(float), 128};
              },
          .phases = [](const Plan&) { return 2; },
          .tiles = [](const Plan& plan, int) -> std::int64_t {
            return reinterpret_cast<const ConvPlan*>(plan.bytes())->output.sizes[0];
          },
          .run = run_conv};
}

// ---------------------------------------------------------------- copies

struct CopyPlan {
  TensorDesc from, to;
};

const Row copy_row = {.name = "test_copy",
                      .op = "identity",
                      .doc = "for tests",
                      .takes = Density::strided,
                      .accepts = [](const StepDesc& desc, const Target&) -> std::string {
                        return desc.parts.size() == 1 ? "" : "no endings";
                      },
                      .cost = cheap,
                      .packing = {},
                      .plan =
                          [](const PlanRequest& request, const Target&) {
                            return Plan::of(CopyPlan{request.inputs[0], request.outputs[0]});
                          },
                      .workspace = nullptr,
                      .phases = nullptr,
                      .tiles = [](const Plan&, int) -> std::int64_t { return 1; },
                      .run = [](const Plan& plan, const Pointers& pointers, int, std::int64_t, std::byte*) -> Fault {
                        const auto& p = *reinterpret_cast<const CopyPlan*>(plan.bytes());
                        copy_elements(TensorView(p.from, const_cast<std::byte*>(pointers.inputs[0])),
                                      TensorView(p.to, pointers.outputs[0]));
                        return nullptr;
                      }};

}  // namespace

std::vector<const Row*> test_rows() {
  static const Row rows[] = {elementwise("relu"), elementwise("neg"),  elementwise("add"),
                             elementwise("mul"),  convolution("conv"), convolution("conv_transpose")};
  std::vector<const Row*> out;
  for (const Row& row : rows) out.push_back(&row);
  out.push_back(&copy_row);
  return out;
}

}  // namespace polyphase

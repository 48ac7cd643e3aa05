// The rows of elementwise operators in every dtype: arithmetic, comparisons, logic, casts and choices.
#include "backends/cpu/kernels/number_elements.h"

#include <optional>

#include "backends/cpu/rows/elementwise_axes.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

struct NumberWord {
  std::string_view op;
  NumberOp number_op;
};

constexpr NumberWord number_words[] = {
    {"abs", NumberOp::absolute},
    {"add", NumberOp::add},
    {"and", NumberOp::bit_and},
    {"bitwise_and", NumberOp::bit_and},
    {"bitwise_not", NumberOp::bit_not},
    {"bitwise_or", NumberOp::bit_or},
    {"bitwise_xor", NumberOp::bit_xor},
    {"cast", NumberOp::cast},
    {"div", NumberOp::div},
    {"equal", NumberOp::equal},
    {"greater", NumberOp::greater},
    {"greater_equal", NumberOp::greater_equal},
    {"leaky_relu", NumberOp::leaky_relu},
    {"less", NumberOp::less},
    {"less_equal", NumberOp::less_equal},
    {"max", NumberOp::max},
    {"min", NumberOp::min},
    {"mod", NumberOp::mod},
    {"mul", NumberOp::mul},
    {"neg", NumberOp::negate},
    {"not", NumberOp::logical_not},
    {"or", NumberOp::bit_or},
    {"relu", NumberOp::relu},
    {"sub", NumberOp::sub},
    {"where", NumberOp::where},
    {"xor", NumberOp::bit_xor},
};

NumberOp op_of(const StepDesc& desc) {
  NumberOp op = NumberOp::cast;
  for (const NumberWord& word : number_words) {
    if (word.op == desc.anchor_part().op->name) op = word.number_op;
  }
  return op == NumberOp::mod && desc.attributes().get<bool>("fmod") ? NumberOp::fmod : op;
}

// Casts that round twice by way of FP64, or saturate to fewer bits than a byte.
bool is_rare_cast(DType from, DType to) {
  const bool wide = from == DType::i64 || from == DType::u64;
  if (wide && is_float(to)) return to != DType::f32 && to != DType::f64;
  return is_float(from) && (to == DType::i4 || to == DType::u4);
}

std::string accepts_number_elements(const StepDesc& desc, const Target&) {
  if (op_of(desc) == NumberOp::cast && is_rare_cast(desc.inputs[0].type.dtype, desc.outputs[0].type.dtype))
    return "does not cast " + std::string(name_of(desc.inputs[0].type.dtype)) + " to " +
           std::string(name_of(desc.outputs[0].type.dtype));
  return needs_unfused(desc);
}

double cost_number_elements(const StepDesc& desc, const Target& target) {
  const NumberOp op = op_of(desc);
  const bool divides = op == NumberOp::div || op == NumberOp::mod || op == NumberOp::fmod;
  const double lanes = target.cluster == Cluster::scalar ? 1 : 4;
  return moving_seconds(desc) + result_elements(desc) * (divides ? 3e-9 : 1.6e-9 / lanes);
}

Plan plan_number_elements(const PlanRequest& request, const Target&) {
  NumberElementsPlan plan{};
  set_elementwise_axes(request, plan.walk);
  plan.op = op_of(request.desc);
  if (plan.op == NumberOp::leaky_relu) plan.alpha = request.desc.attributes().get<double>("alpha");
  const Part& part = request.desc.anchor_part();
  for (std::size_t i = 0; i < part.operands.size(); ++i) plan.operands[i] = part.operands[i];
  return Plan::of(plan);
}

}  // namespace

void add_number_element_rows(const ClusterKernels& kernels, RowList& rows) {
  for (const NumberWord& word : number_words) {
    Row row;
    row.name = "number_elements";
    row.op = word.op;
    row.doc = "any dtype: blocks read as FP64 or 64-bit integers, rounded or wrapped once";
    row.takes = Density::strided;
    row.in_place = true;
    row.accepts = accepts_number_elements;
    row.cost = cost_number_elements;
    row.plan = plan_number_elements;
    row.tiles = [](const Plan& plan, int) { return plan.head<NumberElementsPlan>().walk.tiles; };
    row.run = kernels.number_elements;
    rows.push_back(row);
  }
}

}  // namespace polyphase::cpu

// Rows of matmul, conv and conv_transpose in FP64 and in integers.
#include "backends/cpu/kernels/number_product.h"

#include <cstring>

#include "backends/cpu/rows/conv_desc.h"
#include "backends/cpu/rows/ending_program.h"
#include "backends/cpu/rows/matmul_walk.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {
namespace {

// FP32 has rows of its own, and f16 and bf16 are computed in it.
std::string refuse_dtype(const StepDesc& desc) {
  const DType dtype = desc.outputs[0].type.dtype;
  const bool single = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  return single ? "computes f64 and integers" : "";
}

double seconds_of(double products, const Target& target) {
  return products / (target.cluster >= Cluster::avx512 ? 25e9 : target.cluster == Cluster::avx2 ? 12e9 : 1e9);
}

// ---------------------------------------------------------------- matmul

std::string accepts_number_matmul(const StepDesc& desc, const Target&) {
  if (std::string refusal = refuse_dtype(desc); !refusal.empty()) return refusal;
  return needs_plain(desc);
}

double cost_number_matmul(const StepDesc& desc, const Target& target) {
  const Shape& a = desc.inputs[0].type.shape;
  const auto inner = static_cast<double>(a[a.rank() - 1].constant().value_or(1));
  return moving_seconds(desc) + seconds_of(result_elements(desc) * inner, target);
}

Plan plan_number_matmul(const PlanRequest& request, const Target&) {
  NumberMatmulPlan plan{};
  plan.walk = walk_matmul(request, 32, product_columns);
  plan.dtype = request.outputs[0].dtype;
  return Plan::of(plan);
}

int64_t number_matmul_tiles(const Plan& plan, int) {
  const MatmulPlan& p = plan.head<NumberMatmulPlan>().walk;
  return p.batches * p.row_tiles * p.column_tiles;
}

// ---------------------------------------------------------------- convolutions

std::string accepts_number_conv(const StepDesc& desc, const Target&) {
  if (std::string refusal = refuse_dtype(desc); !refusal.empty()) return refusal;
  const int weight = conv_operands_of(desc).weight;
  if (weight < 0 || !desc.inputs[static_cast<std::size_t>(weight)].type.shape.is_static())
    return "the weight's sizes are not known";
  return needs_unfused(desc);
}

double cost_number_conv(const StepDesc& desc, const Target& target) {
  const ConvShape s = conv_shape_of(desc);
  double products = static_cast<double>(s.batch * s.groups * s.in_channels * s.kernel_points()) *
                    static_cast<double>(ceil_div(s.out_channels, product_columns) * product_columns);
  products *= static_cast<double>(s.transposed ? s.in_points() : s.out_points());
  if (is_planar(desc.inputs[static_cast<std::size_t>(conv_operands_of(desc).data)])) products *= 4;
  return moving_seconds(desc) + seconds_of(products, target);
}

std::vector<int> packed_number_inputs(const StepDesc& desc) { return {conv_operands_of(desc).weight}; }

int64_t column_blocks(const ConvShape& s) { return ceil_div(s.out_channels, product_columns); }

std::size_t packed_number_bytes(const StepDesc& desc, const Target&) {
  const ConvShape s = conv_shape_of(desc);
  return static_cast<std::size_t>(s.groups * column_blocks(s) * s.kernel_points() * s.in_channels * product_columns) *
         8;
}

// One number, as the kernel computes with it.
void store_number(const std::byte* element, DType dtype, std::byte* to) {
  if (is_float(dtype)) {
    const double value = load_double(element, dtype);
    std::memcpy(to, &value, 8);
  } else {
    const int64_t value = load_integer(element, dtype);
    std::memcpy(to, &value, 8);
  }
}

void pack_number_conv(const StepDesc& desc, const Target&, std::span<const TensorView> views, PackShare share,
                      std::byte* out) {
  if (share.index != 0) return;
  const ConvShape s = conv_shape_of(desc);
  const TensorView& w = views[0];
  const ImageStrides strides = image_strides_of(w);
  std::memset(out, 0, packed_number_bytes(desc, {}));
  for (int64_t block = 0; block < s.groups * column_blocks(s); ++block) {
    const int64_t group = block / column_blocks(s);
    const int64_t first = block % column_blocks(s) * product_columns;
    const int64_t columns = std::min(product_columns, s.out_channels - first);
    for (int64_t tap = 0; tap < s.kernel_points(); ++tap) {
      const int64_t at = tap / s.kernel[2] / s.kernel[1] * strides.axis[0] +
                         tap / s.kernel[2] % s.kernel[1] * strides.axis[1] + tap % s.kernel[2] * strides.axis[2];
      for (int64_t c = 0; c < s.in_channels; ++c, out += product_columns * 8) {
        for (int64_t j = 0; j < columns; ++j) {
          const int64_t from = s.transposed
                                   ? (group * s.in_channels + c) * strides.batch + (first + j) * strides.channel
                                   : (group * s.out_channels + first + j) * strides.batch + c * strides.channel;
          store_number(w.data + (from + at) * static_cast<int64_t>(size_bytes(w.dtype)), w.dtype, out + j * 8);
        }
      }
    }
  }
}

Plan plan_number_conv(const PlanRequest& request, const Target&) {
  const ConvOperands at = conv_operands_of(request.desc);
  NumberConvPlan plan{};
  plan.shape = conv_shape_of(request.desc);
  plan.in = image_strides_of(request.inputs[static_cast<std::size_t>(at.data)]);
  plan.out = image_strides_of(request.outputs[0]);
  plan.dtype = request.outputs[0].dtype;
  plan.bias = at.bias;
  plan.data = at.data;
  if (at.bias >= 0) plan.bias_stride = request.inputs[static_cast<std::size_t>(at.bias)].strides[0];
  plan.column_blocks = column_blocks(plan.shape);
  const ConvShape& s = plan.shape;
  plan.x_chunk = 64 * (s.transposed ? s.stride[2] : 1);
  plan.x_chunks = ceil_div(s.out[2], plan.x_chunk);
  plan.tiles =
      request.outputs[0].empty() ? 0 : s.batch * s.groups * plan.column_blocks * s.out[0] * s.out[1] * plan.x_chunks;
  return Plan::of(plan);
}

int64_t conv_tiles(const Plan& plan, int) { return plan.head<NumberConvPlan>().tiles; }

}  // namespace

void add_number_product_rows(const ClusterKernels& kernels, RowList& rows) {
  Row row;
  row.name = "number_matmul";
  row.op = "matmul";
  row.doc = "f64 and integers: sums of four rows by sixteen columns in FP64 or wrapping integers";
  row.takes = Density::pitched;
  row.accepts = accepts_number_matmul;
  row.cost = cost_number_matmul;
  row.plan = plan_number_matmul;
  row.tiles = number_matmul_tiles;
  row.run = kernels.number_matmul;
  rows.push_back(row);
  for (const std::string_view op : {"conv", "conv_transpose"}) {
    Row conv;
    conv.name = "number_conv";
    conv.op = op;
    conv.doc = "f64 and integers: sums of four pixels by sixteen channels, phase by phase, taps in place";
    conv.takes = Density::strided;
    conv.accepts = accepts_number_conv;
    conv.cost = cost_number_conv;
    conv.packing = {"number_conv/1", packed_number_inputs, packed_number_bytes, pack_number_conv};
    conv.plan = plan_number_conv;
    conv.tiles = conv_tiles;
    conv.run = kernels.number_conv;
    rows.push_back(conv);
  }
}

}  // namespace polyphase::cpu

// ONNX's window attributes: checks, defaults, auto_pad.
#include "ops/onnx_window.h"

#include <algorithm>

#include "ops/window.h"

namespace polyphase {
namespace {

Error refuse_auto_pad(const OnnxWindowSettings& given, const std::string& rule) {
  return {ErrorCode::invalid_model, given.op + ": " + rule};
}

// The values or the default for every axis; one positive value per spatial axis.
Result<std::vector<std::int64_t>> positive_list(const OnnxWindowSettings& given, const std::string& name,
                                                const std::optional<std::vector<std::int64_t>>& values) {
  const std::size_t spatial = given.kernel.size();
  if (!values.has_value()) return std::vector<std::int64_t>(spatial, 1);
  if (values->size() != spatial ||
      std::any_of(values->begin(), values->end(), [](std::int64_t value) { return value < 1; })) {
    return refuse_auto_pad(given, "attribute " + name + " must have one positive value per spatial axis (" +
                                      std::to_string(spatial) + "), found " + print_attribute(*values) + ".");
  }
  return *values;
}

Result<void> check_kernel(const OnnxWindowSettings& given, const DimDemands& demand) {
  const std::string found = print_attribute(given.kernel);
  for (const Dim& size : given.kernel) {
    TRY_VOID(demand.require(1, DimCheck::Relation::less_equal, size,
                            given.op + ": every kernel size must be at least 1, found " + found + "."));
  }
  if (!given.kernel_shape.has_value()) return {};
  const std::string message = given.op + ": attribute kernel_shape is " + print_attribute(*given.kernel_shape) +
                              ", but the weight's kernel is " + found + ".";
  if (given.kernel_shape->size() != given.kernel.size()) return Error{ErrorCode::invalid_model, message};
  for (std::size_t i = 0; i < given.kernel.size(); ++i) {
    TRY_VOID(demand.require((*given.kernel_shape)[i], DimCheck::Relation::equal, given.kernel[i], message));
  }
  return {};
}

Result<void> read_pads(const OnnxWindowSettings& given, const DimDemands& demand, WindowForm& form) {
  const std::size_t spatial = given.kernel.size();
  form.pre.assign(spatial, 0);
  form.post.assign(spatial, 0);
  if (!given.pads.has_value()) return {};
  const std::vector<Dim>& pads = *given.pads;
  const std::string found = "found " + print_attribute(pads) + ".";
  if (pads.size() != 2 * spatial) {
    return refuse_auto_pad(given, "attribute pads must have a begin for each spatial axis and then an end for each (" +
                                      std::to_string(2 * spatial) + " values), " + found);
  }
  for (const Dim& pad : pads) {
    TRY_VOID(demand.require(0, DimCheck::Relation::less_equal, pad,
                            given.op + ": attribute pads must not hold negative values, " + found));
    if (given.auto_pad != "NOTSET" && !(pad == 0)) {
      return refuse_auto_pad(given,
                             "attribute pads cannot be used together with auto_pad " + given.auto_pad + ", " + found);
    }
  }
  for (std::size_t i = 0; i < spatial; ++i) {
    form.pre[i] = pads[i];
    form.post[i] = pads[i + spatial];
  }
  return {};
}

}  // namespace

Result<WindowForm> read_onnx_window(const OnnxWindowSettings& given, std::vector<DimCheck>& checks) {
  const DimDemands demand(checks);
  const int spatial = given.input.rank() - 2;
  if (spatial < 1 || spatial > 3) {
    return Error{ErrorCode::unsupported,
                 given.op + ": the input must be (N, C, one to three spatial axes), rank 3 to 5, found " +
                     given.input.text() + ".",
                 "Join axes, so that at most three spatial ones are left."};
  }
  if (given.kernel.size() != static_cast<std::size_t>(spatial)) {
    return refuse_auto_pad(given, "the kernel must have one size per spatial axis (" + std::to_string(spatial) +
                                      "), found " + print_attribute(given.kernel) + ".");
  }
  for (const std::string_view known : {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", ""}) {
    if (given.auto_pad == known) break;
    if (known.empty()) {
      return refuse_auto_pad(given, "attribute auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, found '" +
                                        given.auto_pad.substr(0, 60) + "'.");
    }
  }
  WindowForm form;
  TRY(form.stride, positive_list(given, "strides", given.strides));
  TRY(form.dilation, positive_list(given, "dilations", given.dilations));
  TRY_VOID(check_kernel(given, demand));
  TRY_VOID(read_pads(given, demand, form));
  form.ceil = given.ceil_mode && given.auto_pad == "NOTSET";
  return form;
}

Result<WindowForm> onnx_window(const OnnxWindowSettings& given, std::vector<DimCheck>& checks) {
  TRY(WindowForm form, read_onnx_window(given, checks));
  if (given.auto_pad == "NOTSET" || given.auto_pad == "VALID") return form;
  for (std::size_t i = 0; i < form.stride.size(); ++i) {
    const Dim& size = given.input[static_cast<int>(i) + 2];
    const Dim stride(form.stride[i]);
    const Dim kernel = dilated_kernel(given.kernel[i], form.dilation[i]);
    const Dim windows = floor_div(size + stride - 1, stride);
    const Dim needed =
        (windows - 1) * stride + kernel - size;  // at least kernel - stride, since windows * stride >= size
    const Dim total = surely_less_equal(stride, kernel) ? needed : max(needed, 0);
    const Dim half = floor_div(total, 2);
    form.pre[i] = given.auto_pad == "SAME_UPPER" ? half : total - half;
    form.post[i] = total - form.pre[i];
  }
  return form;
}

}  // namespace polyphase

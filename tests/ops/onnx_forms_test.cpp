// ONNX's attributes through the front-end reductions and the references, against ONNX Runtime
// (tests/ops/data/onnx_forms.txt).
#include <gtest/gtest.h>

#include <fstream>

#include "ops/conv_transpose_frontend.h"
#include "ops/onnx_window.h"
#include "ops/registry.h"
#include "ops/truth.h"

namespace polyphase::test {
namespace {

using Integers = std::vector<std::int64_t>;

const std::vector<AttributeSpec>& onnx_attributes() {
  static const std::vector<AttributeSpec> specs{
      {"auto_pad", AttributeKind::word, ""},         {"count_include_pad", AttributeKind::integer, ""},
      {"dilations", AttributeKind::integers, ""},    {"group", AttributeKind::integer, ""},
      {"kernel_shape", AttributeKind::integers, ""}, {"output_padding", AttributeKind::integers, ""},
      {"output_shape", AttributeKind::dims, ""},     {"pads", AttributeKind::dims, ""},
      {"strides", AttributeKind::integers, ""},
  };
  return specs;
}

template <typename T>
std::optional<T> optional(const Attributes& attributes, const std::string& name) {
  return attributes.has(name) ? std::optional<T>(attributes.get<T>(name)) : std::nullopt;
}

// Stride, dilation, pre, post of any of the forms.
template <typename Form>
Attributes window_of(const Form& form) {
  return {{"stride", form.stride}, {"dilation", form.dilation}, {"pre", form.pre}, {"post", form.post}};
}

struct Step {
  std::string op;
  Attributes attributes;
};

Result<Step> reduced(const std::string& op, const Attributes& given, const Attributes& operands) {
  const Type x = operands.get<Tensor>("x").type();
  std::vector<DimCheck> checks;
  const std::string auto_pad = optional<std::string>(given, "auto_pad").value_or("NOTSET");
  if (op == "ConvTranspose") {
    OnnxConvTranspose form{x.shape, operands.get<Tensor>("w").type().shape, auto_pad};
    form.dilations = optional<Integers>(given, "dilations");
    form.group = optional<std::int64_t>(given, "group").value_or(1);
    form.output_padding = optional<Integers>(given, "output_padding");
    form.output_shape = optional<std::vector<Dim>>(given, "output_shape");
    form.pads = optional<std::vector<Dim>>(given, "pads");
    form.strides = optional<Integers>(given, "strides");
    TRY(const ConvTransposeForm crop, onnx_conv_transpose(form, checks));
    Attributes attributes = window_of(crop);
    attributes.set("groups", crop.groups);
    return Step{"conv_transpose", attributes};
  }
  std::vector<Dim> kernel;
  if (op == "Conv") {
    const Shape& w = operands.get<Tensor>("w").type().shape;
    kernel.assign(w.begin() + 2, w.end());
  } else {
    for (const std::int64_t k : given.get<Integers>("kernel_shape")) kernel.emplace_back(k);
  }
  OnnxWindowSettings form{op, x.shape, kernel, auto_pad};
  form.dilations = optional<Integers>(given, "dilations");
  form.strides = optional<Integers>(given, "strides");
  TRY(const WindowForm window, onnx_window(form, checks));
  Attributes attributes = window_of(window);
  if (op == "Conv") return Step{"conv", attributes};
  attributes.set("kernel", given.get<Integers>("kernel_shape"));
  if (op == "MaxPool") return Step{"max_pool", attributes};
  attributes.set("include_pad", optional<std::int64_t>(given, "count_include_pad").value_or(0) != 0);
  return Step{"avg_pool", attributes};
}

void run_line(const Registry& registry, const std::string& line) {
  const std::vector<std::string> fields = fields_of(line);
  ASSERT_EQ(fields.size(), 4U);
  const auto given = parse_attributes(fields[1], onnx_attributes());
  ASSERT_TRUE(given.ok()) << given.error().text();
  const auto operands = parse_attributes(fields[2], tensor_specs({{"x", ""}, {"w", ""}, {"b", ""}}));
  ASSERT_TRUE(operands.ok()) << operands.error().text();
  const auto results = parse_attributes(fields[3], tensor_specs({{"y", ""}}));
  ASSERT_TRUE(results.ok()) << results.error().text();
  const auto step = reduced(fields[0].substr(0, fields[0].find(' ')), *given, *operands);
  ASSERT_TRUE(step.ok()) << step.error().text();
  const OpDef& op = registry.at(step->op);
  std::vector<Tensor> inputs{operands->get<Tensor>("x")};
  for (const char* name : {"w", "b"}) {
    if (operands->has(name)) inputs.push_back(operands->get<Tensor>(name));
  }
  const auto found = evaluate_reference(op, op.complete(step->attributes).value(), inputs);
  ASSERT_TRUE(found.ok()) << found.error().text();
  const Tensor& expected = results->get<Tensor>("y");
  ASSERT_EQ(found->front().type().text(), expected.type().text());
  EXPECT_LE(difference(found->front(), expected), results->has("tolerance") ? results->get<double>("tolerance") : 0)
      << print_attribute(found->front());
}

TEST(OnnxForms, GiveWhatOnnxRuntimeComputes) {
  const Registry registry = Registry::built_in();
  std::ifstream file(POLYPHASE_SOURCE_DIR "/tests/ops/data/onnx_forms.txt");
  int lines = 0;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    SCOPED_TRACE(line.substr(0, 200));
    run_line(registry, line);
    ++lines;
  }
  EXPECT_GE(lines, 150);
}

}  // namespace
}  // namespace polyphase::test

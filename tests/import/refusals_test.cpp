// What the importer says to wrong uses of the operators about indices, selection, quantisation and noise: the whole
// message.
#include <gtest/gtest.h>

#include <functional>

#include "import/model_builder.h"

namespace polyphase {
namespace {

using Sizes = std::vector<std::int64_t>;

struct Refused {
  std::int64_t opset;
  std::function<void(ModelBuilder&)> build;  // of inputs x: f32[2, 3, 4], m: f32[3, 4], i: i64[5], k: i64[]
  std::string message;
};

constexpr const char* export_again =
    " The model breaks ONNX's rules: check it with onnx.checker.check_model(model, full_check=True) and export it "
    "again.";

std::string answer(const Refused& refused) {
  ModelBuilder m(refused.opset);
  m.input("x", {2, 3, 4});
  m.input("m", {3, 4});
  m.input("b", {5}, onnx::TensorProto::UINT8);
  m.input("i", {5}, onnx::TensorProto::INT64);
  m.input("k", {}, onnx::TensorProto::INT64);
  refused.build(m);
  m.output("y");
  auto model = m.import();
  return model.ok() ? "imported" : model.error().text();
}

void expect_refused(const std::vector<Refused>& list) {
  for (const Refused& refused : list) EXPECT_EQ(answer(refused), refused.message);
}

std::string rule(const std::string& node, const std::string& message, const std::string& operator_version) {
  return "node '" + node + "_1': " + message + export_again + " (operator " + operator_version + ")";
}

TEST(Refusals, Selection) {
  expect_refused({
      {18, [](ModelBuilder& m) { m.node("TopK", {"x"}, {"y"}); },
       rule("TopK", "the operand K is missing.", "TopK, version 11")},
      {18,
       [](ModelBuilder& m) {
         m.node("TopK", {"x", "i"}, {"y"});
       },
       rule("TopK", "K must be one number, found i64[5].", "TopK, version 11")},
      {9,
       [](ModelBuilder& m) {
         m.node("TopK", {"x"}, {"y"}, {{"k", INT64_C(9)}});
       },
       "node 'TopK_1': top_k: k (9) must not exceed axis 2 of f32[2, 3, 4]. docs/operators.md says what top_k takes; "
       "export the model again if a tool wrote it. (operator TopK, version 1)"},
      {18,
       [](ModelBuilder& m) {
         m.node("TopK", {"x", "k"}, {"y"}, {{"axis", INT64_C(3)}});
       },
       rule("TopK", "axis is 3; for rank 3 it must lie in [-3, 3).", "TopK, version 11")},
      {18,
       [](ModelBuilder& m) {
         m.node("Compress", {"x", "i"}, {"y"});
       },
       rule("Compress", "condition must be a list of bools, found i64[5].", "Compress, version 11")},
      {18,
       [](ModelBuilder& m) {
         m.node("OneHot", {"i", "i", "x"}, {"y"});
       },
       rule("OneHot", "depth must be one number, found i64[5].", "OneHot, version 11")},
      {18,
       [](ModelBuilder& m) {
         m.node("OneHot", {"i", "k", "m"}, {"y"});
       },
       "node 'OneHot_1': one_hot: operand 'values' must be [2], the values off and on, found [3, 4]. docs/operators.md "
       "says what one_hot takes; export the model again if a tool wrote it. (operator OneHot, version 11)"},
      {18, [](ModelBuilder& m) { m.node("EyeLike", {"x"}, {"y"}); },
       rule("EyeLike", "the operand must be a matrix, found f32[2, 3, 4].", "EyeLike, version 9")},
      {18, [](ModelBuilder& m) { m.node("Trilu", {"i"}, {"y"}); },
       "node 'Trilu_1': trilu: the operand must be matrices, of rank 2 or above, found i64[5]. docs/operators.md says "
       "what trilu takes; export the model again if a tool wrote it. (operator Trilu, version 14)"},
      {18,
       [](ModelBuilder& m) {
         m.node("CumSum", {"k", "k"}, {"y"});
       },
       rule("CumSum", "the operand must have an axis, found i64[].", "CumSum, version 14")},
      {18,
       [](ModelBuilder& m) {
         m.integer("three", 3);
         m.node("CumSum", {"x", "three"}, {"y"});
       },
       "node 'CumSum_1': cum_sum: the axis must be from -3 to 2 for f32[2, 3, 4], found 3. docs/operators.md says what "
       "cum_sum takes; export the model again if a tool wrote it. (operator CumSum, version 14)"},
  });
}

TEST(Refusals, Scatters) {
  expect_refused({
      {16,
       [](ModelBuilder& m) {
         m.node("ScatterElements", {"x", "i", "x"}, {"y"}, {{"reduction", std::string("max")}});
       },
       rule("ScatterElements", "reduction is 'max'; it must be none, add or mul.", "ScatterElements, version 16")},
      {13,
       [](ModelBuilder& m) {
         m.node("ScatterND", {"x", "i", "x"}, {"y"}, {{"reduction", std::string("add")}});
       },
       rule("ScatterND", "attribute 'reduction' does not belong to ScatterND, version 13.", "ScatterND, version 13")},
      {18,
       [](ModelBuilder& m) {
         m.node("ScatterElements", {"x", "i", "x"}, {"y"});
       },
       "node 'ScatterElements_1': scatter_elements: 'indices' must have the rank of 'x', found [5] and [2, 3, 4]. "
       "docs/operators.md says what scatter_elements takes; export the model again if a tool wrote it. (operator "
       "ScatterElements, version 18)"},
      {18,
       [](ModelBuilder& m) {
         m.node("ScatterND", {"x", "i", "x"}, {"y"});
       },
       "node 'ScatterND_1': scatter_nd: the last axis of 'indices' must be a known number from 1 to the rank of 'x', "
       "3, found [5]. docs/operators.md says what scatter_nd takes; export the model again if a tool wrote it. "
       "(operator ScatterND, version 18)"},
      {24,
       [](ModelBuilder& m) {
         m.node("TensorScatter", {"x", "x"}, {"y"}, {{"axis", INT64_C(0)}});
       },
       rule("TensorScatter", "axis must not be 0, the axis of the batch.", "TensorScatter, version 24")},
  });
}

TEST(Refusals, Images) {
  expect_refused({
      {18,
       [](ModelBuilder& m) {
         m.node("RoiAlign", {"x", "m", "i"}, {"y"});
       },
       "node 'RoiAlign_1': roi_align: operand 'x' must be (N, C, H, W), found f32[2, 3, 4]. docs/operators.md says "
       "what roi_align takes; export the model again if a tool wrote it. (operator RoiAlign, version 16)"},
      {18,
       [](ModelBuilder& m) {
         m.node("RoiAlign", {"x", "m", "i"}, {"y"}, {{"mode", std::string("sum")}});
       },
       rule("RoiAlign", "mode is 'sum'; it must be avg or max.", "RoiAlign, version 16")},
      {18,
       [](ModelBuilder& m) {
         m.node("MaxRoiPool", {"x", "m"}, {"y"});
       },
       rule("MaxRoiPool", "attribute 'pooled_shape' must be there, with two entries.", "MaxRoiPool, version 1")},
      {18,
       [](ModelBuilder& m) {
         m.node("NonMaxSuppression", {"m", "x"}, {"y"});
       },
       "node 'NonMaxSuppression_1': non_max_suppression: 'boxes' must be [images, boxes, 4] and 'scores' [images, "
       "classes, boxes], found [3, 4] and [2, 3, 4]. docs/operators.md says what non_max_suppression takes; export the "
       "model again if a tool wrote it. (operator NonMaxSuppression, version 11)"},
      {18,
       [](ModelBuilder& m) {
         m.node("Col2Im", {"x", "i", "i"}, {"y"});
       },
       "node 'Col2Im_1': block_shape ('i', i64[5]) is computed from the model's inputs; it must be fixed in the model. "
       "Make it a constant before the export. (operator Col2Im, version 18)"},
      {18,
       [](ModelBuilder& m) {
         m.node("CenterCropPad", {"x", "i"}, {"y"});
       },
       rule("CenterCropPad", "shape has 5 entries for 3 axes.", "CenterCropPad, version 18")},
      {18,
       [](ModelBuilder& m) {
         m.node("MaxUnpool", {"x", "x"}, {"y"});
       },
       rule("MaxUnpool", "kernel_shape must have one entry per spatial axis of f32[2, 3, 4].",
            "MaxUnpool, version 11")},
      {18,
       [](ModelBuilder& m) {
         m.node("ReverseSequence", {"x", "i"}, {"y"}, {{"time_axis", INT64_C(2)}, {"batch_axis", INT64_C(0)}});
       },
       rule("ReverseSequence",
            "time_axis and batch_axis must be 0 and 1, or 1 and 0, of at least two axes; found 2 and 0 for f32[2, 3, "
            "4].",
            "ReverseSequence, version 10")},
      {18, [](ModelBuilder& m) { m.node("Det", {"m"}, {"y"}); },
       "node 'Det_1': det: the number of rows (3) must equal the number of columns (4). docs/operators.md says what "
       "det takes; export the model again if a tool wrote it. (operator Det, version 11)"},
  });
}

TEST(Refusals, Quantisation) {
  expect_refused({
      {18,
       [](ModelBuilder& m) {
         m.node("QuantizeLinear", {"x", "i"}, {"y"});
       },
       rule("QuantizeLinear", "the scale must be a float, found i64[5].", "QuantizeLinear, version 13")},
      {18,
       [](ModelBuilder& m) {
         m.reals("scale", {}, {0.5F});
         m.node("QuantizeLinear", {"x", "scale", "k"}, {"y"});
       },
       rule("QuantizeLinear", "the quantised type must be a 4-, 8- or 16-bit integer or an 8-bit float, found i64.",
            "QuantizeLinear, version 13")},
      {18,
       [](ModelBuilder& m) {
         m.reals("scale", {}, {0.5F});
         m.node("DequantizeLinear", {"b", "scale", "k"}, {"y"});
       },
       rule("DequantizeLinear", "the zero point must have the operand's type u8, found i64[].",
            "DequantizeLinear, version 13")},
      {18,
       [](ModelBuilder& m) {
         m.node("MatMulInteger", {"x", "m"}, {"y"});
       },
       rule("MatMulInteger", "operand 0 must be i8 or u8, found f32[2, 3, 4].", "MatMulInteger, version 10")},
      {21,
       [](ModelBuilder& m) {
         m.reals("scale", {2}, {0.5F, 0.5F});
         m.node("QuantizeLinear", {"x", "scale"}, {"y"}, {{"block_size", INT64_C(2)}});
       },
       rule("QuantizeLinear",
            "with block_size, scale and zero point must have the rank of the operand, 3, found f32[2].",
            "QuantizeLinear, version 21")},
  });
}

TEST(Refusals, Noise) {
  expect_refused({
      {18, [](ModelBuilder& m) { m.node("RandomNormal", {}, {"y"}); },
       rule("RandomNormal", "attribute 'shape' is missing.", "RandomNormal, version 1")},
      {18, [](ModelBuilder& m) { m.node("RandomUniformLike", {"i"}, {"y"}); },
       rule("RandomUniformLike", "dtype must be a float, found i64.", "RandomUniformLike, version 1")},
      {18, [](ModelBuilder& m) { m.node("Bernoulli", {"i"}, {"y"}); },
       rule("Bernoulli", "the probabilities must be floats, found i64[5].", "Bernoulli, version 15")},
      {18,
       [](ModelBuilder& m) {
         m.node("Multinomial", {"m"}, {"y"}, {{"sample_size", INT64_C(0)}});
       },
       rule("Multinomial", "sample_size is 0; it must be at least 1.", "Multinomial, version 7")},
  });
}

}  // namespace
}  // namespace polyphase

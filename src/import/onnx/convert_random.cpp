// RandomNormal, RandomUniform, their …Like forms, Bernoulli, Multinomial: seeded noise, the same at every run.
#include <bit>
#include <cmath>

#include "import/onnx/node_context.h"
#include "wire/dtype_map.h"

namespace polyphase {
namespace {

// The bits of the model's seed; without one a hash (FNV-1a) of the node's name, so that no two nodes draw alike.
std::int64_t seed_of(NodeContext& node) {
  if (node.has_attribute("seed"))
    return static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(static_cast<float>(node.real("seed", 0))));
  node.warn("it has no seed; the numbers are the same at every run");
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char letter : node.name()) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  return static_cast<std::int64_t>(hash);
}

Result<DType> dtype_of(NodeContext& node, DType otherwise) {
  if (!node.has_attribute("dtype")) return otherwise;
  return wire::dtype_from_onnx(static_cast<int>(std::min<std::int64_t>(1000, node.integer("dtype", 0))));
}

Result<Values> convert_random(NodeContext& node) {
  const bool is_like = node.op_type() == "RandomNormalLike" || node.op_type() == "RandomUniformLike";
  const bool normal = node.op_type() == "RandomNormal" || node.op_type() == "RandomNormalLike";
  TRY(const DType dtype, dtype_of(node, is_like ? node.type(0).dtype : DType::f32));
  if (!is_float(dtype)) return broken_rule("dtype must be a float, found " + std::string(name_of(dtype)) + ".");
  std::vector<Dim> shape;
  if (is_like) {
    shape = node.shape(0).dims();
  } else {
    const auto given = node.integers("shape");
    if (!given.has_value()) return broken_rule("attribute 'shape' is missing.");
    shape.assign(given->begin(), given->end());
  }
  const double a = normal ? node.real("mean", 0) : node.real("low", 0);
  const double b = normal ? node.real("scale", 1) : node.real("high", 1);
  return single(node.emit("random",
                          Attributes({{"shape", std::move(shape)},
                                      {"dtype", dtype},
                                      {"distribution", std::string(normal ? "normal" : "uniform")},
                                      {"a", a},
                                      {"b", b},
                                      {"key", seed_of(node)}}),
                          {}));
}

Result<Value*> uniform(NodeContext& node, std::vector<Dim> shape, DType dtype, double low) {
  return node.emit("random",
                   Attributes({{"shape", std::move(shape)}, {"dtype", dtype}, {"a", low}, {"key", seed_of(node)}}), {});
}

// 1 where a uniform number lies below the probability.
Result<Values> convert_bernoulli(NodeContext& node) {
  const DType given = node.type(0).dtype;
  if (!is_float(given)) return broken_rule("the probabilities must be floats, found " + node.type(0).text() + ".");
  TRY(const DType dtype, dtype_of(node, given));
  TRY(Value * drawn, uniform(node, node.shape(0).dims(), given == DType::f64 ? DType::f64 : DType::f32, 0));
  TRY(Value * probability, node.emit("cast", Attributes({{"to", drawn->type.dtype}}), {node.input(0)}));
  TRY(Value * is_below, node.emit("less", {}, {drawn, probability}));
  return single(node.emit("cast", Attributes({{"to", dtype}}), {is_below}));
}

// The class whose logit plus Gumbel noise, -log(-log(u)), is the greatest.
Result<Values> convert_multinomial(NodeContext& node) {
  if (node.rank(0) != 2 || !is_float(node.type(0).dtype))
    return broken_rule("the operand must be log-probabilities [batch, classes], found " + node.type(0).text() + ".");
  TRY(const DType dtype, dtype_of(node, DType::i32));
  if (dtype != DType::i32 && dtype != DType::i64)
    return broken_rule("dtype must be INT32 or INT64, found " + std::string(name_of(dtype)) + ".");
  const std::int64_t samples = node.integer("sample_size", 1);
  if (samples < 1) return broken_rule("sample_size is " + std::to_string(samples) + "; it must be at least 1.");
  const Dim batch = node.shape(0)[0];
  const Dim classes = node.shape(0)[1];
  TRY(Value * noise, uniform(node, {batch, Dim(samples), classes}, DType::f32, 0x1p-25));
  for (const char* op_name : {"log", "neg", "log", "neg"}) {
    TRY(noise, node.emit(op_name, {}, {noise}));
  }
  TRY(Value * logits, node.emit("cast", Attributes({{"to", DType::f32}}), {node.input(0)}));
  TRY(logits, node.emit("reshape", Attributes({{"shape", std::vector<Dim>{batch, Dim(1), classes}}}), {logits}));
  TRY(Value * sum, node.emit("add", {}, {logits, noise}));
  TRY(Value * best, node.emit("arg_max", Attributes({{"axis", std::int64_t{2}}, {"keep", false}}), {sum}));
  return single(node.emit("cast", Attributes({{"to", dtype}}), {best}));
}

}  // namespace

std::vector<Converter> random_converters() {
  return {
      {"Bernoulli", {15, 22}, 1, 1, convert_bernoulli}, {"Multinomial", {7, 22}, 1, 1, convert_multinomial},
      {"RandomNormal", {1, 22}, 0, 0, convert_random},  {"RandomNormalLike", {1, 22}, 1, 1, convert_random},
      {"RandomUniform", {1, 22}, 0, 0, convert_random}, {"RandomUniformLike", {1, 22}, 1, 1, convert_random},
  };
}

}  // namespace polyphase

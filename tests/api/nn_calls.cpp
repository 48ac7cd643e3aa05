// Makes the calls of polyphase/nn_functional.h that standard input lists as JSON, each in a network of its own, and
// prints what became of them: the network as text, or the error. tests/python/nn/test_cpp_functional.py holds that to
// Python's.
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>

#include "api/nn_call.h"

namespace polyphase::api::nn {
namespace {

using Pieces = Result<std::vector<NetworkTensor>>;
namespace F = functional;

Pieces single(const Result<NetworkTensor>& made) {
  if (!made.ok()) return Error(made.error());
  return std::vector<NetworkTensor>{*made};
}

using Function = std::function<Pieces(const Call&)>;
using Functions = std::map<std::string, Function>;

template <typename Layer>
Function convolution(Layer layer) {
  return [layer](const Call& c) {
    const F::ConvOptions defaults;
    return single(layer(c.operand("input"), c.operand("weight"), c.operand("bias"),
                        {.stride = c.numbers("stride", defaults.stride),
                         .padding = c.numbers("padding", defaults.padding),
                         .dilation = c.numbers("dilation", defaults.dilation),
                         .groups = c.integer("groups", defaults.groups)}));
  };
}

template <typename Layer>
Function transposed(Layer layer) {
  return [layer](const Call& c) {
    const F::ConvTransposeOptions defaults;
    return single(layer(c.operand("input"), c.operand("weight"), c.operand("bias"),
                        {.stride = c.numbers("stride", defaults.stride),
                         .padding = c.numbers("padding", defaults.padding),
                         .output_padding = c.numbers("output_padding", defaults.output_padding),
                         .dilation = c.numbers("dilation", defaults.dilation),
                         .groups = c.integer("groups", defaults.groups)}));
  };
}

void add_windows(Functions& f) {
  f["conv1d"] = convolution(F::conv1d);
  f["conv2d"] = convolution(F::conv2d);
  f["conv3d"] = convolution(F::conv3d);
  f["conv_transpose1d"] = transposed(F::conv_transpose1d);
  f["conv_transpose2d"] = transposed(F::conv_transpose2d);
  f["conv_transpose3d"] = transposed(F::conv_transpose3d);
  f["avg_pool2d"] = [](const Call& c) {
    const F::AvgPool2dOptions d;
    return single(F::avg_pool2d(c.operand("input"), c.numbers("kernel_size"),
                                {.stride = c.numbers("stride"),
                                 .padding = c.numbers("padding", d.padding),
                                 .ceil_mode = c.flag("ceil_mode", d.ceil_mode),
                                 .count_include_pad = c.flag("count_include_pad", d.count_include_pad)}));
  };
  f["interpolate"] = [](const Call& c) {
    const F::InterpolateOptions d;
    return single(F::interpolate(c.operand("input"),
                                 {.size = c.sizes("size"),
                                  .scale_factor = c.reals("scale_factor"),
                                  .mode = c.word("mode", d.mode.c_str()),
                                  .align_corners = c.flag("align_corners", d.align_corners),
                                  .recompute_scale_factor = c.flag("recompute_scale_factor", d.recompute_scale_factor),
                                  .antialias = c.flag("antialias", d.antialias)}));
  };
  f["pad"] = [](const Call& c) {
    const auto pads = c.numbers("pad").list();
    if (!c.has("mode")) return single(F::pad(c.operand("input"), pads));
    return single(F::pad(c.operand("input"), pads, c.word("mode", ""), c.real("value", 0)));
  };
}

void add_norms(Functions& f) {
  f["layer_norm"] = [](const Call& c) {
    const F::LayerNormOptions d;
    return single(F::layer_norm(c.operand("input"), c.numbers("normalized_shape"),
                                {.weight = c.operand("weight"),
                                 .bias = c.operand("bias"),
                                 .eps = c.real("eps", d.eps),
                                 .use_diff_of_squares = c.flag("use_diff_of_squares", d.use_diff_of_squares)}));
  };
  f["rms_norm"] = [](const Call& c) {
    const F::RmsNormOptions d;
    return single(F::rms_norm(c.operand("input"), c.numbers("normalized_shape"),
                              {.weight = c.operand("weight"), .eps = c.real("eps", d.eps)}));
  };
  f["group_norm"] = [](const Call& c) {
    const F::GroupNormOptions d;
    return single(
        F::group_norm(c.operand("input"), c.integer("num_groups"),
                      {.weight = c.operand("weight"), .bias = c.operand("bias"), .eps = c.real("eps", d.eps)}));
  };
  f["instance_norm"] = [](const Call& c) {
    const F::GroupNormOptions d;
    return single(F::instance_norm(
        c.operand("input"), {.weight = c.operand("weight"), .bias = c.operand("bias"), .eps = c.real("eps", d.eps)}));
  };
}

void add_shapes(Functions& f) {
  f["cast"] = [](const Call& c) { return single(F::cast(c.operand("input"), c.dtype("dtype"))); };
  f["view"] = [](const Call& c) {
    return single(F::view(c.operand("input"), c.sizes("shape"), c.flag("zero_is_placeholder", true)));
  };
  f["expand_dims"] = [](const Call& c) { return single(F::expand_dims(c.operand("input"), c.numbers("dim"))); };
  f["expand"] = [](const Call& c) { return single(F::expand(c.operand("input"), c.sizes("expand_shape"))); };
  f["permute"] = [](const Call& c) { return single(F::permute(c.operand("input"), c.numbers("dims"))); };
  f["transpose"] = [](const Call& c) {
    return single(F::transpose(c.operand("input"), c.integer("dim0"), c.integer("dim1")));
  };
  f["shape"] = [](const Call& c) { return single(F::shape(c.operand("input"), c.axis("dim"))); };
  f["arange"] = [](const Call& c) {
    return single(F::arange(c.network(), c.size("start"), c.size("end"), c.dtype("dtype", DType::i64)));
  };
  f["concat"] = [](const Call& c) { return single(F::concat(c.operands("inputs"), c.integer("dim"))); };
  f["slice"] = [](const Call& c) {
    return single(F::slice(c.operand("input"), c.size_list("starts"), c.size_list("sizes")));
  };
  f["split"] = [](const Call& c) {
    return F::split(c.operand("tensor"), c.numbers("split_size_or_sections"), c.integer("dim"));
  };
  f["chunk"] = [](const Call& c) { return F::chunk(c.operand("tensor"), c.integer("chunks"), c.integer("dim")); };
  f["flip"] = [](const Call& c) { return single(F::flip(c.operand("input"), c.numbers("dims"))); };
  f["select"] = [](const Call& c) {
    return single(F::select(c.operand("input"), c.integer("dim"), c.operand("index")));
  };
  f["index_select"] = [](const Call& c) {
    return single(F::index_select(c.operand("input"), c.integer("dim"), c.operand("index")));
  };
  f["gather"] = [](const Call& c) {
    return single(F::gather(c.operand("input"), c.integer("dim"), c.operand("indices")));
  };
  f["where"] = [](const Call& c) {
    return single(F::where(c.operand("condition"), c.operand("input"), c.operand("other")));
  };
}

void add_math(Functions& f) {
  f["softmax"] = [](const Call& c) { return single(F::softmax(c.operand("input"), c.axis("dim"))); };
  f["mean"] = [](const Call& c) {
    return single(F::mean(c.operand("input"), c.numbers("dim"), c.flag("keepdim", false)));
  };
  f["max"] = [](const Call& c) {
    return single(F::max(c.operand("input"), c.numbers("dim"), c.flag("keepdim", false)));
  };
  f["argmax"] = [](const Call& c) {
    return single(F::argmax(c.operand("input"), c.integer("dim"), c.flag("keepdim", false)));
  };
  f["matmul"] = [](const Call& c) {
    return single(F::matmul(c.operand("input"), c.operand("mat2"), c.flag("transa", false), c.flag("transb", false)));
  };
  f["linear"] = [](const Call& c) {
    return single(F::linear(c.operand("input"), c.operand("weight"), c.operand("bias")));
  };
  f["embedding"] = [](const Call& c) { return single(F::embedding(c.operand("input"), c.operand("weight"))); };
  f["einsum"] = [](const Call& c) { return single(F::einsum(c.word("einsum_eq", ""), c.operands("inputs"))); };
  f["softplus"] = [](const Call& c) {
    return single(F::softplus(c.operand("input"), c.real("beta", 1), c.real("threshold", 20)));
  };
  f["gelu"] = [](const Call& c) { return single(F::gelu(c.operand("input"), c.word("approximate", "tanh"))); };
  f["clip"] = [](const Call& c) { return single(F::clip(c.operand("input"), c.real("alpha", 0), c.real("beta", 0))); };
  using Unary = Result<NetworkTensor> (*)(const Operand&);
  for (const auto& [name, function] : std::map<std::string, Unary>{{"mish", F::mish},
                                                                   {"silu", F::silu},
                                                                   {"relu", F::relu},
                                                                   {"sigmoid", F::sigmoid},
                                                                   {"tanh", F::tanh},
                                                                   {"round", F::round},
                                                                   {"sqrt", F::sqrt},
                                                                   {"exp", F::exp},
                                                                   {"log", F::log},
                                                                   {"sin", F::sin},
                                                                   {"cos", F::cos},
                                                                   {"abs", F::abs}})
    f[name] = [function = function](const Call& c) { return single(function(c.operand("input"))); };
  using Binary = Result<NetworkTensor> (*)(const Operand&, const Operand&);
  for (const auto& [name, function] : std::map<std::string, Binary>{{"add", F::add},
                                                                    {"sub", F::sub},
                                                                    {"mul", F::mul},
                                                                    {"div", F::div},
                                                                    {"pow", F::pow},
                                                                    {"minimum", F::minimum},
                                                                    {"maximum", F::maximum},
                                                                    {"gt", F::gt},
                                                                    {"lt", F::lt},
                                                                    {"eq", F::eq},
                                                                    {"op_and", F::op_and},
                                                                    {"op_or", F::op_or}})
    f[name] = [function = function](const Call& c) { return single(function(c.operand("left"), c.operand("right"))); };
}

Json answer(const Functions& functions, const Json& call) {
  Network network;
  std::vector<Result<NetworkTensor>> inputs;
  int number = 0;
  for (const Json& input : call.at("inputs")) {
    const std::vector<std::string> texts = input.at("sizes");
    inputs.push_back(network.add_input("x" + std::to_string(number++),
                                       *dtype_from_name(input.at("dtype").get<std::string>()),
                                       std::vector<Size>(texts.begin(), texts.end())));
  }
  const Pieces made = functions.at(call.at("f"))(Call(network, inputs, call.at("arguments")));
  if (!made.ok()) return refusal(made.error());
  Json names = Json::array();
  for (const NetworkTensor& one : *made) names.push_back(one.name());
  return {{"text", network.text()}, {"results", names}};
}

}  // namespace
}  // namespace polyphase::api::nn

int main() {
  using namespace polyphase::api::nn;
  Functions functions;
  add_windows(functions);
  add_norms(functions);
  add_shapes(functions);
  add_math(functions);
  Json answers = Json::array();
  for (const Json& call : Json::parse(std::cin)) answers.push_back(answer(functions, call));
  std::cout << answers.dump();
}

// Makes the layers of polyphase/nn.h that standard input lists as JSON, fills them from safetensors files, and prints
// what they write into a network and what they give for arrays of such a file, or the error.
// tests/python/nn/test_cpp_layers.py holds that to PyTorch's modules and to Python's.
#include <functional>
#include <iostream>
#include <map>

#include "api/nn_call.h"

namespace polyphase::api::nn {
namespace {

namespace F = functional;
using Inputs = std::vector<NetworkTensor>;

// A module of any type, and how it is called.
struct Made {
  Module module;
  WriteLayers write;
};
using Maker = std::function<Made(const Call&)>;

// What any module shares with its copies; its own type is the caller's matter.
Module base_of(const Module& module) { return module; }

template <typename M>
Made of_one(M module) {
  return {base_of(module), [module](const Inputs& in) { return module(in[0]); }};
}

ConvOptions conv_options(const Call& c) {
  const ConvOptions d;
  return {.stride = c.numbers("stride", d.stride),
          .padding = c.numbers("padding", d.padding),
          .dilation = c.numbers("dilation", d.dilation),
          .groups = c.integer("groups", d.groups),
          .bias = c.flag("bias", d.bias),
          .padding_mode = c.word("padding_mode", d.padding_mode.c_str()),
          .dtype = c.has("dtype") ? std::optional(c.dtype("dtype")) : std::nullopt};
}

template <typename M>
Made conv(const Call& c) {
  return of_one(M(c.integer("in_channels"), c.integer("out_channels"), c.numbers("kernel_size"), conv_options(c)));
}

template <typename M>
Made conv_transpose(const Call& c) {
  const ConvTransposeOptions d;
  const M module(c.integer("in_channels"), c.integer("out_channels"), c.numbers("kernel_size"),
                 {.stride = c.numbers("stride", d.stride),
                  .padding = c.numbers("padding", d.padding),
                  .output_padding = c.numbers("output_padding", d.output_padding),
                  .dilation = c.numbers("dilation", d.dilation),
                  .groups = c.integer("groups", d.groups),
                  .bias = c.flag("bias", d.bias),
                  .padding_mode = c.word("padding_mode", d.padding_mode.c_str())});
  const Sizes size = c.sizes("output_size");
  return {base_of(module),
          [module, size](const Inputs& in) { return module(in[0], in.size() > 1 ? Sizes(in[1]) : size); }};
}

// As in test_layers.py: a generator with two heads, and a U-Net whose way up is as large as its way down.
struct Generator : Module {
  Sequential body = add("body", Sequential(ConvTranspose2d(16, 8, 4, {.bias = false}), GroupNorm(2, 8), Mish(),
                                           ConvTranspose2d(8, 3, 4, {.stride = 2, .padding = 1})));
  ModuleList<Conv2d> heads = add("heads", ModuleList<Conv2d>({Conv2d(3, 2, 1), Conv2d(3, 3, 1)}));
  Generator() : Module("OurGenerator") {}
  Result<NetworkTensor> operator()(const Operand& x) const {
    const auto y = F::tanh(body(x));
    std::vector<Operand> parts;
    for (const Conv2d& head : heads) parts.emplace_back(head(y));
    return F::concat(parts, 1);
  }
};

struct Block : Module {
  Conv2d conv;
  GroupNorm norm;
  Block(std::int64_t in, std::int64_t out)
      : Module("Block"),
        conv(add("conv", Conv2d(in, out, 3, {.padding = 1, .padding_mode = "reflect"}))),
        norm(add("norm", GroupNorm(2, out))) {}
  Result<NetworkTensor> operator()(const Operand& x) const { return F::silu(norm(conv(x))); }
};

struct UNet : Module {
  Block first = add("first", Block(3, 8));
  Conv2d down = add("down", Conv2d(8, 12, 3, {.stride = 2, .padding = 1}));
  Block middle = add("middle", Block(12, 12));
  ConvTranspose2d up = add("up", ConvTranspose2d(12, 8, 3, {.stride = 2, .padding = 1}));
  Block last = add("last", Block(16, 8));
  Conv2d head = add("head", Conv2d(8, 1, 1));
  UNet() : Module("UNet") {}
  Result<NetworkTensor> operator()(const Operand& x) const {
    const auto skip = first(x);
    const auto deep = up(middle(down(skip)), skip);
    return head(last(F::concat({deep, skip}, 1)));
  }
};

std::map<std::string, Maker> makers() {
  std::map<std::string, Maker> m;
  m["Conv1d"] = conv<Conv1d>;
  m["Conv2d"] = conv<Conv2d>;
  m["Conv3d"] = conv<Conv3d>;
  m["ConvTranspose1d"] = conv_transpose<ConvTranspose1d>;
  m["ConvTranspose2d"] = conv_transpose<ConvTranspose2d>;
  m["ConvTranspose3d"] = conv_transpose<ConvTranspose3d>;
  m["LayerNorm"] = [](const Call& c) {
    const LayerNormSettings d;
    return of_one(LayerNorm(
        c.numbers("normalized_shape"),
        {.eps = c.real("eps", d.eps), .elementwise_affine = c.flag("elementwise_affine", d.elementwise_affine)}));
  };
  m["RmsNorm"] = [](const Call& c) {
    const RmsNormSettings d;
    return of_one(RmsNorm(
        c.numbers("normalized_shape"),
        {.eps = c.real("eps", d.eps), .elementwise_affine = c.flag("elementwise_affine", d.elementwise_affine)}));
  };
  m["GroupNorm"] = [](const Call& c) {
    const GroupNormSettings d;
    return of_one(GroupNorm(c.integer("num_groups"), c.integer("num_channels"),
                            {.eps = c.real("eps", d.eps), .affine = c.flag("affine", d.affine)}));
  };
  m["InstanceNorm"] = [](const Call& c) {
    const InstanceNormSettings d;
    return of_one(
        InstanceNorm(c.integer("num_features"), {.eps = c.real("eps", d.eps), .affine = c.flag("affine", d.affine)}));
  };
  m["Linear"] = [](const Call& c) {
    return of_one(Linear(c.integer("in_features"), c.integer("out_features"), {.bias = c.flag("bias", true)}));
  };
  m["Embedding"] = [](const Call& c) {
    return of_one(Embedding(c.integer("num_embeddings"), c.integer("embedding_dim")));
  };
  m["MultiHeadAttention"] = [](const Call& c) -> Made {
    const MultiHeadAttention module(c.integer("embed_dim"), c.integer("num_heads"),
                                    {.bias = c.flag("bias", true), .batch_first = c.flag("batch_first", false)});
    return {
        base_of(module), [module](const Inputs& in) {
          return in.size() == 1 ? module(in[0]) : in.size() == 2 ? module(in[0], in[1]) : module(in[0], in[1], in[2]);
        }};
  };
  m["Mish"] = [](const Call&) { return of_one(Mish()); };
  m["Cast"] = [](const Call& c) { return of_one(c.has("output_dtype") ? Cast(c.dtype("output_dtype")) : Cast()); };
  m["AvgPool2d"] = [](const Call& c) {
    return of_one(AvgPool2d(c.numbers("kernel_size"), {.stride = c.numbers("stride"),
                                                       .padding = c.numbers("padding", 0),
                                                       .ceil_mode = c.flag("ceil_mode", false),
                                                       .count_include_pad = c.flag("count_include_pad", true)}));
  };
  m["Upsample"] = [](const Call& c) {
    return of_one(Upsample({.size = c.sizes("size"),
                            .scale_factor = c.reals("scale_factor"),
                            .mode = c.word("mode", "nearest"),
                            .align_corners = c.flag("align_corners", false)}));
  };
  m["PixelShuffle"] = [](const Call& c) { return of_one(PixelShuffle(c.integer("upscale_factor"))); };
  m["Generator"] = [](const Call&) { return of_one(Generator()); };
  m["UNet"] = [](const Call&) { return of_one(UNet()); };
  return m;
}

Result<Json> answer(const Maker& maker, const Json& call) {
  Network network;
  Made made = maker(Call(network, {}, call.at("arguments")));
  const Result<void> checked = made.module.checked();
  if (!checked.ok()) return Error(checked.error());
  Json out = {{"parameters", Json::array()}};
  for (const auto& [name, parameter] : made.module.named_parameters()) {
    if (parameter.name() != name) return Error{ErrorCode::invalid_argument, parameter.name() + " is not " + name, {}};
    out["parameters"].push_back({name, parameter.shape()});
  }
  for (const auto& [name, module] : made.module.named_modules()) out["modules"].push_back(name);
  if (call.contains("weights")) {
    const auto file = WeightFile::open(call.at("weights"));
    if (!file.ok()) return Error(file.error());
    const auto loaded = made.module.load_state_dict(*file, call.value("strict", true));
    if (!loaded.ok()) return Error(loaded.error());
  }
  const auto arrays = WeightFile::open(call.at("arrays"));
  if (!arrays.ok()) return Error(arrays.error());
  std::vector<Tensor> tensors;
  std::vector<TensorView> views;
  std::vector<NetworkTensor> inputs;
  for (const std::string& name : arrays->names()) {
    const auto tensor = arrays->tensor(name);
    if (!tensor.ok()) return Error(tensor.error());
    tensors.push_back(*tensor);
    views.push_back(tensors.back().view());
    std::vector<Size> sizes(tensor->sizes().begin(), tensor->sizes().end());
    const auto input = network.add_input(name, tensor->dtype(), sizes);
    if (!input.ok()) return Error(input.error());
    inputs.push_back(*input);
  }
  const auto written = made.write(inputs);
  if (!written.ok()) return Error(written.error());
  out["text"] = network.text();
  const auto result = at_once(made.write, views);
  if (!result.ok()) return Error(result.error());
  out["sizes"] = result->sizes();
  out["dtype"] = name_of(result->dtype());
  const auto* bytes = result->as<unsigned char>();
  out["bytes"] = std::vector<unsigned char>(bytes, bytes + result->size_bytes());
  return out;
}

}  // namespace
}  // namespace polyphase::api::nn

int main() {
  using namespace polyphase::api::nn;
  const auto known = makers();
  Json answers = Json::array();
  for (const Json& call : Json::parse(std::cin)) {
    const auto said = answer(known.at(call.at("f")), call);
    answers.push_back(said.ok() ? *said : refusal(said.error()));
  }
  std::cout << answers.dump();
}

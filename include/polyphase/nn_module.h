// Parameters, and the modules that have them: what a PyTorch checkpoint fills by name.
//
//   struct Decoder : nn::Module {
//     nn::ConvTranspose2d up = add("up", nn::ConvTranspose2d(64, 32, 3, {.stride = 2, .padding = 1}));
//     nn::GroupNorm norm = add("norm", nn::GroupNorm(8, 32));
//     Decoder() : Module("Decoder") {}
//     Result<NetworkTensor> operator()(const Operand& x, const Operand& skip) const {
//       return nn::functional::silu(norm(up(x, skip)));                            // as large as that skip connection
//     }
//   };
//   Decoder decoder;
//   Result<void> filled = decoder.load_state_dict(*WeightFile::open("decoder.safetensors"));
//   const auto y = decoder(x, skip);                                               // layers of the network of x and
//   skip const auto at_once = nn::at_once([&](const auto& in) { return decoder(in[0], in[1]); }, {view(…), view(…)});
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "polyphase/nn_settings.h"

namespace polyphase::api::nn {

struct ModuleParts;     // what a Module holds; internal
struct ParameterParts;  // and a Parameter

// Tensors by name, in order.
using StateDict = std::vector<std::pair<std::string, Tensor>>;

// A weight: its shape, and its elements once they are set. A handle: copies are the same weight.
class Parameter {
 public:
  Parameter() = default;  // none: a layer without bias
  // dtype: what it is cast to in networks; not given: its elements are taken as they come. fill: the value of every
  // element from the start, as f32. Errors of it (a negative size, no memory) come out where it is used.
  explicit Parameter(std::vector<std::int64_t> shape, std::optional<DType> dtype = {}, std::optional<double> fill = {});

  bool is_there() const { return parts_ != nullptr; }
  // Where it stands in the outermost module: "body.0.weight".
  std::string name() const;
  const std::vector<std::int64_t>& shape() const;
  const Tensor* value() const;  // null: not set yet
  // Shares the tensor's memory; do not change it while a network has it. Error: invalid_argument (another shape).
  Result<void> set_value(const Tensor& value);
  // The parameter in a network: a constant of its name (the second 'weight' is 'weight.2'), once. Absent where it is
  // none. Error: invalid_argument (it has no elements yet).
  Result<Operand> in(Network& network) const;

 private:
  friend class Module;
  std::shared_ptr<ParameterParts> parts_;
};

// A layer, or layers put together. A handle: copies are the same module, with the same parameters. Constructors have no
// Result: what they refuse comes out of `checked`, and of every call and load_state_dict.
class Module {
 public:
  Result<void> checked() const;

  // By the names that a checkpoint has for them: a module's own first, then those of the modules inside, in the order
  // in which they were added.
  std::vector<std::pair<std::string, Parameter>> named_parameters() const;
  std::vector<Parameter> parameters() const;
  // This module, named "", and those inside.
  std::vector<std::pair<std::string, Module>> named_modules() const;
  // The elements of those parameters that have some.
  StateDict state_dict() const;

  // Sets the parameters: a PyTorch checkpoint of the same architecture, as safetensors or as tensors by name. Weights
  // under weight_norm, in either of PyTorch's spellings, are multiplied out in FP64 (weight = g * v / |v|, Salimans and
  // Kingma 2016). strict: names that are missing or surplus are an error, as a wrong shape always is; it names every
  // one of them, and then nothing is changed. Errors: invalid_argument; unsupported (a dtype of the file).
  Result<void> load_state_dict(const StateDict& state_dict, bool strict = true);
  Result<void> load_state_dict(const WeightFile& file, bool strict = true);

 protected:
  explicit Module(std::string kind = "Module");  // what messages call it

  // Makes a module or a parameter a part of this one under a name; gives it back.
  template <std::derived_from<Module> M>
  M add(const std::string& name, M module) {
    add_module(name, module);
    return module;
  }
  Parameter add(const std::string& name, Parameter parameter);
  // For constructors: what `checked` says from now on, if it said nothing yet.
  void refuse(Error error);

 private:
  friend class Parameter;
  explicit Module(std::shared_ptr<ModuleParts> parts) : parts_(std::move(parts)) {}
  void add_module(const std::string& name, const Module& module);
  std::shared_ptr<ModuleParts> parts_;
};

// Modules one after the other, named 0, 1, …, each a function of one tensor.
class Sequential : public Module {
 public:
  Sequential() : Module("Sequential") {}
  template <typename... Modules>
  explicit Sequential(Modules... modules) : Module("Sequential") {
    (append(std::move(modules)), ...);
  }
  template <std::derived_from<Module> M>
  void append(M module) {
    add(std::to_string(steps_->size()), module);
    steps_->push_back([module](const Operand& x) { return module(x); });
  }
  std::size_t size() const { return steps_->size(); }
  Result<NetworkTensor> operator()(const Operand& x) const;

 private:
  using Step = std::function<Result<NetworkTensor>(const Operand&)>;
  std::shared_ptr<std::vector<Step>> steps_ = std::make_shared<std::vector<Step>>();
};

// Modules of one type in a list, named 0, 1, …; the module around it calls them.
template <std::derived_from<Module> M>
class ModuleList : public Module {
 public:
  explicit ModuleList(const std::vector<M>& modules = {}) : Module("ModuleList") {
    for (const M& module : modules) append(module);
  }
  void append(M module) { modules_->push_back(add(std::to_string(modules_->size()), std::move(module))); }
  std::size_t size() const { return modules_->size(); }
  const M& operator[](std::size_t i) const { return modules_->at(i); }
  auto begin() const { return modules_->begin(); }
  auto end() const { return modules_->end(); }

 private:
  std::shared_ptr<std::vector<M>> modules_ = std::make_shared<std::vector<M>>();
};

// Runs a module or a function of layers on arrays: in a network of its own, compiled for their dtypes and shapes.
// Whoever runs it often keeps an Engine instead. Errors: those of `write`, compile and Session::run.
using WriteLayers = std::function<Result<NetworkTensor>(const std::vector<NetworkTensor>& inputs)>;
Result<Tensor> at_once(const WriteLayers& write, const std::vector<TensorView>& arrays);

}  // namespace polyphase::api::nn

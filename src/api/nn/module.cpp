// Parameter, and Module: the registry of names.
#include "polyphase/nn_module.h"

#include <algorithm>

#include "api/nn/module_parts.h"
#include "api/nn/write.h"

namespace polyphase::api::nn {
namespace {

std::string path_of(const ModuleParts& module) {
  const auto home = module.home.lock();
  if (home == nullptr) return "";
  const std::string outer = path_of(*home);
  return outer.empty() ? module.name : outer + "." + module.name;
}

// Row-major memory of a shape, each element the same.
Result<Tensor> filled_tensor(const std::vector<std::int64_t>& shape, double fill) {
  TRY(Tensor made, Tensor::allocate(DType::f32, shape));
  std::fill_n(made.as<float>(), made.element_count(), static_cast<float>(fill));
  return made;
}

Result<Tensor> row_major(const Tensor& given) {
  TRY(const polyphase::TensorView from, inner_view(given.view(), "the parameter"));
  if (from.is_row_major()) return given;
  TRY(Tensor copy, Tensor::allocate(given.dtype(), given.sizes()));
  TRY(const polyphase::TensorView to, inner_view(copy.view(), "the parameter"));
  copy_elements(from, to);
  return copy;
}

const Error* first_refusal(const ModuleParts& module) {
  if (module.refusal.has_value()) return &*module.refusal;
  for (const auto& [name, child] : module.children) {
    if (const Error* found = first_refusal(*child); found != nullptr) return found;
  }
  return nullptr;
}

bool is_inside(const ModuleParts& module, const ModuleParts& searched) {
  if (&module == &searched) return true;
  return std::any_of(module.children.begin(), module.children.end(),
                     [&](const auto& child) { return is_inside(*child.second, searched); });
}

void collect(const ModuleParts& module, const std::string& prefix,
             std::vector<std::pair<std::string, Parameter>>& found) {
  for (const auto& [name, parameter] : module.parameters) found.emplace_back(prefix + name, parameter);
  for (const auto& [name, child] : module.children) collect(*child, prefix + name + ".", found);
}

using NamedParts = std::vector<std::pair<std::string, std::shared_ptr<ModuleParts>>>;
void collect_modules(const std::shared_ptr<ModuleParts>& module, const std::string& path, NamedParts& found) {
  found.emplace_back(path, module);
  for (const auto& [name, child] : module->children)
    collect_modules(child, path.empty() ? name : path + "." + name, found);
}

}  // namespace

// ---------------------------------------------------------------- parameters

Parameter::Parameter(std::vector<std::int64_t> shape, std::optional<DType> dtype, std::optional<double> fill)
    : parts_(std::make_shared<ParameterParts>()) {
  parts_->shape = std::move(shape);
  parts_->dtype = dtype;
  if (!fill.has_value()) return;
  auto made = filled_tensor(parts_->shape, *fill);
  if (made.ok()) {
    parts_->value = std::move(*made);
  } else {
    parts_->refusal = std::move(made).error();
  }
}

std::string Parameter::name() const {
  if (parts_ == nullptr) return "";
  const auto home = parts_->home.lock();
  const std::string path = home == nullptr ? "" : path_of(*home);
  return path.empty() ? parts_->name : path + "." + parts_->name;
}

const std::vector<std::int64_t>& Parameter::shape() const {
  static const std::vector<std::int64_t> none;
  return parts_ == nullptr ? none : parts_->shape;
}

const Tensor* Parameter::value() const {
  return parts_ == nullptr || !parts_->value.has_value() ? nullptr : &*parts_->value;
}

Result<void> Parameter::set_value(const Tensor& value) {
  return without_throwing([&]() -> Result<void> {
    if (parts_ == nullptr)
      return refused_layer("this layer has no such parameter.", "Give the layer a bias or a weight.");
    if (value.sizes() != parts_->shape) {
      return refused_layer("parameter '" + name() + "' is given the shape " + tuple_text(value.sizes()) +
                               "; expected " + tuple_text(parts_->shape) + ".",
                           "Give a weight of this layer's sizes.");
    }
    TRY(parts_->value, row_major(value));
    return {};
  });
}

Result<Operand> Parameter::in(Network& network) const {
  return without_throwing([&]() -> Result<Operand> {
    if (parts_ == nullptr) return Operand();
    if (parts_->refusal.has_value()) return Error(*parts_->refusal);
    const std::string own = name();
    if (!parts_->value.has_value()) {
      return refused_layer("parameter '" + (own.empty() ? "weight" : own) + "' of shape " + tuple_text(parts_->shape) +
                               " has no elements yet.",
                           "Use load_state_dict, or set its value.");
    }
    TRY(const NetworkTensor made, network.add_parameter(parts_, *parts_->value, parts_->dtype, own));
    return Operand(made);
  });
}

// ---------------------------------------------------------------- modules

Module::Module(std::string kind) : parts_(std::make_shared<ModuleParts>()) { parts_->kind = std::move(kind); }

Result<void> Module::checked() const {
  const Error* found = first_refusal(*parts_);
  if (found != nullptr) return Error(*found);
  return {};
}

void Module::refuse(Error error) {
  if (!parts_->refusal.has_value()) parts_->refusal = std::move(error);
}

Parameter Module::add(const std::string& name, Parameter parameter) {
  if (!parameter.is_there()) return parameter;
  parameter.parts_->name = name;
  parameter.parts_->home = parts_;
  parts_->parameters.emplace_back(name, parameter);
  return parameter;
}

void Module::add_module(const std::string& name, const Module& module) {
  const auto is_named_so = [&](const auto& one) { return one.first == name; };
  if (is_inside(*module.parts_, *parts_)) {
    return refuse(refused_layer("module '" + name + "' of " + parts_->kind + " holds that module itself.",
                                "Add modules from the inside out."));
  }
  if (std::any_of(parts_->children.begin(), parts_->children.end(), is_named_so)) {
    return refuse(refused_layer("two modules of " + parts_->kind + " are named '" + name + "'.",
                                "Give each module a name of its own."));
  }
  module.parts_->name = name;
  module.parts_->home = parts_;
  parts_->children.emplace_back(name, module.parts_);
}

std::vector<std::pair<std::string, Parameter>> Module::named_parameters() const {
  std::vector<std::pair<std::string, Parameter>> found;
  collect(*parts_, "", found);
  return found;
}

std::vector<Parameter> Module::parameters() const {
  std::vector<Parameter> found;
  for (const auto& [name, parameter] : named_parameters()) found.push_back(parameter);
  return found;
}

std::vector<std::pair<std::string, Module>> Module::named_modules() const {
  NamedParts found;
  collect_modules(parts_, "", found);
  std::vector<std::pair<std::string, Module>> out;
  for (auto& [name, parts] : found) out.emplace_back(name, Module(std::move(parts)));
  return out;
}

StateDict Module::state_dict() const {
  StateDict out;
  for (const auto& [name, parameter] : named_parameters()) {
    if (parameter.value() != nullptr) out.emplace_back(name, *parameter.value());
  }
  return out;
}

Result<void> Module::load_state_dict(const WeightFile& file, bool strict) {
  return without_throwing([&]() -> Result<void> {
    StateDict tensors;
    for (const std::string& name : file.names()) {
      TRY(Tensor tensor, file.tensor(name));
      tensors.emplace_back(name, std::move(tensor));
    }
    return load_state_dict(tensors, strict);
  });
}

Result<NetworkTensor> Sequential::operator()(const Operand& x) const {
  return without_throwing([&]() -> Made {
    TRY_VOID(checked());
    TRY(Network network, Network::of({x}));
    TRY(NetworkTensor y, tensor_of(network, x, "input"));
    for (const Step& step : *steps_) {
      TRY(y, step(y));
    }
    return y;
  });
}

}  // namespace polyphase::api::nn

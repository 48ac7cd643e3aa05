// What the handles Module and Parameter hold.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "polyphase/nn_module.h"

namespace polyphase::api::nn {

struct ParameterParts {
  std::vector<std::int64_t> shape = {};
  std::optional<DType> dtype = {};
  std::optional<Tensor> value = {};  // row-major
  std::optional<Error> refusal = {};
  std::string name = {};                       // in its module
  std::weak_ptr<const ModuleParts> home = {};  // that module's
};

struct ModuleParts {
  std::string kind = {};
  std::optional<Error> refusal = {};
  std::vector<std::pair<std::string, Parameter>> parameters = {};
  std::vector<std::pair<std::string, std::shared_ptr<ModuleParts>>> children = {};
  std::string name = {};  // in the module around it
  std::weak_ptr<const ModuleParts> home = {};
};

// The tensors with weights under weight_norm multiplied out. Error: no memory.
Result<StateDict> without_weight_norm(const StateDict& given);

}  // namespace polyphase::api::nn

// What the test programs of polyphase/nn.h read of a call that JSON describes: nn_calls.cpp, nn_layer_calls.cpp.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "polyphase/nn.h"

namespace polyphase::api::nn {

using Json = nlohmann::json;

// The arguments of one call by name. {"t": i} is input i, null an absent operand, all else a value.
class Call {
 public:
  Call(Network& network, std::vector<Result<NetworkTensor>> inputs, const Json& arguments)
      : network_(network), inputs_(std::move(inputs)), arguments_(arguments) {}

  Network& network() const { return network_; }
  bool has(const char* name) const { return arguments_.contains(name); }
  Operand operand(const char* name) const { return has(name) ? operand_of(arguments_.at(name)) : Operand(); }
  std::vector<Operand> operands(const char* name) const {
    std::vector<Operand> out;
    for (const Json& one : arguments_.at(name)) out.push_back(operand_of(one));
    return out;
  }
  std::int64_t integer(const char* name, std::int64_t otherwise = 0) const {
    return has(name) ? arguments_.at(name).get<std::int64_t>() : otherwise;
  }
  double real(const char* name, double otherwise) const {
    return has(name) ? arguments_.at(name).get<double>() : otherwise;
  }
  bool flag(const char* name, bool otherwise) const { return has(name) ? arguments_.at(name).get<bool>() : otherwise; }
  std::string word(const char* name, const char* otherwise) const {
    return has(name) ? arguments_.at(name).get<std::string>() : otherwise;
  }
  std::optional<std::int64_t> axis(const char* name) const {
    return has(name) ? std::optional(integer(name)) : std::nullopt;
  }
  Numbers numbers(const char* name, const Numbers& otherwise = {}) const {
    if (!has(name)) return otherwise;
    const Json& given = arguments_.at(name);
    return given.is_array() ? Numbers(given.get<std::vector<std::int64_t>>()) : Numbers(given.get<std::int64_t>());
  }
  Reals reals(const char* name) const {
    if (!has(name)) return {};
    const Json& given = arguments_.at(name);
    return given.is_array() ? Reals(given.get<std::vector<double>>()) : Reals(given.get<double>());
  }
  Sizes sizes(const char* name) const {
    if (!has(name)) return {};
    const Json& given = arguments_.at(name);
    if (given.is_object()) return operand_of(given);
    return given.is_array() ? Sizes(size_list(name)) : Sizes(size_of(given));
  }
  std::vector<Size> size_list(const char* name) const {
    std::vector<Size> out;
    for (const Json& one : arguments_.at(name)) out.push_back(size_of(one));
    return out;
  }
  Size size(const char* name) const { return size_of(arguments_.at(name)); }
  DType dtype(const char* name, DType otherwise = DType::f32) const {
    return has(name) ? *dtype_from_name(arguments_.at(name).get<std::string>()) : otherwise;
  }

 private:
  static Size size_of(const Json& given) {
    return given.is_string() ? Size(given.get<std::string>()) : Size(given.get<std::int64_t>());
  }
  Operand operand_of(const Json& given) const {
    if (given.is_null()) return {};
    if (given.is_object()) return inputs_.at(given.at("t").get<std::size_t>());
    if (given.is_boolean()) return given.get<bool>();
    return given.is_number_integer() ? Operand(given.get<std::int64_t>()) : Operand(given.get<double>());
  }

  Network& network_;
  std::vector<Result<NetworkTensor>> inputs_;
  const Json& arguments_;
};

inline Json refusal(const Error& error) {
  return {{"message", error.message}, {"hint", error.hint}, {"node", error.node}};
}

}  // namespace polyphase::api::nn

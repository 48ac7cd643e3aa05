// TreeSpec: {type, context, children_spec}; a leaf has no type. Dictionaries have their keys in `context`, as JSON.
#include "import/torch/input_names.h"

#include <nlohmann/json.hpp>

namespace polyphase {
namespace {

using nlohmann::json;

constexpr int max_spec_depth = 60;

std::vector<std::string> keys_of(const json& context) {
  if (!context.is_string()) return {};
  const json parsed = json::parse(context.get_ref<const std::string&>(), nullptr, false);
  std::vector<std::string> out;
  if (!parsed.is_array()) return out;
  for (const json& key : parsed) out.push_back(key.is_string() ? key.get<std::string>() : key.dump());
  return out;
}

bool collect(const json& spec, const std::string& path, int depth, std::vector<std::string>& out) {
  if (depth > max_spec_depth || !spec.is_object()) return false;
  if (spec.at("type").is_null()) {
    out.push_back(path);
    return true;
  }
  const json& children = spec.at("children_spec");
  const std::vector<std::string> keys = keys_of(spec.at("context"));
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::string key = i < keys.size() && keys.size() == children.size() ? keys[i] : std::to_string(i);
    if (!collect(children[i], path + "." + key, depth + 1, out)) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> input_names(const std::string& in_spec, const std::vector<std::string>& parameters) {
  const json parsed = json::parse(in_spec, nullptr, false);
  // [version, tuple(args, kwargs)]
  if (!parsed.is_array() || parsed.size() != 2) return {};
  try {
    const json& parts = parsed[1].at("children_spec");
    const json& positional = parts.at(0).at("children_spec");
    std::vector<std::string> out;
    for (std::size_t i = 0; i < positional.size(); ++i) {
      const std::string name = i < parameters.size() ? parameters[i] : "input_" + std::to_string(i);
      if (!collect(positional[i], name, 0, out)) return {};
    }
    const std::vector<std::string> keys = keys_of(parts.at(1).at("context"));
    const json& named = parts.at(1).at("children_spec");
    for (std::size_t i = 0; i < named.size(); ++i) {
      if (i >= keys.size() || !collect(named[i], keys[i], 0, out)) return {};
    }
    return out;
  } catch (const json::exception&) {
    return {};
  }
}

}  // namespace polyphase

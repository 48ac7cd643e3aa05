// Plugins: operators of somebody else's, in shared libraries written against polyphase/polyphase_op.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "polyphase/result.h"

namespace polyphase {
struct PluginLibrary;
}

namespace polyphase::api {

// A loaded plugin. Copies are the same one; it stays loaded while any of them is there, or a network or engine that was
// given it. Code of the library runs in this process: load only what you trust. Models and engines only name operators,
// they never have a library loaded.
class Plugin {
 public:
  // The file at this path; no folder is searched. Errors: io (no such file), incompatible (no library that loads here,
  // no plugin, another ABI), invalid_argument (its tables contradict themselves).
  static Result<Plugin> load(const std::string& path);

  struct Operator {
    std::string name;  // "stylegan.upfirdn2d": the plugin's name and the operator's
    std::uint32_t version = 0;
    std::string doc;
    std::vector<std::string> claims;  // whose nodes it is: "onnx DOMAIN OP_TYPE", "torch LIBRARY.NAME.OVERLOAD"
  };
  const std::string& name() const;
  const std::string& path() const;
  std::vector<Operator> operators() const;

 private:
  friend struct Access;
  std::shared_ptr<const PluginLibrary> library_;
};

// An operator of a plugin that an engine needs; it runs with exactly this version.
struct PluginUse {
  std::string name;  // as in Plugin::Operator
  std::uint32_t version = 0;
};

}  // namespace polyphase::api

// PluginLibrary: a shared library of somebody else's operators, opened and checked; closed when the last of its
// operators goes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/op.h"

namespace polyphase {

struct PluginLibrary {
  std::string path;
  std::string name;  // the plugin's own
  std::vector<std::shared_ptr<const OpDef>> operators;
};

// Loads the file at `path` and nothing else: no search path is looked at for it. Errors: io (no such file),
// incompatible (no library that loads here, no plugin, another ABI), invalid_argument (the plugin contradicts itself).
Result<std::shared_ptr<const PluginLibrary>> open_plugin(const std::string& path);

}  // namespace polyphase

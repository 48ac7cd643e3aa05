// Plugins as callers hold them, and the workshops that know their operators.
#include "polyphase/plugin.h"

#include "api/state.h"
#include "ops/custom.h"
#include "plugin/library.h"

namespace polyphase::api {

Result<Plugin> Plugin::load(const std::string& path) {
  return without_throwing([&]() -> Result<Plugin> {
    Plugin out;
    TRY(out.library_, open_plugin(path));
    return out;
  });
}

const std::string& Plugin::name() const {
  static const std::string nobody;
  return library_ == nullptr ? nobody : library_->name;
}

const std::string& Plugin::path() const {
  static const std::string nobody;
  return library_ == nullptr ? nobody : library_->path;
}

std::vector<Plugin::Operator> Plugin::operators() const {
  std::vector<Operator> out;
  if (library_ == nullptr) return out;
  for (const auto& op : library_->operators)
    out.push_back({op->name, op->custom->version(), op->doc, op->custom->claims()});
  return out;
}

Result<std::shared_ptr<const Workshop>> workshop_of(const std::vector<Plugin>& plugins) {
  if (plugins.empty()) return built_in_workshop();
  Registry registry = Registry::built_in();
  for (const Plugin& plugin : plugins) {
    const PluginLibrary* library = Access::library(plugin);
    if (library == nullptr) {
      return Error{ErrorCode::invalid_argument, "a Plugin is given that nobody loaded.",
                   "Use what Plugin::load gives."};
    }
    for (const auto& op : library->operators) {
      auto added = registry.add(op);
      if (!added.ok()) return std::move(added).error().within("while adding the plugin '" + library->path + "'");
    }
  }
  return std::make_shared<const Workshop>(std::move(registry));
}

}  // namespace polyphase::api

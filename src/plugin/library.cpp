// dlopen, and the one function that is asked for.
#include "plugin/library.h"

#include <dlfcn.h>

#include <filesystem>
#include <set>

#include "plugin/definition.h"

namespace polyphase {
namespace {

constexpr std::size_t most_operators = 4096;
constexpr const char* advice =
    "Compile it against include/polyphase/polyphase_op.h of this Polyphase, as docs/guides/plugins.md shows.";

std::string last_problem() {
  const char* said = dlerror();
  return said == nullptr ? "the system says nothing more" : plain_text(said);
}

Result<std::shared_ptr<void>> open_library(const std::string& path) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path, problem)) {
    return Error{ErrorCode::io, "there is no plugin file '" + path + "'.",
                 "Give the path of the shared library; no folder is searched for it."};
  }
  // Without a / the system would search its own folders.
  const std::string place = path.find('/') == std::string::npos ? "./" + path : path;
  void* const handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Error{ErrorCode::incompatible,
                 "'" + path + "' is no shared library that can be loaded here: " + last_problem() + ".", advice};
  }
  return std::shared_ptr<void>(handle, [](void* library) { dlclose(library); });
}

Result<const polyphase_plugin*> entry_of(void* library, const std::string& path) {
  dlerror();
  void* const symbol = dlsym(library, "polyphase_get_plugin");
  if (symbol == nullptr) {
    return Error{ErrorCode::incompatible, "'" + path + "' is no plugin: it has no function polyphase_get_plugin.",
                 "Define it as extern \"C\" and POLYPHASE_PLUGIN_EXPORT, as docs/guides/plugins.md shows."};
  }
  const polyphase_plugin* plugin = nullptr;
  try {
    plugin = reinterpret_cast<polyphase_get_plugin_function>(symbol)();
  } catch (...) {
    plugin = nullptr;
  }
  if (plugin == nullptr) {
    return Error{ErrorCode::incompatible, "polyphase_get_plugin of '" + path + "' gives NULL.",
                 "It must give the address of a polyphase_plugin that stays."};
  }
  if (plugin->abi != POLYPHASE_OP_ABI) {
    return Error{ErrorCode::incompatible,
                 "'" + path + "' was compiled for ABI " + std::to_string(plugin->abi) +
                     " of plugins; this Polyphase takes ABI " + std::to_string(POLYPHASE_OP_ABI) + ".",
                 advice};
  }
  return plugin;
}

Error wrong_plugin(const std::string& path, const std::string& what) {
  return {ErrorCode::invalid_argument, "the plugin in '" + path + "' is not well defined: " + what,
          "Correct the plugin; include/polyphase/polyphase_op.h says what each member holds."};
}

}  // namespace

Result<std::shared_ptr<const PluginLibrary>> open_plugin(const std::string& path) {
  TRY(const std::shared_ptr<void> library, open_library(path));
  TRY(const polyphase_plugin* const given, entry_of(library.get(), path));
  const auto plugin = read_struct(given, given->struct_size);
  if (!plugin.has_value()) {
    return wrong_plugin(path, "its struct_size is " + std::to_string(given->struct_size) + "; this Polyphase knows " +
                                  std::to_string(sizeof(polyphase_plugin)) + " bytes, and what is beyond must be 0.");
  }
  if (!is_plugin_word(plugin->name)) return wrong_plugin(path, "its name is not of small letters, digits and _.");
  if (plugin->op_count == 0 || plugin->op_count > most_operators || plugin->ops == nullptr)
    return wrong_plugin(path, "it lists " + std::to_string(plugin->op_count) + " operators.");
  auto out = std::make_shared<PluginLibrary>();
  out->path = path;
  out->name = plugin->name;
  std::set<std::string> names;
  for (std::size_t i = 0; i < plugin->op_count; ++i) {
    auto op = define_operator(plugin->ops[i], out->name, library);
    if (!op.ok()) return std::move(op).error().within("while loading the plugin '" + path + "'");
    if (!names.insert((*op)->name).second) return wrong_plugin(path, "it has two operators '" + (*op)->name + "'.");
    out->operators.push_back(std::move(*op));
  }
  return std::shared_ptr<const PluginLibrary>(std::move(out));
}

}  // namespace polyphase

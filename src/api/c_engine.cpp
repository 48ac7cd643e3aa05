// The C ABI: errors and engines.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "api/c_handles.h"
#include "api/dlpack.h"

namespace {

// Handed out where no other error object can be made; never freed.
polyphase_error& spare_error() {
  static polyphase_error spare{POLYPHASE_OUT_OF_MEMORY, "out of memory.", {}, {}, "out of memory."};
  return spare;
}
[[maybe_unused]] const polyphase_error& made_while_there_is_memory = spare_error();

}  // namespace

namespace polyphase::api {

polyphase_status report(Error error, polyphase_error** out) noexcept {
  const auto status = static_cast<polyphase_status>(error.code) + 1;
  if (out == nullptr) return status;
  try {
    std::string text = error.text();
    *out = new polyphase_error{status, std::move(error.message), std::move(error.hint), std::move(error.node),
                               std::move(text)};
    return status;
  } catch (...) {
    *out = &spare_error();
    return POLYPHASE_OUT_OF_MEMORY;
  }
}

polyphase_status report_current_exception(polyphase_error** out) noexcept {
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    if (out != nullptr) *out = &spare_error();
    return POLYPHASE_OUT_OF_MEMORY;
  } catch (const std::exception& exception) {
    try {
      const std::string text = std::string("a fault of Polyphase itself: ") + exception.what();
      if (out != nullptr) *out = new polyphase_error{POLYPHASE_INTERNAL, text, "Please report it.", {}, text};
    } catch (...) {
      if (out != nullptr) *out = &spare_error();
    }
  } catch (...) {
    if (out != nullptr) *out = &spare_error();
  }
  return POLYPHASE_INTERNAL;
}

namespace {

std::vector<polyphase_engine::Sizes> sizes_of(const std::vector<Port>& ports) {
  std::vector<polyphase_engine::Sizes> out(ports.size());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    for (const std::string& size : ports[i].sizes) out[i].texts.push_back(size.c_str());
  }
  return out;
}

polyphase_status give_port(const polyphase_engine* engine, bool input, std::size_t index, polyphase_port* out,
                           polyphase_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (engine == nullptr) return null_argument("engine");
    if (out == nullptr) return null_argument("out");
    const std::vector<Port>& ports = input ? engine->engine.inputs() : engine->engine.outputs();
    if (index >= ports.size()) {
      return Error{ErrorCode::invalid_argument,
                   "there is no " + std::string(input ? "input " : "output ") + std::to_string(index) +
                       "; the engine has " + std::to_string(ports.size()) + ".",
                   "Ports are counted from 0; ask for their number first."};
    }
    const Port& port = ports[index];
    *out = {port.name.c_str(), static_cast<polyphase_dtype>(port.dtype), static_cast<std::int32_t>(port.sizes.size()),
            (input ? engine->inputs : engine->outputs)[index].texts.data()};
    return {};
  });
}

}  // namespace

Result<std::vector<Plugin>> plugins_of(std::size_t count, const char* const* paths) {
  std::vector<Plugin> out;
  if (count > 0 && paths == nullptr) return null_argument("plugins");
  for (std::size_t i = 0; i < count; ++i) {
    if (paths[i] == nullptr) return null_argument("plugins[]");
    TRY(out.emplace_back(), Plugin::load(paths[i]));
  }
  return out;
}

polyphase_engine* engine_handle(Engine engine) {
  auto handle = std::make_unique<polyphase_engine>();
  handle->engine = std::move(engine);
  handle->inputs = sizes_of(handle->engine.inputs());
  handle->outputs = sizes_of(handle->engine.outputs());
  return handle.release();
}

}  // namespace polyphase::api

using namespace polyphase::api;
using polyphase::Result;

extern "C" {

const char* polyphase_version(void) { return POLYPHASE_VERSION; }
int32_t polyphase_abi_version(void) { return POLYPHASE_ABI_VERSION; }

const char* polyphase_status_name(polyphase_status status) {
  if (status == POLYPHASE_OK) return "ok";
  if (status < 0 || status > POLYPHASE_CANCELLED) return status == POLYPHASE_INTERNAL ? "internal" : "unknown";
  return polyphase::name_of(static_cast<ErrorCode>(status - 1)).data();  // a literal
}

polyphase_status polyphase_error_status(const polyphase_error* error) {
  return error == nullptr ? POLYPHASE_OK : error->status;
}
const char* polyphase_error_message(const polyphase_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}
const char* polyphase_error_hint(const polyphase_error* error) { return error == nullptr ? "" : error->hint.c_str(); }
const char* polyphase_error_node(const polyphase_error* error) { return error == nullptr ? "" : error->node.c_str(); }
const char* polyphase_error_text(const polyphase_error* error) { return error == nullptr ? "" : error->text.c_str(); }
void polyphase_error_free(polyphase_error* error) {
  if (error != &spare_error()) delete error;
}

polyphase_status polyphase_engine_load_with(const char* path, size_t plugin_count, const char* const* plugins,
                                            polyphase_engine** out, polyphase_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (path == nullptr) return null_argument("path");
    if (out == nullptr) return null_argument("out");
    TRY(const std::vector<Plugin> given, plugins_of(plugin_count, plugins));
    TRY(Engine engine, Engine::load(path, given));
    *out = engine_handle(std::move(engine));
    return {};
  });
}

polyphase_status polyphase_engine_load(const char* path, polyphase_engine** out, polyphase_error** error) {
  return polyphase_engine_load_with(path, 0, nullptr, out, error);
}

polyphase_status polyphase_engine_from_bytes_with(const void* bytes, size_t size_bytes, size_t plugin_count,
                                                  const char* const* plugins, polyphase_engine** out,
                                                  polyphase_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (bytes == nullptr) return null_argument("bytes");
    if (out == nullptr) return null_argument("out");
    TRY(const std::vector<Plugin> given, plugins_of(plugin_count, plugins));
    TRY(Engine engine, Engine::from_bytes({static_cast<const std::byte*>(bytes), size_bytes}, given));
    *out = engine_handle(std::move(engine));
    return {};
  });
}

polyphase_status polyphase_engine_from_bytes(const void* bytes, size_t size_bytes, polyphase_engine** out,
                                             polyphase_error** error) {
  return polyphase_engine_from_bytes_with(bytes, size_bytes, 0, nullptr, out, error);
}

polyphase_status polyphase_engine_save(const polyphase_engine* engine, const char* path, polyphase_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (engine == nullptr) return null_argument("engine");
    if (path == nullptr) return null_argument("path");
    return engine->engine.save(path);
  });
}

polyphase_status polyphase_engine_to_bytes(const polyphase_engine* engine, void** bytes, size_t* size_bytes,
                                           polyphase_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (engine == nullptr) return null_argument("engine");
    if (bytes == nullptr) return null_argument("bytes");
    if (size_bytes == nullptr) return null_argument("size_bytes");
    TRY(const std::vector<std::byte> written, engine->engine.to_bytes());
    void* const copy = std::malloc(written.size());
    if (copy == nullptr) return no_more_memory();
    std::memcpy(copy, written.data(), written.size());
    *bytes = copy;
    *size_bytes = written.size();
    return {};
  });
}

void polyphase_bytes_free(void* bytes) { std::free(bytes); }

size_t polyphase_engine_input_count(const polyphase_engine* engine) {
  return engine == nullptr ? 0 : engine->inputs.size();
}
size_t polyphase_engine_output_count(const polyphase_engine* engine) {
  return engine == nullptr ? 0 : engine->outputs.size();
}

polyphase_status polyphase_engine_input(const polyphase_engine* engine, size_t index, polyphase_port* out,
                                        polyphase_error** error) {
  return give_port(engine, true, index, out, error);
}
polyphase_status polyphase_engine_output(const polyphase_engine* engine, size_t index, polyphase_port* out,
                                         polyphase_error** error) {
  return give_port(engine, false, index, out, error);
}

void polyphase_engine_free(polyphase_engine* engine) { delete engine; }

polyphase_status polyphase_engine_refit(const polyphase_engine* engine, size_t weight_count,
                                        const polyphase_weight* weights, polyphase_engine** out,
                                        polyphase_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (engine == nullptr) return null_argument("engine");
    if (weight_count > 0 && weights == nullptr) return null_argument("weights");
    if (out == nullptr) return null_argument("out");
    std::vector<NamedView> given;
    for (std::size_t i = 0; i < weight_count; ++i) {
      if (weights[i].name == nullptr || weights[i].tensor == nullptr) return null_argument("weights[].name or .tensor");
      auto view = view_of_dlpack(*weights[i].tensor);
      if (!view.ok())
        return std::move(view).error().within("while reading weight '" + std::string(weights[i].name) + "'");
      given.push_back({weights[i].name, std::move(view).value()});
    }
    TRY(Engine other, engine->engine.refit(given));
    *out = engine_handle(std::move(other));
    return {};
  });
}

}  // extern "C"

// The C ABI: compile. libpolyphase_runtime lacks this file.
#include <charconv>
#include <cstring>

#include "api/c_handles.h"

namespace polyphase::api {
namespace {

template <typename T>
Result<void> expect_list(const T* list, std::size_t count, const char* name) {
  if (count > 0 && list == nullptr) return null_argument(name);
  return {};
}

Result<std::vector<std::int64_t>> numbers_of(const std::vector<std::string>& sizes, const char* text) {
  std::vector<std::int64_t> out;
  for (const std::string& size : sizes) {
    std::int64_t number = 0;
    const auto read = std::from_chars(size.data(), size.data() + size.size(), number);
    if (read.ec != std::errc() || read.ptr != size.data() + size.size()) {
      return Error{ErrorCode::invalid_argument,
                   "the sizes to tune for, '" + std::string(text) + "', hold '" + size + "'; expected a number.",
                   "Shapes to tune for are numbers, as in 1x3x512x512."};
    }
    out.push_back(number);
  }
  return out;
}

Result<std::map<std::string, std::string>> layouts_of(const polyphase_layout_option* list, std::size_t count,
                                                      const char* name, const char* members) {
  TRY_VOID(expect_list(list, count, name));
  std::map<std::string, std::string> out;
  for (std::size_t i = 0; i < count; ++i) {
    if (list[i].name == nullptr || list[i].layout == nullptr) return null_argument(members);
    out[list[i].name] = list[i].layout;
  }
  return out;
}

Result<CompileOptions> compile_options_of(const polyphase_compile_options* given) {
  TRY(const polyphase_compile_options options, options_of(given));
  CompileOptions out;
  if (options.target != nullptr) out.target = options.target;
  out.refittable = options.refittable != 0;
  out.tune = options.tune != 0;
  out.tune_threads = options.tune_threads;
  if (options.timing_cache != nullptr) out.timing_cache = options.timing_cache;
  if (options.precision != nullptr) out.precision = options.precision;
  if (options.engine_file != nullptr) out.engine_file = options.engine_file;
  TRY_VOID(expect_list(options.shapes, options.shape_count, "shapes"));
  TRY_VOID(expect_list(options.dims, options.dim_count, "dims"));
  TRY_VOID(expect_list(options.tune_for, options.tune_for_count, "tune_for"));
  for (std::size_t i = 0; i < options.shape_count; ++i) {
    const polyphase_shape_option& shape = options.shapes[i];
    if (shape.input == nullptr || shape.sizes == nullptr) return null_argument("shapes[].input or .sizes");
    TRY(out.shapes[shape.input], parse_sizes(shape.sizes));
  }
  for (std::size_t i = 0; i < options.dim_count; ++i) {
    if (options.dims[i].name == nullptr) return null_argument("dims[].name");
    out.dims[options.dims[i].name] = {options.dims[i].low, options.dims[i].high};
  }
  for (std::size_t i = 0; i < options.tune_for_count; ++i) {
    const polyphase_shape_option& shape = options.tune_for[i];
    if (shape.input == nullptr || shape.sizes == nullptr) return null_argument("tune_for[].input or .sizes");
    TRY(const auto sizes, parse_sizes(shape.sizes));
    TRY(out.tune_for[shape.input], numbers_of(sizes, shape.sizes));
  }
  TRY(out.plugins, plugins_of(options.plugin_count, options.plugins));
  TRY(out.input_layouts, layouts_of(options.input_layouts, options.input_layout_count, "input_layouts",
                                    "input_layouts[].name or .layout"));
  TRY(out.output_layouts, layouts_of(options.output_layouts, options.output_layout_count, "output_layouts",
                                     "output_layouts[].name or .layout"));
  return out;
}

}  // namespace
}  // namespace polyphase::api

using namespace polyphase::api;

extern "C" {

polyphase_status polyphase_compile(const char* path, const polyphase_compile_options* options, polyphase_engine** out,
                                   polyphase_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (path == nullptr) return null_argument("path");
    if (out == nullptr) return null_argument("out");
    TRY(const CompileOptions inner, compile_options_of(options));
    TRY(Engine engine, compile(path, inner));
    *out = engine_handle(std::move(engine));
    return {};
  });
}

polyphase_status polyphase_compile_bytes(const void* model, size_t size_bytes, const char* folder,
                                         const polyphase_compile_options* options, polyphase_engine** out,
                                         polyphase_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (model == nullptr) return null_argument("model");
    if (out == nullptr) return null_argument("out");
    TRY(CompileOptions inner, compile_options_of(options));
    if (folder != nullptr) inner.external_data_folder = folder;
    TRY(Engine engine, compile_bytes({static_cast<const std::byte*>(model), size_bytes}, "", inner));
    *out = engine_handle(std::move(engine));
    return {};
  });
}

}  // extern "C"

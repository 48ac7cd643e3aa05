// Compiling from Python, and what a compiler can be asked.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "native/module.h"
#include "native/unlocked.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace polyphase::python {

std::vector<api::Plugin> plugins_of(const nb::list& paths) {
  std::vector<api::Plugin> out;
  for (const nb::handle path : paths) {
    const auto bytes = nb::cast<nb::bytes>(path);
    out.push_back(value_or_raise(api::Plugin::load(std::string(bytes.c_str(), bytes.size()))));
  }
  return out;
}

api::CompileOptions options_of(const nb::dict& given) {
  api::CompileOptions out;
  out.target = nb::cast<std::string>(given["target"]);
  out.precision = nb::cast<std::string>(given["precision"]);
  out.shapes = nb::cast<std::map<std::string, std::vector<std::string>>>(given["shapes"]);
  for (const auto& [name, range] :
       nb::cast<std::map<std::string, std::pair<std::int64_t, std::int64_t>>>(given["dims"]))
    out.dims[name] = {range.first, range.second};
  out.tune_for = nb::cast<std::map<std::string, std::vector<std::int64_t>>>(given["tune_for"]);
  out.input_layouts = nb::cast<std::map<std::string, std::string>>(given["input_layouts"]);
  out.output_layouts = nb::cast<std::map<std::string, std::string>>(given["output_layouts"]);
  out.without = nb::cast<std::vector<std::string>>(given["without"]);
  if (given.contains("refittable")) out.refittable = nb::cast<bool>(given["refittable"]);
  if (given.contains("tune")) {
    out.tune = nb::cast<bool>(given["tune"]);
    out.tune_threads = nb::cast<int>(given["tune_threads"]);
    const auto cache = nb::cast<nb::bytes>(given["timing_cache"]);
    out.timing_cache.assign(cache.c_str(), cache.size());
  }
  if (given.contains("plugins")) out.plugins = plugins_of(nb::cast<nb::list>(given["plugins"]));
  if (given.contains("engine_file")) {
    const auto file = nb::cast<nb::bytes>(given["engine_file"]);
    out.engine_file.assign(file.c_str(), file.size());
  }
  const auto folder = nb::cast<nb::bytes>(given["external_data"]);
  out.external_data_folder.assign(folder.c_str(), folder.size());
  return out;
}

namespace {

int measured_threads(std::int64_t threads) {
  const int given = checked_threads(threads);
  return given != 0 ? given : std::max(1, api::devices().front().cores);
}

}  // namespace

EngineHandle compile_with(const nb::dict& given, nb::object progress,
                          const std::function<Result<api::Engine>(const api::CompileOptions&)>& work) {
  api::TuneReport tuned;
  api::CompileOptions options = options_of(given);
  options.tuned = &tuned;
  EngineHandle out{work_on_model(std::move(options), std::move(progress), work), nullptr};
  for (const std::string& warning : tuned.warnings) {
    if (PyErr_WarnEx(PyExc_UserWarning, warning.c_str(), 1) != 0) throw nb::python_error();  // warnings are errors here
  }
  return out;
}

void bind_compile(nb::module_& module) {
  module.def(
      "compile",
      [](const nb::bytes& path, const nb::dict& options, nb::object progress) {
        const std::string file(path.c_str(), path.size());
        return compile_with(options, std::move(progress),
                            [&](const api::CompileOptions& with) { return api::compile(file, with); });
      },
      "path"_a, "options"_a, "progress"_a.none(),
      nb::sig("def compile(path: bytes, options: dict[str, typing.Any], progress: collections.abc.Callable[[str, "
              "float], object] | "
              "None) -> Engine"));
  module.def(
      "compile_bytes",
      [](const nb::bytes& model, const nb::dict& options, nb::object progress) {
        const std::span<const std::byte> bytes(static_cast<const std::byte*>(model.data()), model.size());
        return compile_with(options, std::move(progress),
                            [&](const api::CompileOptions& with) { return api::compile_bytes(bytes, "", with); });
      },
      "model"_a, "options"_a, "progress"_a.none(),
      nb::sig("def compile_bytes(model: bytes, options: dict[str, typing.Any], progress: "
              "collections.abc.Callable[[str, float], "
              "object] | None) -> Engine"));
  module.def("pass_names", &api::pass_names, "The names that `without` knows.");
  module.def(
      "devices",
      [] {
        nb::list out;
        for (const api::DeviceInfo& device : api::devices()) {
          nb::dict item;
          item["name"] = device.name;
          item["cluster"] = device.cluster;
          item["features"] = device.features;
          item["cores"] = device.cores;
          item["memory_bytes"] = device.memory_bytes;
          out.append(item);
        }
        return out;
      },
      nb::sig("def devices() -> list[dict[str, typing.Any]]"),
      "What can run engines here: name, cluster (the best instructions that Polyphase uses on it), features, cores "
      "that this\n"
      "process may use, memory_bytes.");
  module.def(
      "measured_peak_flops",
      [](std::int64_t threads) {
        const int workers = measured_threads(threads);
        const Unlocked unlocked;
        return api::measured_peak_flops(workers);
      },
      "threads"_a = 0, nb::sig("def measured_peak_flops(threads: int = 0) -> float"),
      "Floating-point operations a second that so many threads (0: one per core) reach here and now with fused\n"
      "multiply-adds on registers alone. It is measured for a moment.");
  module.def(
      "measured_bandwidth",
      [](std::uint64_t bytes, std::int64_t threads) {
        const int workers = measured_threads(threads);
        const Unlocked unlocked;
        return api::measured_bandwidth(workers, bytes);
      },
      "bytes"_a, "threads"_a = 0, nb::sig("def measured_bandwidth(bytes: int, threads: int = 0) -> float"),
      "Bytes a second that so many threads (0: one per core) together move here and now when they touch `bytes` in "
      "all\n"
      "again and again: a cache's rate where those fit into one, the memory's where not. It is measured for a moment; "
      "0:\n"
      "there is no memory for it.");
}

}  // namespace polyphase::python

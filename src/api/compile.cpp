// The spine: a model file becomes an engine.
#include "api/compile.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "api/machine.h"
#include "api/pass_history.h"
#include "api/tuning.h"
#include "base/shape_binding.h"
#include "engine/engine_writer.h"
#include "engine/file.h"
#include "import/border_layouts.h"
#include "lower/lower.h"

namespace polyphase::api {
namespace {

void tell(const CompileOptions& options, std::string_view stage, double done) {
  if (options.progress) options.progress(stage, done);
}

}  // namespace

namespace {

Result<Precision> precision_of(const CompileOptions& options) {
  if (options.precision == "model") return Precision::model;
  if (options.precision == "fp32") return Precision::fp32;
  if (options.precision == "auto") return Precision::automatic;
  return Error{ErrorCode::invalid_argument, "there is no precision '" + options.precision + "'.",
               "Precisions are model, fp32 and auto."};
}

Result<Target> cluster_target(const CompileOptions& options, const Workshop& workshop) {
  if (options.target == "native") return workshop.native_target();
  // Every CPU must take every step of a portable engine, so the least of them chooses.
  if (options.target == "portable") return workshop.target(Cluster::scalar, true);
  const auto cluster = cluster_from_name(options.target);
  if (cluster.has_value()) return workshop.target(*cluster, false);
  return Error{ErrorCode::invalid_argument, "there is no target '" + options.target + "'.",
               "Targets are native, portable, scalar, avx2, avx512, avx512_bf16 and amx."};
}

}  // namespace

Result<Target> target_of(const CompileOptions& options, const Workshop& workshop) {
  TRY(const Precision precision, precision_of(options));
  TRY(Target target, cluster_target(options, workshop));
  target.precision = precision;
  return target;
}

Result<ImportOptions> import_options_of(const CompileOptions& options) {
  ImportOptions out;
  out.refittable = options.refittable;
  for (const auto& [name, range] : options.dims) {
    if (range.low < 0 || range.low > range.high) {
      return Error{ErrorCode::invalid_argument,
                   "the range of size '" + name + "', " + std::to_string(range.low) + ".." +
                       std::to_string(range.high) + ", holds no size.",
                   "Give low and high with 0 <= low <= high."};
    }
    out.dims[name] = {range.low, range.high};
  }
  for (const auto& [input, sizes] : options.shapes) {
    std::vector<Dim>& dims = out.shapes[input];
    for (const std::string& size : sizes) {
      auto dim = parse_dim(size, out.dims);
      if (!dim.ok() || !(dim->is_symbol() || (dim->is_constant() && dim->value() >= 0))) {
        return Error{ErrorCode::invalid_argument,
                     "the shape given for input '" + input + "' has the size '" + size + "'.",
                     "A size is a number or a name, as in x=1x3xHxW."};
      }
      dims.push_back(std::move(*dim));
      if (out.dims.count(size) != 0) out.shape_names.insert(size);
    }
    if (const auto layout = options.input_layouts.find(input); layout != options.input_layouts.end()) {
      TRY(const BorderLayout border, read_border_layout(layout->second, input));
      TRY(dims, in_models_order(dims, border, input));
    }
  }
  return out;
}

Result<ImportedModel> import_source(const ModelSource& source, const CompileOptions& options, const Workshop& workshop,
                                    OperatorSurvey* survey) {
  TRY(ImportOptions import, import_options_of(options));
  import.survey = survey;
  if (const auto* path = std::get_if<std::string_view>(&source); path != nullptr)
    return import_model(std::filesystem::path(*path), workshop.registry(), import);
  std::optional<std::filesystem::path> folder;
  if (!options.external_data_folder.empty()) folder = options.external_data_folder;
  return import_model(std::get<std::span<const std::byte>>(source), workshop.registry(), import, folder);
}

Result<DimBindings> likely_of(const CompileOptions& options, const Graph& graph) {
  DimBindings out;
  for (const auto& [name, sizes] : options.tune_for) {
    const polyphase::Value* found = nullptr;
    std::string known;
    for (const auto& input : graph.inputs()) {
      if (input->name == name) found = input.get();
      known += (known.empty() ? "" : ", ") + input->name;
    }
    if (found == nullptr) {
      return Error{ErrorCode::invalid_argument,
                   "sizes to tune for are given for input '" + name + "', which is not there.",
                   "The model's inputs are: " + known + "."};
    }
    TRY_VOID(bind_shape(found->type.shape, sizes, "the shape to tune for, of input '" + name + "',", out));
  }
  return out;
}

PassOptions pass_options_of(const CompileOptions& options) {
  PassOptions out;
  out.cancelled = options.cancelled;
  out.without = options.without;
  out.print_after = options.print_after;
  out.stop_after = options.stop_after;
  out.print = options.print;
  if (options.progress) {
    out.progress = [&options](const PassReport& report) {
      const double share =
          static_cast<double>(report.position + 1) / static_cast<double>(std::max<std::size_t>(1, report.count));
      options.progress("pass " + std::string(report.name), 0.2 + 0.5 * share);
    };
  }
  return out;
}

namespace {

// Constants that are still in memory of the caller's become the engine's own.
Result<void> keep_copies(polyphase::Engine& engine, const std::vector<std::span<const std::byte>>& lent) {
  for (EngineConstant& constant : engine.constants) {
    if (constant.bytes == nullptr) continue;  // it went into the engine's file
    const std::byte* data = constant.bytes->data();
    const bool is_lent = std::any_of(lent.begin(), lent.end(), [&](const auto& bytes) {
      return std::greater_equal<>()(data, bytes.data()) && std::less<>()(data, bytes.data() + bytes.size());
    });
    if (!is_lent) continue;
    TRY(auto copy, Buffer::allocate_raw(constant.bytes->size_bytes()));
    std::memcpy(copy->data(), data, constant.bytes->size_bytes());
    constant.bytes = std::move(copy);
  }
  return {};
}

Result<polyphase::Engine> compile_for(ImportedModel model, const Target& target, const CompileOptions& options,
                                      EngineWriter* file) {
  Graph& graph = *model.graph;
  PassOptions passes = pass_options_of(options);
  if (options.history != nullptr) record_passes(graph, *options.history, passes);
  TRY_VOID(run_passes(graph, target, passes));
  tell(options, "lower", 0.7);
  LowerOptions lowering{.model_name = model.name,
                        .producer = "polyphase " + std::string(version()),
                        .likely = *target.likely,
                        .cancelled = options.cancelled,
                        .threads = usable_cores(),
                        .refittable = options.refittable,
                        .file = file,
                        .graph_is_read = [&model] { model.graph.reset(); },
                        .weights = {}};
  for (ImportedWeight& weight : model.weights)
    lowering.weights.push_back({weight.names, weight.value, weight.used, weight.fixed_because});
  TRY(polyphase::Engine engine, lower(graph, target, lowering));
  TRY_VOID(keep_copies(engine, model.lent));
  engine.remarks.insert(engine.remarks.begin(), model.warnings.begin(), model.warnings.end());
  return engine;
}

// The engine is what stands in the file.
Result<polyphase::Engine> compile_into(const std::string& path, ImportedModel model, const Target& target,
                                       const CompileOptions& options) {
  TRY(std::string writable, writable_path(path));
  EngineWriter file(std::move(writable));
  TRY_VOID(file.open());
  TRY(polyphase::Engine engine, compile_for(std::move(model), target, options, &file));
  TRY_VOID(file.finish(engine));
  TRY_VOID(file.lend(engine));
  TRY_VOID(file.publish());
  return engine;
}

}  // namespace

namespace {

Result<BorderLayouts> layouts_of(const std::map<std::string, std::string>& given) {
  BorderLayouts out;
  for (const auto& [name, text] : given) {
    TRY(out[name], read_border_layout(text, name));
  }
  return out;
}

}  // namespace

Result<Engine> compile_graph(ImportedModel model, std::shared_ptr<const Workshop> workshop,
                             const CompileOptions& options) {
  TRY(const BorderLayouts inputs, layouts_of(options.input_layouts));
  TRY(const BorderLayouts outputs, layouts_of(options.output_layouts));
  TRY_VOID(set_border_layouts(model, inputs, outputs));
  TRY(Target target, target_of(options, *workshop));
  TRY(const DimBindings likely, likely_of(options, *model.graph));
  TRY(const std::shared_ptr<Tuner> tuner, tuner_of(options, target));
  target.likely = &likely;
  target.times = tuner.get();
  auto engine = options.engine_file.empty() ? compile_for(std::move(model), target, options, nullptr)
                                            : compile_into(options.engine_file, std::move(model), target, options);
  if (tuner != nullptr) finish_tuning(*tuner, options);  // what was measured is kept, whatever came of it
  if (!engine.ok()) return std::move(engine).error();
  tell(options, "done", 1);
  return Access::engine(std::move(workshop), std::move(*engine), tuner);
}

std::vector<std::string> pass_names() {
  std::vector<std::string> out;
  std::set<std::string_view> seen;
  for (const Pass& pass : pass_table()) {
    if (seen.insert(pass.name).second) out.emplace_back(pass.name);
  }
  return out;
}

namespace {

Result<Engine> compile_source(const ModelSource& source, std::string_view name, const CompileOptions& options) {
  return without_throwing([&]() -> Result<Engine> {
    tell(options, "import", 0);
    TRY(auto workshop, workshop_of(options.plugins));
    TRY(ImportedModel model, import_source(source, options, *workshop));
    if (!name.empty()) model.name = std::string(name);
    return compile_graph(std::move(model), std::move(workshop), options);
  });
}

}  // namespace

Result<Engine> compile(const std::string& path, const CompileOptions& options) {
  return compile_source(path, "", options);
}

Result<Engine> compile_bytes(std::span<const std::byte> bytes, std::string_view name, const CompileOptions& options) {
  return compile_source(bytes, name, options);
}

Result<Engine> open(const std::string& path, const CompileOptions& options) {
  return is_engine_file(path) ? Engine::load(path, options.plugins) : compile(path, options);
}

}  // namespace polyphase::api

// check and compare_layers from Python.
#include "polyphase/diagnose.h"

#include "native/arrays.h"
#include "native/module.h"
#include "native/plain_data.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace polyphase::python {

nb::dict plain(const Error& error) {
  return Fields()("code", nb::str(name_of(error.code).data(), name_of(error.code).size()))("message", error.message)(
      "hint", error.hint)("node", error.node)("trail", error.trail);
}

namespace {

constexpr std::string_view claims_of_torch = "torch ";

nb::dict plain_operator(const api::CheckedOperator& checked) {
  const auto problem = [](const api::CheckProblem& found) {
    return nb::dict(Fields()("error", plain(found.error))("nodes", found.nodes));
  };
  return Fields()("domain", checked.domain)("name", checked.name)("opset", checked.opset)("version", checked.version)(
      "is_function", checked.is_function)("nodes", checked.nodes)("nodes_refused", checked.nodes_refused)(
      "is_missing", checked.is_missing)("first_node", checked.first_node)("advice", checked.advice)(
      "problems", list_of(checked.problems, problem));
}

nb::dict plain_size(const api::CheckedSize& size) {
  return Fields()("name", size.name)("low", size.range.low)("high", size.range.high)("inputs", size.inputs)(
      "born_at", size.born_at)("values", size.values);
}

nb::dict plain_slow(const api::CheckedSlow& slow) {
  return Fields()("operation", slow.operation)("operands", slow.operands)("steps", slow.steps)(
      "first_node", slow.first_node)("reasons", slow.reasons);
}

nb::dict plain_layer(const api::LayerResult& layer) {
  return Fields()("tensor", layer.tensor)("node", layer.node)("operation", layer.operation)(
      "dtype", numpy_name(layer.dtype))("sizes", layer.sizes)("held", layer.held)("step", layer.step)("row", layer.row)(
      "compared", layer.compared)("mismatch", layer.mismatch)("largest_absolute", layer.largest_absolute)(
      "relative_rms", layer.relative_rms)("found_nan", layer.found_nan)("found_infinite", layer.found_infinite)(
      "expected_nan", layer.expected_nan)("expected_infinite", layer.expected_infinite)("past_tolerance",
                                                                                        layer.past_tolerance);
}

nb::dict plain_case(const api::CompatCase& one) {
  nb::list operands;
  for (const std::vector<std::int64_t>& sizes : one.operands) operands.append(nb::cast(sizes));
  const std::string_view outcome = name_of(one.outcome);
  return Fields()("sizes", one.sizes)("operands", operands)("kernel", one.kernel)(
      "outcome", nb::str(outcome.data(), outcome.size()))("reason", one.reason)("error", one.error)("tolerance",
                                                                                                    one.tolerance);
}

nb::dict plain_row(const api::CompatRow& row) {
  const auto operand = [](const api::CompatOperand& of) -> nb::object {
    if (!of.present) return nb::none();
    const std::string_view dtype = name_of(of.dtype);
    return nb::dict(Fields()("dtype", nb::str(dtype.data(), dtype.size()))("sizes", of.sizes)("constant", of.constant));
  };
  const std::string_view outcome = name_of(row.outcome);
  return Fields()("operation", row.operation)("attributes", row.attributes)("operands", list_of(row.operands, operand))(
      "nodes", row.nodes)("first_node", row.first_node)("outcome", nb::str(outcome.data(), outcome.size()))(
      "reason", row.reason)("cases", list_of(row.cases, plain_case));
}

nb::dict plain_compat(const api::CompatReport& report, std::uint64_t seed) {
  return Fields()("model_name", report.model_name)("producer", report.producer)("reference", "interpreter")(
      "seed", seed)("constant_nodes", report.constant_nodes)("rows", list_of(report.rows, plain_row))(
      "notes", report.notes)("seconds", report.seconds);
}

api::CompatOptions compat_options(const nb::dict& settings) {
  api::CompatOptions out;
  out.seed = nb::cast<std::uint64_t>(settings["seed"]);
  if (!settings["tolerance"].is_none()) out.tolerance = nb::cast<double>(settings["tolerance"]);
  out.only = nb::cast<std::string>(settings["only"]);
  out.sizes = nb::cast<std::map<std::string, std::vector<std::int64_t>>>(settings["sizes"]);
  return out;
}

nb::dict arrays_of(const std::map<std::string, api::Tensor>& tensors) {
  nb::dict out;
  for (const auto& [name, tensor] : tensors) out[nb::str(name.data(), name.size())] = give_array(tensor, false);
  return out;
}

nb::dict plain_report(const api::LayerReport& report) {
  return Fields()("layers", list_of(report.layers, plain_layer))("first_past", report.first_past)(
      "first_not_finite", report.first_not_finite)("tolerance", report.tolerance)("unknown", report.unknown)(
      "unobserved", report.unobserved)("found", arrays_of(report.found))("expected", arrays_of(report.expected))(
      "run_seconds", report.run_seconds)("capture_seconds", report.capture_seconds)(
      "swallowed_seconds", report.swallowed_seconds)("reference_seconds", report.reference_seconds);
}

// Lends arrays that `keep` holds.
Result<std::vector<api::Tensor>> borrow(const std::vector<GivenArray>& keep) {
  std::vector<api::Tensor> out;
  for (const GivenArray& array : keep) {
    auto tensor = api::Tensor::borrow(array.view);
    if (!tensor.ok()) return tensor.error();
    out.push_back(*std::move(tensor));
  }
  return out;
}

nb::dict compare_layers(const nb::bytes& path, nb::object args, nb::dict named, const nb::dict& golden,
                        const nb::dict& settings, const nb::dict& compile_options) {
  const std::string file(path.c_str(), path.size());
  std::vector<GivenArray> golden_arrays;
  api::LayerOptions options;
  for (const auto& [key, value] : golden) {
    const auto name = nb::cast<std::string>(key);
    golden_arrays.push_back(take_array(value, "the golden tensor '" + name + "'", DType::f32, false));
    options.golden[name] = value_or_raise(api::Tensor::borrow(golden_arrays.back().view));
  }
  options.tolerance = nb::cast<double>(settings["tolerance"]);
  options.session.threads = nb::cast<int>(settings["threads"]);
  options.keep_found = options.keep_expected = nb::cast<bool>(settings["keep_tensors"]);
  options.measure = nb::cast<bool>(settings["measure"]);

  std::vector<GivenArray> inputs;
  std::exception_ptr thrown;
  options.make_inputs = [&](const api::Engine& engine) -> Result<std::vector<api::Tensor>> {
    const nb::gil_scoped_acquire locked;
    try {
      inputs = gather(engine.inputs(), args, named);
      return borrow(inputs);
    } catch (...) {
      thrown = std::current_exception();
      return Error{ErrorCode::invalid_argument, "the inputs were refused.", "Give one array for each input."};
    }
  };
  try {
    return plain_report(work_on_model(options_of(compile_options), nb::none(), [&](const api::CompileOptions& with) {
      return api::compare_layers(file, {}, with, options);
    }));
  } catch (...) {
    if (thrown) std::rethrow_exception(thrown);
    throw;
  }
}

}  // namespace

nb::dict plain(const api::CheckReport& report) {
  const auto port = [](const api::Port& of) { return plain(of); };
  const auto error = [](const Error& of) { return plain(of); };
  return Fields()("ok", report.ok())("model_name", report.model_name)("producer", report.producer)(
      "opset", report.opset)("inputs", list_of(report.inputs, port))("outputs", list_of(report.outputs, port))(
      "operators", list_of(report.operators, plain_operator))("sizes", list_of(report.sizes, plain_size))(
      "run_time_checks", report.run_time_checks)("steps", report.steps)("slow", list_of(report.slow, plain_slow))(
      "dtypes", report.dtypes)("notes", report.notes)("errors", list_of(report.errors, error))("seconds",
                                                                                               report.seconds);
}

void bind_diagnose(nb::module_& module) {
  module.def(
      "check",
      [](const nb::bytes& path, const nb::dict& options) {
        const std::string file(path.c_str(), path.size());
        return plain(work_on_model(options_of(options), nb::none(),
                                   [&](const api::CompileOptions& with) { return api::check(file, with); }));
      },
      "path"_a, "options"_a,
      nb::sig("def check(path: bytes, options: dict[str, typing.Any]) -> dict[str, typing.Any]"));
  module.def(
      "check_bytes",
      [](const nb::bytes& model, const nb::dict& options) {
        const std::span<const std::byte> bytes(static_cast<const std::byte*>(model.data()), model.size());
        return plain(work_on_model(options_of(options), nb::none(),
                                   [&](const api::CompileOptions& with) { return api::check_bytes(bytes, with); }));
      },
      "model"_a, "options"_a,
      nb::sig("def check_bytes(model: bytes, options: dict[str, typing.Any]) -> dict[str, typing.Any]"));
  module.def(
      "compat",
      [](const nb::bytes& path, const nb::dict& settings, const nb::dict& options, nb::object progress) {
        const std::string file(path.c_str(), path.size());
        const api::CompatOptions how = compat_options(settings);
        return plain_compat(
            work_on_model(options_of(options), std::move(progress),
                          [&](const api::CompileOptions& with) { return api::compat(file, with, how); }),
            how.seed);
      },
      "path"_a, "settings"_a, "options"_a, "progress"_a.none(),
      nb::sig("def compat(path: bytes, settings: dict[str, typing.Any], options: dict[str, typing.Any], progress: "
              "collections.abc.Callable[[str, float], object] | None) -> dict[str, typing.Any]"));
  module.def(
      "compat_bytes",
      [](const nb::bytes& model, const nb::dict& settings, const nb::dict& options, nb::object progress) {
        const std::span<const std::byte> bytes(static_cast<const std::byte*>(model.data()), model.size());
        const api::CompatOptions how = compat_options(settings);
        return plain_compat(
            work_on_model(options_of(options), std::move(progress),
                          [&](const api::CompileOptions& with) { return api::compat_bytes(bytes, with, how); }),
            how.seed);
      },
      "model"_a, "settings"_a, "options"_a, "progress"_a.none(),
      nb::sig(
          "def compat_bytes(model: bytes, settings: dict[str, typing.Any], options: dict[str, typing.Any], progress: "
          "collections.abc.Callable[[str, float], object] | None) -> dict[str, typing.Any]"));
  module.def(
      "converters",
      [] {
        nb::list out;
        for (const api::ConverterInfo& info : api::converters())
          out.append(nb::str(info.name.data(), info.name.size()));
        return out;
      },
      nb::sig("def converters() -> list[str]"));
  module.def(
      "torch_claims",
      [](const nb::list& plugin_paths) {
        nb::list out;
        for (const api::Plugin& plugin : plugins_of(plugin_paths)) {
          for (const api::Plugin::Operator& op : plugin.operators()) {
            for (const std::string& claim : op.claims) {
              if (claim.rfind(claims_of_torch, 0) == 0) out.append(nb::str(claim.c_str() + claims_of_torch.size()));
            }
          }
        }
        return out;
      },
      "plugins"_a, nb::sig("def torch_claims(plugins: list[bytes]) -> list[str]"));
  module.def(
      "compare_layers", &compare_layers, "path"_a, "args"_a, "named"_a, "golden"_a, "settings"_a, "options"_a,
      nb::sig(
          "def compare_layers(path: bytes, args: list[typing.Any], named: dict[str, typing.Any], golden: dict[str, "
          "typing.Any], settings: dict[str, typing.Any], options: dict[str, typing.Any]) -> dict[str, typing.Any]"));
}

}  // namespace polyphase::python

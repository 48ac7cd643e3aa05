// polyphase.Engine and polyphase.Port.
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <map>

#include "native/arrays.h"
#include "native/module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace polyphase::python {
namespace {

// The engine's own session. Making one releases the interpreter's lock: of two threads that make one, the first keeps
// it; and of an engine that was refitted meanwhile it is not kept.
std::shared_ptr<SessionHandle> own_session(EngineHandle& handle) {
  if (handle.own && handle.own->is_here()) return handle.own;
  const api::Engine engine = handle.engine;
  const unsigned refits = handle.refits;
  std::shared_ptr<SessionHandle> made = make_session(engine, 0, 0);
  if (handle.own && handle.own->is_here()) return handle.own;
  if (handle.refits == refits) handle.own = made;
  return made;
}

nb::object call(EngineHandle& handle, nb::args args, nb::kwargs named) {
  const std::shared_ptr<SessionHandle> session = own_session(handle);
  return call_session(*session, std::move(args), std::move(named));
}

nb::tuple ports_of(const std::vector<api::Port>& ports) {
  nb::list out;
  for (const api::Port& port : ports) out.append(nb::cast(port));
  return nb::tuple(out);
}

nb::bytes to_bytes(const EngineHandle& handle) {
  const api::Engine engine = handle.engine;  // refit may give the object another meanwhile
  auto bytes = [&] {
    const Unlocked unlocked;
    return engine.to_bytes();
  }();
  const auto found = value_or_raise(std::move(bytes));
  return nb::bytes(found.data(), found.size());
}

// The object has the new weights once this returns; sessions that are there keep the old.
nb::dict refit(EngineHandle& handle, const nb::object& weights, bool strict) {
  const auto named = nb::cast<nb::dict>(nb::module_::import_("polyphase._arrays").attr("weights_of")(weights));
  const api::Engine engine = handle.engine;
  std::map<std::string, DType> dtypes;
  for (const api::WeightInfo& weight : engine.info().weights) {
    for (const std::string& name : weight.names) dtypes.emplace(name, weight.dtype);
  }
  std::vector<GivenArray> arrays;  // keep the memory
  std::vector<api::NamedView> views;
  std::vector<std::string> unknown;
  for (const auto& [key, value] : named) {
    const auto name = nb::cast<std::string>(key);
    const auto known = dtypes.find(name);
    if (known == dtypes.end() && !strict) {
      unknown.push_back(name);
      continue;
    }
    const DType wanted = known == dtypes.end() ? DType::f32 : known->second;
    arrays.push_back(take_array(value, "weight '" + name + "'", wanted, false));
    views.push_back({name, arrays.back().view});
  }
  api::RefitReport report;
  auto done = [&] {
    const Unlocked unlocked;
    return engine.refit(views, &report);
  }();
  handle.engine = value_or_raise(std::move(done));
  handle.own = nullptr;
  ++handle.refits;
  nb::dict out;
  out["exchanged"] = report.exchanged;
  out["left_out"] = report.left_out;
  out["without_effect"] = report.without_effect;
  out["unknown"] = unknown;
  return out;
}

std::string describe(const api::Port& port) {
  std::string out = port.name + ": " + numpy_name(port.dtype) + "[";
  for (std::size_t i = 0; i < port.sizes.size(); ++i) out += (i == 0 ? "" : ", ") + port.sizes[i];
  return out + "]";
}

std::string describe(const std::vector<api::Port>& ports) {
  std::string out;
  for (const api::Port& port : ports) out += (out.empty() ? "" : ", ") + describe(port);
  return "(" + out + ")";
}

}  // namespace

void bind_engine(nb::module_& module) {
  nb::class_<api::Port>(module, "Port", "An input or an output of an engine.")
      .def_prop_ro(
          "name", [](const api::Port& port) { return port.name; }, "Its name in the model.")
      .def_prop_ro(
          "dtype", [](const api::Port& port) { return numpy_name(port.dtype); },
          "NumPy's name of its elements' type: 'float32', 'int64', 'bool', …; 'bfloat16', 'float8_e4m3fn' and\n"
          "'float8_e5m2' are ml_dtypes' or PyTorch's. 'int4' and 'uint4' are given and taken as int8 and uint8.")
      .def_prop_ro(
          "shape", [](const api::Port& port) { return shape_of(port.sizes); },
          nb::sig("def shape(self) -> tuple[int | str, ...]"),
          "Its sizes in elements, in the network's order (N, C, H, W): a number, a symbolic size's name ('H'), or an\n"
          "expression over names ('2*H + 1').")
      .def("__repr__", [](const api::Port& port) { return "Port(" + describe(port) + ")"; });

  nb::class_<EngineHandle>(
      module, "Engine",
      "A compiled network, from polyphase.compile or polyphase.load. It may be used from many threads at once, and\n"
      "can be pickled. It never changes, but for the weights of one that `refit` is called on.")
      .def("__call__", &call, nb::sig("def __call__(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any"),
           "Runs the network on arrays, by position (as `inputs` lists them) or by input name.\n\n"
           "An array is anything on the CPU with __dlpack__ or a buffer: of NumPy, PyTorch and others, with any "
           "strides, also\n"
           "negative. It is only read, and not copied unless its strides are none of row-major order. Shapes are those "
           "of\n"
           "`inputs`; a symbolic size takes any number that the model allows, without recompiling. Inputs named "
           "'skips.0',\n"
           "'skips.1', … are also taken as a module's forward takes them, as lists, tuples and dicts: engine(x, [a, "
           "b]).\n\n"
           "Returns the output, or a tuple of the outputs where there are several: torch.Tensors if an input was one, "
           "otherwise\n"
           "numpy.ndarrays, row-major, in memory of their own. All calls share one session of one thread per core, "
           "made by the\n"
           "first; `session` makes others. Other Python threads go on meanwhile; Ctrl-C ends the run.\n\n"
           "Raises polyphase.Error: invalid_argument (an input is missing, unknown or given twice; no array; wrong "
           "dtype or\n"
           "device), shape_mismatch, out_of_memory, incompatible (the engine needs instructions that this CPU lacks), "
           "and what\n"
           "the network's operators find in data.")
      .def_prop_ro(
          "inputs", [](const EngineHandle& handle) { return ports_of(handle.engine.inputs()); },
          nb::sig("def inputs(self) -> tuple[Port, ...]"), "The inputs, in the order of positional arguments.")
      .def_prop_ro(
          "outputs", [](const EngineHandle& handle) { return ports_of(handle.engine.outputs()); },
          nb::sig("def outputs(self) -> tuple[Port, ...]"), "The outputs, in the order in which calls return them.")
      .def(
          "session",
          [](const EngineHandle& handle, std::int64_t threads, std::int64_t memory_limit_bytes) {
            return make_session(handle.engine, threads, memory_limit_bytes);
          },
          "threads"_a = 0, "memory_limit_bytes"_a = 0,
          "A session of its own: workers, packed weights where the engine is portable, and memory.\n\n"
          "threads: workers together, the calling thread included; 0: one per core, or fewer where the process's "
          "control\n"
          "group (a container's cpu.max) has less of their time. Results do not depend on it.\n"
          "memory_limit_bytes: the most that one run's intermediate values may take; 0: half of the machine's "
          "memory.\n\n"
          "Raises polyphase.Error: invalid_argument, incompatible, corrupt, out_of_memory.")
      .def(
          "save",
          [](const EngineHandle& handle, const nb::object& path) {
            const auto bytes = nb::cast<nb::bytes>(nb::module_::import_("polyphase._options").attr("path_bytes")(path));
            const std::string file(bytes.c_str(), bytes.size());
            const api::Engine engine = handle.engine;
            const Result<void> done = [&] {
              const Unlocked unlocked;
              return engine.save(file);
            }();
            ok_or_raise(done);
          },
          "path"_a, nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
          "Writes the engine file, under a temporary name that is then renamed: others see the old file or the whole "
          "new one.\n"
          "Raises polyphase.Error: io, out_of_memory.")
      .def(
          "__reduce__",
          [](const EngineHandle& handle) {
            return nb::make_tuple(nb::module_::import_("polyphase").attr("load"), nb::make_tuple(to_bytes(handle)));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def("refit", &refit, "weights"_a, nb::kw_only(), "strict"_a = true,
           nb::sig("def refit(self, weights: typing.Any, *, strict: bool = True) -> dict[str, list[str]]"),
           "Gives this engine other weights without compiling it again: bit for bit what compiling the network with "
           "them gives.\n"
           "The engine was compiled with refittable=True; the model is not needed.\n\n"
           "weights: arrays by the model's names, such as a state_dict: initialisers of an ONNX model, parameters and "
           "buffers of a\n"
           "PyTorch module; or the module itself. Shapes and dtypes are the model's. An array is what calls take, with "
           "any strides;\n"
           "it is read during the call. Of tied weights one is enough; what is not given keeps its elements.\n"
           "strict: a name that the network does not have is refused; else it is passed over.\n\n"
           "Returns names: 'exchanged', 'left_out' (not given, so they stay), 'without_effect' (the network does not "
           "depend on\n"
           "them) and 'unknown' (passed over).\n\n"
           "This object has the new weights from then on: later calls and sessions use them, those that are there "
           "and runs that\n"
           "have begun keep the old ones. Other threads may run it meanwhile. If it raises, nothing has changed.\n\n"
           "Raises polyphase.Error: invalid_argument (not refittable, an unknown name, another dtype, a weight whose "
           "elements have\n"
           "decided what was compiled), shape_mismatch, out_of_memory.")
      .def("to_bytes", &to_bytes,
           "What save would write, for polyphase.load or a network. Raises polyphase.Error: out_of_memory.")
      .def(
          "info",
          [](const EngineHandle& handle) {
            const api::Engine engine = handle.engine;
            const auto info = [&] {
              const Unlocked unlocked;
              return engine.info();
            }();
            return plain(info);
          },
          nb::sig("def info(self) -> dict[str, typing.Any]"),
          "What the engine is made of, as plain data: model_name, producer, cluster (the instructions it needs), dims "
          "(the\n"
          "range of each symbolic size), values, steps (in the order of the program, with their kernels), constants,\n"
          "constant_bytes, remarks. The keys are the fields of EngineInfo in polyphase/polyphase.h.")
      .def("__repr__", [](const EngineHandle& handle) {
        return "Engine(" + describe(handle.engine.inputs()) + " -> " + describe(handle.engine.outputs()) + ")";
      });

  module.def(
      "load",
      [](const nb::bytes& path, const nb::list& plugin_paths) {
        const std::string file(path.c_str(), path.size());
        const std::vector<api::Plugin> plugins = plugins_of(plugin_paths);
        auto loaded = [&] {
          const Unlocked unlocked;
          return api::Engine::load(file, plugins);
        }();
        return EngineHandle{value_or_raise(std::move(loaded)), nullptr};
      },
      "path"_a, "plugins"_a = nb::list(), nb::sig("def load(path: bytes, plugins: list[bytes] = []) -> Engine"));
  module.def(
      "from_bytes",
      [](const nb::bytes& bytes, const nb::list& plugin_paths) {
        const std::vector<api::Plugin> plugins = plugins_of(plugin_paths);
        auto loaded = [&] {
          const Unlocked unlocked;
          return api::Engine::from_bytes({static_cast<const std::byte*>(bytes.data()), bytes.size()}, plugins);
        }();
        return EngineHandle{value_or_raise(std::move(loaded)), nullptr};
      },
      "engine"_a, "plugins"_a = nb::list(),
      nb::sig("def from_bytes(engine: bytes, plugins: list[bytes] = []) -> Engine"));
}

}  // namespace polyphase::python

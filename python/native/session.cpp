// polyphase.Session.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "native/arrays.h"
#include "native/module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace polyphase::python {
namespace {

// A dict goes by names, everything else is a sequence; what belongs to `ports` in their order.
std::vector<nb::object> by_port(const std::vector<api::Port>& ports, nb::handle given, const std::string& word) {
  std::vector<nb::object> out(ports.size());
  if (nb::isinstance<nb::dict>(given)) {
    for (const auto& [key, value] : nb::borrow<nb::dict>(given)) out[port_of(ports, key, word)] = nb::borrow(value);
  } else {
    if (!nb::isinstance<nb::sequence>(given) || nb::isinstance<nb::str>(given))
      refuse("the " + word + "s are neither a dict nor a sequence.",
             "Give one for each " + word + ", by name or in order.");
    const auto list = nb::borrow<nb::sequence>(given);
    if (nb::len(list) != ports.size()) {
      refuse("the engine has " + std::to_string(ports.size()) + " " + word + "s, found " +
                 std::to_string(nb::len(list)) + ".",
             "Give one for each " + word + ".");
    }
    for (std::size_t i = 0; i < ports.size(); ++i) out[i] = list[i];
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (!out[i].is_valid()) refuse(word + " '" + ports[i].name + "' is missing.", "Give one for each " + word + ".");
  }
  return out;
}

// Shapes of all inputs.
std::vector<std::vector<std::int64_t>> sizes_of(const api::Session& session, nb::handle given) {
  const std::vector<api::Port>& ports = session.engine().inputs();
  std::vector<std::vector<std::int64_t>> out;
  for (const nb::object& shape : by_port(ports, given, "input")) {
    std::vector<std::int64_t> sizes;
    if (!nb::try_cast(shape, sizes)) {
      refuse("the shape given for input '" + ports[out.size()].name + "' is no sequence of integers.",
             "Give sizes in elements, as in (1, 3, 256, 256).");
    }
    out.push_back(std::move(sizes));
  }
  return out;
}

// Inputs as the caller gave them: by name, or in the order of the ports.
struct GivenInputs {
  nb::object args = nb::make_tuple();
  nb::dict named;
};

GivenInputs inputs_of(const api::Engine& engine, const nb::object& inputs) {
  GivenInputs out;
  if (nb::isinstance<nb::dict>(inputs)) {
    out.named = nb::borrow<nb::dict>(inputs);
  } else if (PyTuple_Check(inputs.ptr()) != 0 && nb::len(inputs) == engine.inputs().size()) {
    out.args = inputs;
  } else {
    nb::list args;
    for (const nb::object& input : by_port(engine.inputs(), inputs, "input")) args.append(input);
    out.args = args;
  }
  return out;
}

nb::dict by_name(const api::Engine& engine, const std::vector<nb::object>& results) {
  nb::dict out;
  for (std::size_t i = 0; i < results.size(); ++i) out[engine.outputs()[i].name.c_str()] = results[i];
  return out;
}

nb::dict run(const SessionHandle& handle, nb::object inputs, nb::object outputs, nb::object deadline) {
  const api::Engine engine = handle.get().engine();
  std::vector<nb::object> memory;
  if (!outputs.is_none()) memory = by_port(engine.outputs(), outputs, "output");
  const GivenInputs given = inputs_of(engine, inputs);
  return by_name(engine, run_arrays(handle, given.args, given.named, memory, std::move(deadline)));
}

nb::dict run_in_tiles(const SessionHandle& handle, nb::object inputs, nb::object tiles, std::int64_t memory_bytes,
                      nb::object deadline, nb::object progress) {
  const api::Engine engine = handle.get().engine();
  const GivenInputs given = inputs_of(engine, inputs);
  nb::dict own;
  if (!tiles.is_none() && !nb::try_cast(tiles, own))
    refuse("tiles is no dict of sizes.", "Give the name of a size and its places in a tile, as in {'H': 512}.");
  return by_name(
      engine, run_tiled(handle, given.args, given.named, own, memory_bytes, std::move(deadline), std::move(progress)));
}

nb::dict output_shapes(const SessionHandle& handle, nb::object input_shapes) {
  const api::Session& session = handle.get();
  const auto sizes = sizes_of(session, input_shapes);
  auto found = [&] {
    const Unlocked unlocked;
    return session.output_sizes(sizes);
  }();
  const auto shapes = value_or_raise(std::move(found));
  nb::dict out;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    nb::object shape = nb::none();
    if (shapes[i].has_value()) shape = nb::tuple(nb::cast(*shapes[i]));
    out[session.engine().outputs()[i].name.c_str()] = shape;
  }
  return out;
}

nb::dict explain(const SessionHandle& handle, nb::object input_shapes) {
  const api::Session& session = handle.get();
  const auto sizes = sizes_of(session, input_shapes);
  auto report = [&] {
    const Unlocked unlocked;
    return session.explain(sizes);
  }();
  return plain(value_or_raise(std::move(report)));
}

}  // namespace

void bind_session(nb::module_& module) {
  nb::class_<SessionHandle>(
      module, "Session",
      "Runs an engine, from Engine.session. May be used from many threads at once: each run borrows memory and a plan\n"
      "of its own, and all share the session's workers. The bits of the outputs depend on the inputs alone. After a "
      "fork\n"
      "the child makes a session of its own.")
      .def("__call__", &call_session,
           nb::sig("def __call__(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any"),
           "Runs the network once, as Engine.__call__ does, on this session's threads: takes arrays by position or by "
           "name,\n"
           "returns the output, or a tuple of the outputs where there are several.\n\n"
           "Raises polyphase.Error: what Engine.__call__ raises, and invalid_argument in a process forked after it was "
           "made.")
      .def("run", &run, "inputs"_a, "outputs"_a = nb::none(), "deadline"_a = nb::none(),
           nb::sig(
               "def run(self, inputs: dict[str, typing.Any] | collections.abc.Sequence[typing.Any], outputs: dict[str, "
               "typing.Any] | collections.abc.Sequence[typing.Any] | None = None, deadline: float | None = None) -> "
               "dict[str, typing.Any]"),
           "Runs the network once; other Python threads go on meanwhile. Always returns a dict: output name to "
           "array.\n\n"
           "inputs: arrays by name, or in order. What is an array, and which kind is returned, says Engine.__call__.\n"
           "outputs: arrays to write into, by name or in order, one for each output, with the outputs' dtypes and "
           "shapes (see\n"
           "output_shapes) and any strides in which no element lies on another; they may share no element with each "
           "other or\n"
           "with an input. Row-major ones are written without a copy. The same objects are returned.\n"
           "deadline: seconds from now after which the run is given up; None: never.\n\n"
           "Raises polyphase.Error: what Engine.__call__ raises, and cancelled after the deadline.")
      .def(
          "run_tiled", &run_in_tiles, "inputs"_a, "tiles"_a = nb::none(), "memory_bytes"_a = 0,
          "deadline"_a = nb::none(), "progress"_a = nb::none(),
          nb::sig("def run_tiled(self, inputs: dict[str, typing.Any] | collections.abc.Sequence[typing.Any], tiles: "
                  "dict[str, int] | None = None, memory_bytes: int = 0, deadline: float | None = None, progress: "
                  "typing.Callable[[float], typing.Any] | None = None) -> dict[str, typing.Any]"),
          "Runs the network tile by tile, for images, volumes and sounds whose intermediate values do not fit into "
          "memory: the\n"
          "outputs are those of run. Inputs may be numpy.memmap arrays; docs/tiles.md says which networks can be run "
          "so.\n\n"
          "inputs, deadline: as for run.\n"
          "tiles: the name of a size to the places of it that a tile has for itself, as in {'H': 512}; 0 leaves a size "
          "whole, and\n"
          "sizes that are not named are chosen.\n"
          "memory_bytes: what one tile may take where sizes are chosen; 0: an eighth of the machine's memory, at most "
          "256 MiB.\n"
          "progress: called with the share that is done, 0 to 1, after every tile.\n\n"
          "Raises polyphase.Error: what run raises, and unsupported where the network cannot be cut, by the node's "
          "name.")
      .def_prop_ro(
          "tile_axes", [](const SessionHandle& handle) { return tile_axes(handle.get().engine()); },
          nb::sig("def tile_axes(self) -> list[dict[str, typing.Any]]"),
          "Along which symbolic sizes run_tiled can cut: size, refusal (None, or why not), step (tiles begin at "
          "multiples of it),\n"
          "halo_before and halo_after (places of the size that a tile reads beside its own).")
      .def("output_shapes", &output_shapes, "input_shapes"_a,
           nb::sig("def output_shapes(self, input_shapes: dict[str, collections.abc.Sequence[int]] | "
                   "collections.abc.Sequence[collections.abc.Sequence[int]]) -> dict[str, tuple[int, ...] | None]"),
           "The outputs' shapes for the inputs' shapes, in elements; None for one whose size only a run's data "
           "tells.\n\n"
           "Raises polyphase.Error: invalid_argument, shape_mismatch.")
      .def("explain", &explain, "input_shapes"_a,
           nb::sig("def explain(self, input_shapes: dict[str, collections.abc.Sequence[int]] | "
                   "collections.abc.Sequence[collections.abc.Sequence[int]]) -> dict[str, typing.Any]"),
           "What a run with these shapes would do, without running, as plain data: steps (the kernel taken, what every "
           "kernel\n"
           "said, flops and bytes moved), placed (each value's place in memory), arena_bytes, lower_bound_bytes,\n"
           "scratch_bytes, constant_bytes. The keys are the fields of Report in polyphase/polyphase.h; indices are "
           "those of\n"
           "Engine.info().\n\n"
           "Raises polyphase.Error: invalid_argument, shape_mismatch, out_of_memory.")
      .def_prop_ro(
          "threads", [](const SessionHandle& handle) { return handle.get().threads(); },
          "Workers together, the calling thread included.")
      .def_prop_ro(
          "counters",
          [](const SessionHandle& handle) {
            const api::Session::Counters counters = handle.get().counters();
            nb::dict out;
            out["packs"] = counters.packs;
            out["plans"] = counters.plans;
            out["plan_hits"] = counters.plan_hits;
            return out;
          },
          nb::sig("def counters(self) -> dict[str, int]"),
          "How often the session packed weights, planned a new set of sizes, and found one in its cache.")
      .def_prop_ro("is_here", &SessionHandle::is_here, nb::sig("def is_here(self) -> bool"),
                   "False in a process forked after it was made, which makes a session of its own.")
      .def_prop_ro(
          "engine",
          [](const SessionHandle& handle) {
            return EngineHandle{handle.get().engine(), nullptr};
          },
          "The engine that it runs.")
      .def("__repr__", [](const SessionHandle& handle) {
        return handle.is_here() ? "Session(threads=" + std::to_string(handle.get().threads()) + ")"
                                : "Session(of another process)";
      });
}

}  // namespace polyphase::python

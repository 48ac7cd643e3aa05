// Networks written layer by layer, from Python.
#include "polyphase/network.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <map>

#include "native/arrays.h"
#include "native/module.h"
#include "native/plain_data.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace polyphase::python {
namespace {

// A network with the arrays that its constants lie in. It is used with the interpreter's lock held, but for compiling.
struct NetworkHandle {
  explicit NetworkHandle(const api::NetworkOptions& options) : network(options) {}
  NetworkHandle(const NetworkHandle&) = delete;
  NetworkHandle& operator=(const NetworkHandle&) = delete;

  api::Network network;
  std::vector<GivenArray> arrays = {};
  int compiling = 0;
  std::exception_ptr thrown = nullptr;  // by a body's function
};

api::Network& use(NetworkHandle& handle) {
  if (handle.compiling != 0)
    refuse("the network is changed while another thread compiles it.", "Wait until it is compiled.");
  return handle.network;
}

// What a body's function raised goes on to the caller, not what the builder made of it.
template <typename T>
T settle(NetworkHandle& handle, Result<T> result) {
  if (handle.thrown) std::rethrow_exception(std::exchange(handle.thrown, nullptr));
  return value_or_raise(std::move(result));
}

std::int64_t integer_of(nb::handle given, const std::string& what) {
  std::int64_t out = 0;
  if (!nb::try_cast(given, out)) refuse(what + " does not fit into 64 bits.", "Give a smaller integer.");
  return out;
}

api::Operand operand_of(nb::handle given) {
  if (given.is_none()) return {};
  if (nb::isinstance<api::NetworkTensor>(given)) return nb::cast<api::NetworkTensor>(given);
  if (nb::isinstance<nb::bool_>(given)) return nb::cast<bool>(given);
  if (nb::isinstance<nb::int_>(given)) return integer_of(given, "an operand");
  if (nb::isinstance<nb::float_>(given)) return nb::cast<double>(given);
  refuse("an operand is a " + nb::cast<std::string>(nb::type_name(given.type())) + ".",
         "Give a tensor of the network or a number; add_constant takes arrays.");
}

std::vector<api::Operand> operands_of(const nb::list& given) {
  std::vector<api::Operand> out;
  for (const nb::handle one : given) out.push_back(operand_of(one));
  return out;
}

std::string normal_size(const std::string& text) { return api::Size(text).normal().text(); }

std::vector<api::Size> sizes_of(const std::vector<std::string>& texts) { return {texts.begin(), texts.end()}; }

api::AttributeValue list_of_numbers(const nb::list& given, const std::string& what, bool of_sizes) {
  bool all_integers = true;
  bool any_text = of_sizes;
  for (const nb::handle one : given) {
    all_integers = all_integers && nb::isinstance<nb::int_>(one) && !nb::isinstance<nb::bool_>(one);
    any_text = any_text || nb::isinstance<nb::str>(one);
  }
  if (all_integers) {
    std::vector<std::int64_t> out;
    for (const nb::handle one : given) out.push_back(integer_of(one, "an entry of " + what));
    return out;
  }
  if (any_text) {
    std::vector<api::Size> out;
    for (const nb::handle one : given) out.emplace_back(nb::cast<std::string>(nb::str(one)));
    return out;
  }
  std::vector<double> out;
  for (const nb::handle one : given) {
    double number = 0;
    if (!nb::try_cast(one, number))
      refuse(what + " is a list of other things than numbers.", "Give numbers, or sizes.");
    out.push_back(number);
  }
  return out;
}

// The operators' attributes by name: what kind a text is meant as.
const std::map<std::string, std::map<std::string, std::string>>& attribute_kinds() {
  static const auto kinds = [] {
    std::map<std::string, std::map<std::string, std::string>> out;
    for (const api::OperatorInfo& info : api::operators()) {
      for (const auto& attribute : info.attributes) out[info.name][attribute.name] = attribute.kind;
    }
    return out;
  }();
  return kinds;
}

api::AttributeValue attribute_of(nb::handle given, const std::string& name, const std::string& kind) {
  const std::string what = "attribute '" + name + "'";
  if (nb::isinstance<nb::bool_>(given)) return nb::cast<bool>(given);
  if (nb::isinstance<nb::int_>(given)) return integer_of(given, what);
  if (nb::isinstance<nb::float_>(given)) return nb::cast<double>(given);
  if (nb::isinstance<nb::str>(given)) {
    const auto text = nb::cast<std::string>(given);
    if (kind == "dtype") return dtype_of_name(text);
    return kind == "dim" ? api::AttributeValue(api::Size(text)) : api::AttributeValue(text);
  }
  if (nb::isinstance<nb::list>(given)) return list_of_numbers(nb::cast<nb::list>(given), what, kind == "dims");
  refuse(what + " is a " + nb::cast<std::string>(nb::type_name(given.type())) + ".",
         "docs/operators.md says what operators take.");
}

api::AttributeList attributes_of(const std::string& op, const nb::dict& given) {
  const auto found = attribute_kinds().find(op);
  api::AttributeList out;
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    std::string kind;
    if (found != attribute_kinds().end() && found->second.count(name) != 0) kind = found->second.at(name);
    out.emplace_back(name, attribute_of(value, name, kind));
  }
  return out;
}

api::NetworkTensor add_constant(NetworkHandle& handle, nb::handle array, const std::string& name) {
  api::Network& network = use(handle);
  GivenArray given = take_array(array, "constant '" + name + "'", DType::f32, false);
  auto made = value_or_raise(network.add_constant(given.view, name));
  handle.arrays.push_back(std::move(given));
  return made;
}

template <typename Settings>
Settings settings_of(const nb::dict& given) {
  Settings out;
  const auto numbers = [&](const char* name) { return nb::cast<std::vector<std::int64_t>>(given[name]); };
  const auto sizes = [&](const char* name) { return sizes_of(nb::cast<std::vector<std::string>>(given[name])); };
  out.kernel = numbers("kernel");
  out.stride = numbers("stride");
  out.dilation = numbers("dilation");
  out.groups = nb::cast<std::int64_t>(given["groups"]);
  out.pre_padding = sizes("pre_padding");
  out.post_padding = sizes("post_padding");
  out.padding_mode = static_cast<api::PaddingMode>(nb::cast<int>(given["padding_mode"]));
  out.data_layout = nb::cast<std::string>(given["data_layout"]);
  out.kernel_layout = nb::cast<std::string>(given["kernel_layout"]);
  out.out_layout = nb::cast<std::string>(given["out_layout"]);
  if constexpr (std::is_same_v<Settings, api::DeconvolutionSettings>) {
    out.output_padding = sizes("output_padding");
    out.output_size = sizes("output_size");
  }
  return out;
}

Error raised(NetworkHandle& handle) {
  handle.thrown = std::current_exception();
  return Error{ErrorCode::cancelled, "a body's function raised an exception.", "See the exception."};
}

api::Network::Branch branch_of(NetworkHandle& handle, const nb::object& function) {
  return [&handle, function]() -> Result<std::vector<api::Operand>> {
    try {
      return operands_of(nb::cast<nb::list>(function()));
    } catch (...) {
      return raised(handle);
    }
  };
}

std::vector<api::NetworkTensor> add_loop(NetworkHandle& handle, nb::handle trip_count, nb::handle condition,
                                         const nb::list& carried, const nb::object& function, const std::string& name) {
  const auto body = [&](const api::NetworkTensor& iteration,
                        const std::vector<api::NetworkTensor>& inside) -> Result<api::LoopTurn> {
    try {
      const auto turn = nb::cast<nb::tuple>(function(iteration, inside));
      return api::LoopTurn{operand_of(turn[0]), operands_of(nb::cast<nb::list>(turn[1])),
                           operands_of(nb::cast<nb::list>(turn[2]))};
    } catch (...) {
      return raised(handle);
    }
  };
  return settle(handle,
                use(handle).add_loop(operand_of(trip_count), operand_of(condition), operands_of(carried), body, name));
}

EngineHandle compile(NetworkHandle& handle, const nb::dict& options, nb::object progress) {
  struct Busy {
    int& count;
    explicit Busy(int& of) : count(of) { ++count; }
    ~Busy() { --count; }
  } busy(handle.compiling);
  return compile_with(options, std::move(progress),
                      [&](const api::CompileOptions& with) { return api::compile(handle.network, with); });
}

nb::dict plain_operator(const api::OperatorInfo& info) {
  const auto operand = [](const api::OperatorInfo::Operand& one) {
    return nb::dict(Fields()("name", one.name)("doc", one.doc)("optional", one.optional)("variadic", one.variadic));
  };
  const auto attribute = [](const api::OperatorInfo::Attribute& one) {
    return nb::dict(Fields()("name", one.name)("kind", one.kind)("doc", one.doc)("required", one.required)(
        "default", one.default_text)("words", one.words));
  };
  return Fields()("name", info.name)("doc", info.doc)("operands", list_of(info.operands, operand))(
      "results", list_of(info.results, operand))("attributes", list_of(info.attributes, attribute))("bodies",
                                                                                                    info.bodies);
}

}  // namespace

void bind_network(nb::module_& module) {
  nb::class_<api::WeightFile>(module, "WeightFile", "A safetensors file; Network(weights=...) is what to use.")
      .def_static(
          "open",
          [](const nb::bytes& path) {
            return value_or_raise(api::WeightFile::open(std::string(path.c_str(), path.size())));
          },
          "path"_a)
      .def("names", &api::WeightFile::names);
  nb::class_<api::NetworkTensor>(module, "NetworkTensor", "A tensor of a network that is being written.")
      .def_prop_ro("name", [](const api::NetworkTensor& tensor) { return tensor.name(); })
      .def_prop_ro("dtype", [](const api::NetworkTensor& tensor) { return numpy_name(tensor.dtype()); })
      .def_prop_ro("sizes", [](const api::NetworkTensor& tensor) {
        std::vector<std::string> out;
        for (const api::Size& size : tensor.shape()) out.push_back(size.text());
        return out;
      });
  nb::class_<NetworkHandle>(module, "Network", "A network that is being written; polyphase.Network is what to use.")
      .def(
          "__init__",
          [](NetworkHandle* self, const std::string& name, bool strongly_typed, const std::string& limits,
             const nb::list& plugins) {
            new (self) NetworkHandle(
                {.name = name, .strongly_typed = strongly_typed, .limits = limits, .plugins = plugins_of(plugins)});
          },
          "name"_a, "strongly_typed"_a, "limits"_a, "plugins"_a = nb::list())
      .def(
          "set_range",
          [](NetworkHandle& self, const std::string& size, std::int64_t low, std::int64_t high) {
            ok_or_raise(use(self).set_range(size, {low, high}));
          },
          "size"_a, "low"_a, "high"_a)
      .def(
          "add_input",
          [](NetworkHandle& self, const std::string& name, const std::string& dtype,
             const std::vector<std::string>& sizes) {
            return value_or_raise(use(self).add_input(name, dtype_of_name(dtype), sizes_of(sizes)));
          },
          "name"_a, "dtype"_a, "sizes"_a)
      .def("add_constant", &add_constant, "array"_a, "name"_a,
           nb::sig("def add_constant(self, array: object, name: str) -> NetworkTensor"))
      .def(
          "add_weight",
          [](NetworkHandle& self, const api::WeightFile& file, const std::string& name) {
            return value_or_raise(use(self).add_weight(file, name));
          },
          "file"_a, "name"_a)
      .def(
          "add_layer",
          [](NetworkHandle& self, const std::string& op, const nb::list& operands, const nb::dict& attributes,
             const std::string& name) {
            return value_or_raise(use(self).add_layer(op, operands_of(operands), attributes_of(op, attributes), name));
          },
          "op"_a, "operands"_a, "attributes"_a, "name"_a)
      .def(
          "add_plugin",
          [](NetworkHandle& self, const std::string& op, const nb::list& operands, const nb::dict& attributes,
             const std::string& name) {
            return value_or_raise(use(self).add_plugin(op, operands_of(operands), attributes_of(op, attributes), name));
          },
          "op"_a, "operands"_a, "attributes"_a, "name"_a)
      .def(
          "add_convolution",
          [](NetworkHandle& self, const nb::list& operands, const nb::dict& settings, const std::string& name) {
            const auto given = operands_of(operands);
            return value_or_raise(use(self).add_convolution_nd(given.at(0), given.at(1), given.at(2),
                                                               settings_of<api::ConvolutionSettings>(settings), name));
          },
          "operands"_a, "settings"_a, "name"_a)
      .def(
          "add_deconvolution",
          [](NetworkHandle& self, const nb::list& operands, const nb::dict& settings, const std::string& name) {
            const auto given = operands_of(operands);
            return value_or_raise(use(self).add_deconvolution_nd(
                given.at(0), given.at(1), given.at(2), settings_of<api::DeconvolutionSettings>(settings), name));
          },
          "operands"_a, "settings"_a, "name"_a)
      .def(
          "add_if",
          [](NetworkHandle& self, nb::handle condition, const nb::object& then_branch, const nb::object& else_branch,
             const std::string& name) {
            return settle(self, use(self).add_if(operand_of(condition), branch_of(self, then_branch),
                                                 branch_of(self, else_branch), name));
          },
          "condition"_a.none(), "then_branch"_a, "else_branch"_a, "name"_a,
          nb::sig("def add_if(self, condition: object, then_branch: object, else_branch: object, name: str) -> "
                  "list[NetworkTensor]"))
      .def("add_loop", &add_loop, "trip_count"_a.none(), "condition"_a.none(), "carried"_a, "body"_a, "name"_a,
           nb::sig("def add_loop(self, trip_count: object, condition: object, carried: list, body: object, name: str) "
                   "-> list[NetworkTensor]"))
      .def(
          "set_name",
          [](NetworkHandle& self, const api::NetworkTensor& tensor, const std::string& name) {
            ok_or_raise(use(self).set_name(tensor, name));
          },
          "tensor"_a, "name"_a)
      .def(
          "mark_output",
          [](NetworkHandle& self, const api::NetworkTensor& tensor, const std::string& name) {
            ok_or_raise(use(self).mark_output(tensor, name));
          },
          "tensor"_a, "name"_a)
      .def(
          "push_precision",
          [](NetworkHandle& self, const std::string& dtype) {
            ok_or_raise(use(self).push_precision(dtype_of_name(dtype)));
          },
          "dtype"_a)
      .def("pop_precision", [](NetworkHandle& self) { use(self).pop_precision(); })
      .def("text", [](NetworkHandle& self) { return use(self).text(); })
      .def("compile", &compile, "options"_a, "progress"_a.none(),
           nb::sig("def compile(self, options: dict[str, typing.Any], progress: collections.abc.Callable[[str, float], "
                   "object] | None) -> Engine"));
  module.def("normal_size", &normal_size, "text"_a);
  module.def(
      "operators",
      [] { return list_of(api::operators(), [](const api::OperatorInfo& info) { return plain_operator(info); }); },
      nb::sig("def operators() -> list[dict[str, typing.Any]]"), "The operators of docs/operators.md as plain data.");
  module.def(
      "limits",
      [] {
        return list_of(api::limits(), [](const api::LimitInfo& limit) {
          return nb::dict(Fields()("target", limit.target)("versions", limit.versions)("name", limit.name)(
              "op", limit.op)("rule", limit.rule)("rewrite", limit.rewrite)("source", limit.source));
        });
      },
      nb::sig("def limits() -> list[dict[str, typing.Any]]"), "What Network(limits=...) keeps to, as plain data.");
}

}  // namespace polyphase::python

// models/*.json and *_config.json → TorchProgram.
#include <limits>
#include <nlohmann/json.hpp>

#include "base/lasting.h"
#include "import/torch/input_names.h"
#include "import/torch/program.h"
#include "wire/printable.h"

namespace polyphase {

namespace {

using nlohmann::json;

constexpr std::int64_t schema_major = 8;
constexpr int max_graph_depth = 60;
constexpr const char* save_again = "Save the program again with torch.export.save of a current PyTorch.";

double real_of(const json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text == "Infinity" || text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity" || text == "-inf") return -std::numeric_limits<double>::infinity();
    if (text == "NaN" || text == "nan") return std::numeric_limits<double>::quiet_NaN();
  }
  return value.get<double>();
}

// The one key of a union and its value.
std::pair<std::string, const json*> union_of(const json& value) {
  if (!value.is_object() || value.size() != 1) throw json::other_error::create(501, "a union has one key", &value);
  return {value.begin().key(), &value.begin().value()};
}

ProgramNumber number_of(const json& value) {
  const auto [key, content] = union_of(value);
  ProgramNumber out;
  if (key == "as_int") {
    out.number = content->get<std::int64_t>();
  } else {
    out.expression = content->at("expr_str").get<std::string>();
  }
  return out;
}

ProgramTensor tensor_of(const json& value) {
  ProgramTensor out;
  out.scalar_type = value.at("dtype").get<std::int64_t>();
  for (const json& size : value.at("sizes")) out.sizes.push_back(number_of(size));
  for (const json& stride : value.at("strides")) out.strides.push_back(number_of(stride));
  out.storage_offset = number_of(value.at("storage_offset"));
  out.layout = value.at("layout").get<std::int64_t>();
  return out;
}

ProgramItem named(ProgramItem::Kind kind, const json& value) {
  return {.kind = kind, .text = value.at("name").get<std::string>()};
}

ProgramItem integer_item(const json& value, ProgramItem::Kind kind = ProgramItem::Kind::integer) {
  return {.kind = kind, .integer = value.get<std::int64_t>()};
}

// SymIntArgument and its like: {"as_name": …} or a number.
ProgramItem symbolic(const json& value) {
  const auto [key, content] = union_of(value);
  if (key == "as_name") return {.kind = ProgramItem::Kind::symbol, .text = content->get<std::string>()};
  if (key == "as_int") return integer_item(*content);
  if (key == "as_bool") return {.kind = ProgramItem::Kind::boolean, .integer = content->get<bool>() ? 1 : 0};
  return {.kind = ProgramItem::Kind::real, .real = real_of(*content)};
}

ProgramGraph graph_of(const json& value, int depth);

ProgramItem item_of(std::string_view key, const json& value, int depth) {
  using Kind = ProgramItem::Kind;
  if (key == "as_none") return {};
  if (key == "as_tensor") return named(Kind::tensor, value);
  if (key == "as_int") return integer_item(value);
  if (key == "as_float") return {.kind = Kind::real, .real = real_of(value)};
  if (key == "as_complex")
    return {.kind = Kind::complex, .real = real_of(value.at("real")), .imaginary = real_of(value.at("imag"))};
  if (key == "as_bool") return {.kind = Kind::boolean, .integer = value.get<bool>() ? 1 : 0};
  if (key == "as_string") return {.kind = Kind::text, .text = value.get<std::string>()};
  if (key == "as_sym_int" || key == "as_sym_bool" || key == "as_sym_float") return symbolic(value);
  if (key == "as_scalar_type") return integer_item(value, Kind::dtype);
  if (key == "as_memory_format") return integer_item(value, Kind::memory_format);
  if (key == "as_layout") return integer_item(value, Kind::layout);
  if (key == "as_device") return {.kind = Kind::device, .text = value.at("type").get<std::string>()};
  if (key == "as_optional_tensor") {
    const auto [inner, content] = union_of(value);
    return item_of(inner, *content, depth);
  }
  if (key == "as_graph") {
    ProgramItem out{.kind = Kind::graph, .text = value.at("name").get<std::string>()};
    out.graph = std::make_shared<const ProgramGraph>(graph_of(value.at("graph"), depth + 1));
    return out;
  }
  return {.kind = Kind::other, .text = std::string(key)};
}

ProgramArgument argument_of(const json& value, int depth) {
  using Names = std::map<std::string, std::string, std::less<>>;
  static const Names& lists = lasting<Names>({
      {"as_tensors", "as_tensor"},
      {"as_ints", "as_int"},
      {"as_floats", "as_float"},
      {"as_bools", "as_bool"},
      {"as_strings", "as_string"},
      {"as_sym_ints", "as_sym_int"},
      {"as_sym_bools", "as_sym_bool"},
      {"as_sym_floats", "as_sym_float"},
      {"as_optional_tensors", "as_optional_tensor"},
  });
  const auto [key, content] = union_of(value);
  const auto list = lists.find(key);
  ProgramArgument out;
  out.list = list != lists.end();
  if (!out.list) {
    out.items.push_back(item_of(key, *content, depth));
    return out;
  }
  for (const json& entry : *content) out.items.push_back(item_of(list->second, entry, depth));
  return out;
}

ProgramNode node_of(const json& value, int depth) {
  ProgramNode out;
  out.target = value.at("target").get<std::string>();
  if (const auto name = value.find("name"); name != value.end() && name->is_string())
    out.name = name->get<std::string>();
  for (const json& input : value.at("inputs"))
    out.inputs.emplace_back(input.at("name").get<std::string>(), argument_of(input.at("arg"), depth));
  for (const json& output : value.at("outputs")) out.outputs.push_back(argument_of(output, depth));
  const json& metadata = value.at("metadata");
  if (const auto trace = metadata.find("stack_trace"); trace != metadata.end() && trace->is_string())
    out.stack_trace = trace->get<std::string>();
  return out;
}

ProgramGraph graph_of(const json& value, int depth) {
  if (depth > max_graph_depth) throw json::other_error::create(501, "graphs lie too deep in one another", &value);
  ProgramGraph out;
  for (const json& input : value.at("inputs")) out.inputs.push_back(argument_of(input, depth));
  for (const json& output : value.at("outputs")) out.outputs.push_back(argument_of(output, depth));
  for (const json& node : value.at("nodes")) out.nodes.push_back(node_of(node, depth));
  for (const auto& [name, tensor] : value.at("tensor_values").items()) out.tensors.emplace(name, tensor_of(tensor));
  for (const auto& [name, number] : value.at("sym_int_values").items()) out.symbols.emplace(name, number_of(number));
  for (const auto& [name, condition] : value.at("sym_bool_values").items()) {
    const auto [key, content] = union_of(condition);
    out.conditions.emplace(name, key == "as_bool" ? (content->get<bool>() ? "true" : "false")
                                                  : content->at("expr_str").get<std::string>());
  }
  if (const auto reals = value.find("sym_float_values"); reals != value.end()) {
    for (const auto& [name, real] : reals->items()) {
      const auto [key, content] = union_of(real);
      out.reals.emplace(name, key == "as_expr" ? content->at("expr_str").get<std::string>() : content->dump());
    }
  }
  return out;
}

ProgramInput input_of(const json& value) {
  using Kind = ProgramInput::Kind;
  const std::pair<std::string, const json*> one = union_of(value);  // no structured binding: a lambda takes it below
  const std::string& key = one.first;
  const json* const content = one.second;
  ProgramInput out;
  const auto weight = [&](Kind kind, const char* target) {
    out.kind = kind;
    out.item = named(ProgramItem::Kind::tensor, content->at("arg"));
    out.target = content->at(target).get<std::string>();
  };
  if (key == "user_input") {
    const auto [inner, item] = union_of(content->at("arg"));
    out.item = item_of(inner, *item, 0);
  } else if (key == "parameter") {
    weight(Kind::parameter, "parameter_name");
  } else if (key == "buffer") {
    weight(Kind::buffer, "buffer_name");
  } else if (key == "tensor_constant") {
    weight(Kind::constant_tensor, "tensor_constant_name");
  } else if (key == "constant_input") {
    out.kind = Kind::constant;
    out.item.text = content->at("name").get<std::string>();
  } else if (key == "token") {
    out.kind = Kind::token;
  } else {
    out.kind = Kind::custom_object;
    out.target = key;
  }
  return out;
}

ProgramOutput output_of(const json& value) {
  using Kind = ProgramOutput::Kind;
  const auto [key, content] = union_of(value);
  ProgramOutput out;
  if (key == "user_output") {
    const auto [inner, item] = union_of(content->at("arg"));
    out.item = item_of(inner, *item, 0);
    return out;
  }
  out.kind = key.find("mutation") == std::string::npos ? Kind::other : Kind::mutation;
  out.target = key;
  for (const char* name : {"buffer_name", "parameter_name", "user_input_name"}) {
    if (const auto found = content->find(name); found != content->end()) out.target = found->get<std::string>();
  }
  return out;
}

Result<TorchProgram> program_of(const json& file) {
  const json& version = file.at("schema_version");
  const auto major = version.at("major").get<std::int64_t>();
  if (major != schema_major) {
    return Error{ErrorCode::unsupported,
                 "the program is written in version " + std::to_string(major) +
                     " of torch.export's schema; Polyphase reads version " + std::to_string(schema_major) + ".",
                 save_again};
  }
  TorchProgram out;
  const json& module = file.at("graph_module");
  out.graph = graph_of(module.at("graph"), 0);
  const json& signature = module.at("signature");
  for (const json& input : signature.at("input_specs")) out.inputs.push_back(input_of(input));
  for (const json& output : signature.at("output_specs")) out.outputs.push_back(output_of(output));
  for (const auto& [name, range] : file.at("range_constraints").items()) {
    const auto bound = [&range = range](const char* key) -> std::optional<std::int64_t> {
      const auto found = range.find(key);
      if (found == range.end() || !found->is_number_integer()) return std::nullopt;
      return found->template get<std::int64_t>();
    };
    out.ranges.emplace(name, std::pair(bound("min_val"), bound("max_val")));
  }
  if (const auto guards = file.find("guards_code"); guards != file.end() && guards->is_array())
    out.guards = guards->get<std::vector<std::string>>();
  out.torch_version = file.value("torch_version", "");
  for (const json& entry : module.at("module_call_graph")) {
    const auto found = entry.find("signature");  // schema 8.2 leaves out what is None
    if (!entry.at("fqn").get_ref<const std::string&>().empty() || found == entry.end() || found->is_null()) continue;
    const json& call = *found;
    std::vector<std::string> parameters;
    if (const auto names = call.find("forward_arg_names"); names != call.end() && names->is_array())
      parameters = names->get<std::vector<std::string>>();
    out.input_names = input_names(call.at("in_spec").get<std::string>(), parameters);
  }
  return out;
}

// The parser's and the readers' exceptions end here.
template <typename F>
auto reading(const std::string& what, F&& read) -> decltype(read()) {
  try {
    return read();
  } catch (const json::exception& problem) {
    return Error{ErrorCode::corrupt,
                 what + " is not what torch.export writes: " + wire::printable(problem.what(), 200) + ".", save_again};
  }
}

}  // namespace

Result<TorchProgram> read_program(std::string_view text) {
  return reading("the program's JSON", [&]() -> Result<TorchProgram> { return program_of(json::parse(text)); });
}

Result<std::map<std::string, ProgramPayload, std::less<>>> read_payloads(std::string_view text) {
  using Payloads = std::map<std::string, ProgramPayload, std::less<>>;
  return reading("the list of weights", [&]() -> Result<Payloads> {
    Payloads out;
    const json file = json::parse(text);
    for (const auto& [name, entry] : file.at("config").items()) {
      ProgramPayload payload;
      payload.path_name = entry.at("path_name").get<std::string>();
      payload.use_pickle = entry.at("use_pickle").get<bool>();
      if (!entry.at("tensor_meta").is_null()) payload.tensor = tensor_of(entry.at("tensor_meta"));
      out.emplace(name, std::move(payload));
    }
    return out;
  });
}

Result<DType> dtype_of_scalar_type(std::int64_t code) {
  switch (code) {
    case 1:
      return DType::u8;
    case 2:
      return DType::i8;
    case 3:
      return DType::i16;
    case 4:
      return DType::i32;
    case 5:
      return DType::i64;
    case 6:
      return DType::f16;
    case 7:
      return DType::f32;
    case 8:
      return DType::f64;
    case 12:
      return DType::boolean;
    case 13:
      return DType::bf16;
    case 28:
      return DType::u16;
    case 29:
      return DType::f8e4m3;
    case 30:
      return DType::f8e5m2;
    case 34:
      return DType::u32;
    case 35:
      return DType::u64;
    default:
      break;
  }
  const bool complex = is_complex_type(code);
  return Error{ErrorCode::unsupported,
               complex
                   ? std::string("a tensor is complex.")
                   : "a tensor has the element type " + std::to_string(code) + " of PyTorch, which Polyphase lacks.",
               complex ? "Give and take real and imaginary parts on a last axis of 2 (torch.view_as_complex, "
                         "torch.view_as_real)."
                       : "Export the program with another element type."};
}

constexpr std::int64_t complex_half = 9;
constexpr std::int64_t complex_float = 10;
constexpr std::int64_t complex_double = 11;

bool is_complex_type(std::int64_t code) { return code >= complex_half && code <= complex_double; }

Result<DType> dtype_of_parts(std::int64_t code) {
  if (code == complex_float) return DType::f32;
  if (code == complex_double) return DType::f64;
  return dtype_of_scalar_type(code);
}

}  // namespace polyphase

// polyphase_op → OpDef: every pointer, count and name looked at once, so that later calls may rely on them.
#include "plugin/definition.h"

#include <cstring>

#include "plugin/operator.h"
#include "plugin/values.h"

namespace polyphase {

std::string plain_text(const char* text) {
  constexpr std::size_t most_bytes = 500;
  if (text == nullptr) return {};
  std::string out(text, strnlen(text, most_bytes));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return out;
}

namespace {

constexpr std::size_t most_name_bytes = 60;
constexpr std::size_t most_claims = 256;

// Letters (small ones only where `small`), digits and _, beginning with no digit.
bool is_word(const char* name, bool small) {
  if (name == nullptr) return false;
  const std::size_t size = strnlen(name, most_name_bytes + 1);
  if (size == 0 || size > most_name_bytes || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name, name + size, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || (!small && c >= 'A' && c <= 'Z');
  });
}

Error wrong_operator(const std::string& op, std::string what) {
  return {ErrorCode::invalid_argument, "the plugin's operator '" + op + "' is not well defined: " + what,
          "Correct the plugin; include/polyphase/polyphase_op.h says what each member holds."};
}

// An array and its length: NULL only where there is nothing.
template <typename T>
bool is_list(const T* list, std::size_t count, std::size_t most) {
  return count <= most && (list != nullptr || count == 0);
}

Result<void> read_operands(const polyphase_op& from, OpDef& op) {
  for (std::size_t i = 0; i < from.input_count; ++i) {
    const polyphase_op_operand& operand = from.inputs[i];
    const std::string number = std::to_string(i);
    if (!is_word(operand.name, false))
      return wrong_operator(op.name, "operand " + number + " has no name of letters, digits and _.");
    if ((operand.flags & ~std::uint32_t{POLYPHASE_OP_OPTIONAL | POLYPHASE_OP_VARIADIC}) != 0)
      return wrong_operator(op.name, "operand " + number + " has flags that ABI 1 does not know.");
    const bool optional = (operand.flags & POLYPHASE_OP_OPTIONAL) != 0;
    const bool variadic = (operand.flags & POLYPHASE_OP_VARIADIC) != 0;
    if (optional && i == 0) return wrong_operator(op.name, "its first operand is optional.");
    if (variadic && i + 1 < from.input_count) return wrong_operator(op.name, "an operand before the last is variadic.");
    op.inputs.push_back({operand.name, "", optional, variadic});
  }
  for (std::size_t i = 0; i < from.output_count; ++i) {
    if (!is_word(from.outputs[i], false))
      return wrong_operator(op.name, "result " + std::to_string(i) + " has no name of letters, digits and _.");
    op.outputs.push_back({from.outputs[i], ""});
  }
  return {};
}

Result<void> read_attributes(const polyphase_op& from, OpDef& op) {
  for (std::size_t i = 0; i < from.attribute_count; ++i) {
    const polyphase_op_attribute& given = from.attributes[i];
    if (!is_word(given.name, false))
      return wrong_operator(op.name, "attribute " + std::to_string(i) + " has no name of letters, digits and _.");
    const std::string name = given.name;
    if (op.find_attribute(name) != nullptr) return wrong_operator(op.name, "it has two attributes '" + name + "'.");
    const auto kind = kind_of_plugin(given.kind);
    if (!kind.has_value())
      return wrong_operator(op.name, "attribute '" + name + "' has kind number " + std::to_string(given.kind) + ".");
    AttributeSpec spec{name, *kind, "", std::nullopt, {}};
    if (given.required == 0) {
      spec.default_value = attribute_of(given.default_value, *kind);
      if (!spec.default_value.has_value())
        return wrong_operator(op.name,
                              "the default of attribute '" + name + "' is no " + std::string(name_of(*kind)) + ".");
    }
    op.attributes.push_back(std::move(spec));
  }
  return {};
}

// "mylib::upfirdn2d" → "mylib.upfirdn2d.default"; "" if it is no overload's name.
std::string overload_of(const std::string& claim) {
  const auto colons = claim.find("::");
  if (colons == std::string::npos || colons == 0 || colons + 2 >= claim.size()) return {};
  const std::string own = claim.substr(colons + 2);
  return claim.substr(0, colons) + "." + own + (own.find('.') == std::string::npos ? ".default" : "");
}

Result<std::vector<std::string>> read_claims(const polyphase_op& from, const std::string& op) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < from.onnx_claim_count; ++i) {
    const polyphase_op_onnx_claim& claim = from.onnx_claims[i];
    if (claim.domain == nullptr || claim.op_type == nullptr || claim.op_type[0] == '\0')
      return wrong_operator(op, "ONNX claim " + std::to_string(i) + " lacks its domain or its op_type.");
    out.push_back(onnx_claim(plain_text(claim.domain), plain_text(claim.op_type)));
  }
  for (std::size_t i = 0; i < from.torch_claim_count; ++i) {
    const std::string given = plain_text(from.torch_claims[i]);
    const std::string overload = overload_of(given);
    if (overload.empty())
      return wrong_operator(op, "it claims '" + given + "' of PyTorch, which is no LIBRARY::NAME.OVERLOAD.");
    out.push_back(torch_claim(overload));
  }
  return out;
}

Result<void> check_lists(const polyphase_op& from, const std::string& op) {
  if (from.output_count == 0) return wrong_operator(op, "it has no results.");
  const bool sound = is_list(from.inputs, from.input_count, POLYPHASE_OP_MAX_OPERANDS) &&
                     is_list(from.outputs, from.output_count, POLYPHASE_OP_MAX_OPERANDS) &&
                     from.input_count + from.output_count <= POLYPHASE_OP_MAX_OPERANDS &&
                     is_list(from.attributes, from.attribute_count, POLYPHASE_OP_MAX_ATTRIBUTES) &&
                     is_list(from.onnx_claims, from.onnx_claim_count, most_claims) &&
                     is_list(from.torch_claims, from.torch_claim_count, most_claims);
  if (!sound)
    return wrong_operator(op, "one of its lists is NULL though its count is not 0, or has more entries than can be.");
  if (from.shape == nullptr || from.run == nullptr)
    return wrong_operator(op, "its function '" + std::string(from.shape == nullptr ? "shape" : "run") + "' is NULL.");
  return {};
}

}  // namespace

bool is_plugin_word(const char* name) { return is_word(name, true); }

Result<std::shared_ptr<const OpDef>> define_operator(const polyphase_op* given, const std::string& plugin,
                                                     std::shared_ptr<void> library) {
  if (given == nullptr) return wrong_operator(plugin, "the plugin lists an operator that is NULL.");
  const auto from = read_struct(given, given->struct_size);
  if (!from.has_value()) {
    return wrong_operator(plugin, "the plugin lists an operator whose struct_size is " +
                                      std::to_string(given->struct_size) + "; this Polyphase knows " +
                                      std::to_string(sizeof(polyphase_op)) + " bytes, and what is beyond must be 0.");
  }
  if (!is_plugin_word(from->name))
    return wrong_operator(plugin, "the plugin lists an operator whose name is not of small letters, digits and _.");
  auto op = std::make_shared<OpDef>();
  op->name = plugin + "." + from->name;
  op->doc = plain_text(from->doc);
  TRY_VOID(check_lists(*from, op->name));
  TRY_VOID(read_operands(*from, *op));
  TRY_VOID(read_attributes(*from, *op));
  TRY(std::vector<std::string> claims, read_claims(*from, op->name));
  op->infer = [](const InferContext& context) { return context.op().custom->infer(context); };
  op->reference = [](const ReferenceContext& context) { return run_custom(*context.op, context); };
  op->custom = std::make_shared<const PluginOperator>(*from, given, plugin, std::move(claims), std::move(library));
  return std::shared_ptr<const OpDef>(std::move(op));
}

}  // namespace polyphase

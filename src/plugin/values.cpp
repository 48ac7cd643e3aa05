// Attributes and tensors of ours in the plain structs of the C ABI.
#include "plugin/values.h"

#include <algorithm>

#include "base/check.h"

namespace polyphase {

std::optional<AttributeKind> kind_of_plugin(polyphase_op_kind kind) {
  switch (kind) {
    case POLYPHASE_OP_BOOLEAN:
      return AttributeKind::boolean;
    case POLYPHASE_OP_INTEGER:
      return AttributeKind::integer;
    case POLYPHASE_OP_REAL:
      return AttributeKind::real;
    case POLYPHASE_OP_TEXT:
      return AttributeKind::word;
    case POLYPHASE_OP_INTEGERS:
      return AttributeKind::integers;
    case POLYPHASE_OP_REALS:
      return AttributeKind::reals;
    case POLYPHASE_OP_TENSOR:
      return AttributeKind::tensor;
    default:
      return std::nullopt;
  }
}

std::optional<Attribute> attribute_of(const polyphase_op_value& value, AttributeKind kind) {
  constexpr std::size_t most = 1 << 16;
  if (kind_of_plugin(value.kind) != kind || value.count > most) return std::nullopt;
  switch (kind) {
    case AttributeKind::boolean:
      return Attribute(value.integer != 0);
    case AttributeKind::integer:
      return Attribute(value.integer);
    case AttributeKind::real:
      return Attribute(value.real);
    case AttributeKind::word:
      if (value.text == nullptr) return std::nullopt;
      return Attribute(std::string(value.text));
    case AttributeKind::integers:
      if (value.integers == nullptr && value.count > 0) return std::nullopt;
      return Attribute(std::vector<std::int64_t>(value.integers, value.integers + value.count));
    case AttributeKind::reals:
      if (value.reals == nullptr && value.count > 0) return std::nullopt;
      return Attribute(std::vector<double>(value.reals, value.reals + value.count));
    default:
      return std::nullopt;
  }
}

polyphase_op_tensor plugin_tensor(const TensorView& view) {
  polyphase_op_tensor out{};
  out.data = view.data;
  out.dtype = static_cast<polyphase_dtype>(view.dtype);
  out.rank = view.rank;
  std::copy(view.sizes.begin(), view.sizes.begin() + view.rank, out.sizes);
  return out;
}

polyphase_op_tensor absent_tensor() {
  polyphase_op_tensor out{};
  out.dtype = -1;
  return out;
}

namespace {

struct ValueWriter {
  polyphase_op_value& out;
  void operator()(bool value) const {
    out.kind = POLYPHASE_OP_BOOLEAN;
    out.integer = value ? 1 : 0;
  }
  void operator()(std::int64_t value) const {
    out.kind = POLYPHASE_OP_INTEGER;
    out.integer = value;
  }
  void operator()(double value) const {
    out.kind = POLYPHASE_OP_REAL;
    out.real = value;
  }
  void operator()(const std::string& value) const {
    out.kind = POLYPHASE_OP_TEXT;
    out.text = value.c_str();
  }
  void operator()(const std::vector<std::int64_t>& value) const {
    out.kind = POLYPHASE_OP_INTEGERS;
    out.count = value.size();
    out.integers = value.data();
  }
  void operator()(const std::vector<double>& value) const {
    out.kind = POLYPHASE_OP_REALS;
    out.count = value.size();
    out.reals = value.data();
  }
  void operator()(const Tensor& value) const {
    out.kind = POLYPHASE_OP_TENSOR;
    out.tensor = plugin_tensor(value.view());
  }
  template <typename Other>
  void operator()(const Other&) const {
    CHECK(false, "a plugin's attribute has a kind that plugins do not have");
  }
};

}  // namespace

void write_values(const Attributes& attributes, const std::vector<AttributeSpec>& specs, polyphase_op_value* out) {
  for (const AttributeSpec& spec : specs) {
    const auto found = attributes.values().find(spec.name);
    CHECK(found != attributes.values().end(), "attributes of a plugin's operator are complete");
    *out = {};
    std::visit(ValueWriter{*out++}, found->second);
  }
}

}  // namespace polyphase

// A caller's value becomes an attribute of the kind that the operator lists, where that loses nothing.
#include "api/network_attributes.h"

#include "api/state.h"

namespace polyphase::api {
namespace {

const char* kind_words(const AttributeValue& value) {
  constexpr const char* words[] = {
      "a bool", "an integer",      "a real number", "a word", "a dtype", "a list of integers", "a list of real numbers",
      "a size", "a list of sizes", "a tensor"};
  return words[value.index()];
}

const char* kind_words(AttributeKind kind) {
  constexpr const char* words[] = {
      "a bool", "an integer",      "a real number", "a word", "a dtype", "a list of integers", "a list of real numbers",
      "a size", "a list of sizes", "a tensor"};
  return words[static_cast<std::size_t>(kind)];
}

class AttributeReader {
 public:
  AttributeReader(NetworkBuilder& builder, const OpDef& op, const AttributeSpec& spec, const std::string& layer)
      : builder_(builder), op_(op), spec_(spec), layer_(layer) {}

  Result<Attribute> read(const AttributeValue& given) const {
    switch (spec_.kind) {
      case AttributeKind::boolean:
        return as_it_is<bool>(given);
      case AttributeKind::integer:
        return integer(given);
      case AttributeKind::real:
        return real(given);
      case AttributeKind::word:
        return as_it_is<std::string>(given);
      case AttributeKind::dtype:
        return as_it_is<DType>(given);
      case AttributeKind::integers:
        return integers(given);
      case AttributeKind::reals:
        return reals(given);
      case AttributeKind::dim:
        return dim(given);
      case AttributeKind::dims:
        return dims(given);
      case AttributeKind::tensor:
        return tensor(given);
    }
    return refuse(given);
  }

 private:
  Error refuse(const AttributeValue& given) const {
    return Error{ErrorCode::invalid_argument,
                 "attribute '" + spec_.name + "' of operator " + op_.name + " is " + kind_words(given) + "; expected " +
                     kind_words(spec_.kind) + ".",
                 "docs/operators.md lists the attributes of each operator."}
        .at_node(layer_);
  }
  template <typename T>
  Result<Attribute> as_it_is(const AttributeValue& given) const {
    const T* value = std::get_if<T>(&given);
    if (value == nullptr) return refuse(given);
    if constexpr (std::is_same_v<T, DType>) {
      if (static_cast<int>(*value) >= dtype_count) return refuse(given);
    }
    return Attribute(*value);
  }
  Result<Attribute> integer(const AttributeValue& given) const {
    const auto* size = std::get_if<Size>(&given);
    if (size != nullptr && size->number().has_value()) return Attribute(*size->number());
    return as_it_is<std::int64_t>(given);
  }
  Result<Attribute> real(const AttributeValue& given) const {
    const auto* number = std::get_if<std::int64_t>(&given);
    return number != nullptr ? Attribute(static_cast<double>(*number)) : as_it_is<double>(given);
  }
  Result<Attribute> integers(const AttributeValue& given) const {
    const auto* sizes = std::get_if<std::vector<Size>>(&given);
    if (sizes == nullptr) return as_it_is<std::vector<std::int64_t>>(given);
    std::vector<std::int64_t> out;
    for (const Size& size : *sizes) {
      if (!size.number().has_value()) return refuse(given);
      out.push_back(*size.number());
    }
    return Attribute(std::move(out));
  }
  Result<Attribute> reals(const AttributeValue& given) const {
    const auto* numbers = std::get_if<std::vector<std::int64_t>>(&given);
    if (numbers == nullptr) return as_it_is<std::vector<double>>(given);
    return Attribute(std::vector<double>(numbers->begin(), numbers->end()));
  }
  // `bind` gives names that nobody has yet.
  Result<Dim> size(const Size& text) const {
    if (op_.name != "bind") return dim_of(builder_, text, layer_);
    auto parsed = parse_dim(text.text());
    if (!parsed.ok() || !parsed->is_symbol()) {
      return Error{ErrorCode::invalid_argument, "'" + text.text().substr(0, 60) + "' is no name for a size.",
                   "Bind numbers to names such as n."}
          .at_node(layer_);
    }
    return parsed;
  }
  Result<Attribute> dim(const AttributeValue& given) const {
    if (const auto* number = std::get_if<std::int64_t>(&given); number != nullptr) return Attribute(Dim(*number));
    const auto* text = std::get_if<Size>(&given);
    if (text == nullptr) return refuse(given);
    TRY(Dim out, size(*text));
    return Attribute(std::move(out));
  }
  Result<Attribute> dims(const AttributeValue& given) const {
    std::vector<Dim> out;
    if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&given); numbers != nullptr) {
      out.assign(numbers->begin(), numbers->end());
      return Attribute(std::move(out));
    }
    const auto* texts = std::get_if<std::vector<Size>>(&given);
    if (texts == nullptr) return refuse(given);
    for (const Size& text : *texts) {
      TRY(out.emplace_back(), size(text));
    }
    return Attribute(std::move(out));
  }
  Result<Attribute> tensor(const AttributeValue& given) const {
    const auto* value = std::get_if<Tensor>(&given);
    if (value == nullptr) return refuse(given);
    TRY(ConstantElements elements, elements_of(value->view(), nullptr, "attribute '" + spec_.name + "'"));
    TRY(polyphase::Tensor copy, polyphase::Tensor::allocate(elements.tensor.dtype(), elements.tensor.sizes()));
    copy_elements(elements.tensor.view(), copy.view());
    return Attribute(std::move(copy));
  }

  NetworkBuilder& builder_;
  const OpDef& op_;
  const AttributeSpec& spec_;
  const std::string& layer_;
};

}  // namespace

Result<Dim> dim_of(NetworkBuilder& builder, const Size& size, const std::string& layer) {
  return builder.size(size.text(), layer);
}

Result<std::vector<Dim>> dims_of(NetworkBuilder& builder, const std::vector<Size>& sizes, const std::string& layer) {
  std::vector<Dim> out;
  for (const Size& size : sizes) {
    TRY(out.emplace_back(), dim_of(builder, size, layer));
  }
  return out;
}

Result<Attributes> attributes_of(NetworkBuilder& builder, const OpDef& op, const AttributeList& given,
                                 const std::string& layer) {
  Attributes out;
  for (const auto& [name, value] : given) {
    const AttributeSpec* spec = op.find_attribute(name);
    if (spec == nullptr) {
      std::string known;
      for (const AttributeSpec& one : op.attributes) known += (known.empty() ? "" : ", ") + one.name;
      return Error{ErrorCode::invalid_argument,
                   "operator " + op.name + " has no attribute '" + name.substr(0, 60) + "'.",
                   known.empty() ? "It has none at all." : "It has: " + known + "."}
          .at_node(layer);
    }
    TRY(Attribute attribute, AttributeReader(builder, op, *spec, layer).read(value));
    out.set(name, std::move(attribute));
  }
  return out;
}

Result<ConstantElements> elements_of(const TensorView& view, std::shared_ptr<void> owner, const std::string& what) {
  TRY(const polyphase::TensorView given, inner_view(view, what));
  if (given.is_row_major()) {
    const auto size = static_cast<std::size_t>(given.element_count()) * size_bytes(given.dtype);
    const bool lent = owner == nullptr;
    auto buffer = Buffer::borrow(std::move(owner), given.data, size);
    const polyphase::TensorView plain(TensorDesc::row_major(given.dtype, given.size_span()), given.data);
    return ConstantElements{polyphase::Tensor(std::move(buffer), plain), lent};
  }
  TRY(polyphase::Tensor copy, polyphase::Tensor::allocate(given.dtype, given.size_span()));
  copy_elements(given, copy.view());
  return ConstantElements{std::move(copy), false};
}

}  // namespace polyphase::api

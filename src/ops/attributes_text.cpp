// The text form of attributes: one way to print and read each kind, for IR, engines, errors and documentation.
#include "base/scanner.h"
#include "ops/attributes.h"

namespace polyphase {
namespace {

template <typename T, typename F>
std::string list_of(const std::vector<T>& values, F&& print) {
  std::string out = "[";
  for (std::size_t i = 0; i < values.size(); ++i) out += (i == 0 ? "" : ", ") + print(values[i]);
  return out + "]";
}

std::string print_tensor(const Tensor& tensor) {
  if (!tensor.valid()) return "none";
  const TensorView& view = tensor.view();
  std::string out = std::string(name_of(view.dtype)) +
                    list_of(tensor.sizes(), [](std::int64_t v) { return std::to_string(v); }) + "{";
  bool first = true;
  for_each_index<1>(view.size_span(), {view.strides.data()}, [&](const std::array<std::int64_t, 1>& at) {
    const std::byte* element = view.data + at[0] * static_cast<std::int64_t>(size_bytes(view.dtype));
    if (!first) out += ", ";
    first = false;
    if (!is_float(view.dtype)) {
      out += view.dtype == DType::u64 ? std::to_string(static_cast<std::uint64_t>(load_integer(element, view.dtype)))
                                      : std::to_string(load_integer(element, view.dtype));
    } else if (view.dtype == DType::f32) {
      out += shortest(static_cast<float>(load_double(element, view.dtype)));
    } else {
      out += shortest(load_double(element, view.dtype));
    }
  });
  return out + "}";
}

Result<Tensor> parse_tensor(Scanner& scanner) {
  if (scanner.take("none")) return Tensor();
  TRY(const std::string word, scanner.word());
  const auto dtype = dtype_from_name(word);
  if (!dtype.has_value()) return scanner.refuse("a dtype before this tensor's sizes");
  TRY_VOID(scanner.expect("["));
  std::vector<std::int64_t> sizes;
  while (!scanner.take("]")) {
    if (!sizes.empty()) TRY_VOID(scanner.expect(","));
    TRY(const std::int64_t size, scanner.integer());
    sizes.push_back(size);
  }
  TRY_VOID(scanner.expect("{"));
  // Each element takes a character at least: a text cannot make us allocate more than it is long.
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements))
      return scanner.refuse("sizes of a tensor before this");
  }
  if (static_cast<std::uint64_t>(elements) > scanner.characters_left())
    return scanner.refuse("as many elements as the sizes say");
  TRY(const Tensor tensor, Tensor::allocate(*dtype, sizes));
  const std::int64_t count = tensor.view().element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    if (i > 0) TRY_VOID(scanner.expect(","));
    std::byte* element = tensor.view().data + static_cast<std::size_t>(i) * size_bytes(*dtype);
    if (is_float(*dtype)) {
      TRY(const double value, scanner.real());
      store_double(element, *dtype, value);
    } else if (*dtype == DType::u64) {
      TRY(const std::uint64_t value, scanner.natural());
      store_integer(element, *dtype, static_cast<std::int64_t>(value));
    } else {
      TRY(const std::int64_t value, scanner.integer());
      store_integer(element, *dtype, value);
    }
  }
  TRY_VOID(scanner.expect("}"));
  return tensor;
}

using Symbols = std::map<std::string, DimRange, std::less<>>;

Result<Dim> parse_dim_at(Scanner& scanner, const Symbols& symbols, std::string_view stops) {
  return parse_dim(scanner.until(stops), symbols);
}

template <typename T, typename F>
Result<Attribute> parse_list(Scanner& scanner, F&& item) {
  TRY_VOID(scanner.expect("["));
  std::vector<T> values;
  while (!scanner.take("]")) {
    if (!values.empty()) TRY_VOID(scanner.expect(","));
    TRY(T value, item());
    values.push_back(std::move(value));
  }
  return Attribute(std::move(values));
}

Result<Attribute> parse_value(Scanner& scanner, AttributeKind kind, const Symbols& symbols) {
  switch (kind) {
    case AttributeKind::boolean: {
      if (scanner.take("true")) return Attribute(true);
      if (scanner.take("false")) return Attribute(false);
      return scanner.refuse("true or false");
    }
    case AttributeKind::integer: {
      TRY(const std::int64_t value, scanner.integer());
      return Attribute(value);
    }
    case AttributeKind::real: {
      TRY(const double value, scanner.real());
      return Attribute(value);
    }
    case AttributeKind::word: {
      TRY(std::string value, scanner.quoted());
      return Attribute(std::move(value));
    }
    case AttributeKind::dtype: {
      TRY(const std::string word, scanner.word());
      const auto dtype = dtype_from_name(word);
      if (!dtype.has_value()) return scanner.refuse("a dtype");
      return Attribute(*dtype);
    }
    case AttributeKind::integers:
      return parse_list<std::int64_t>(scanner, [&] { return scanner.integer(); });
    case AttributeKind::reals:
      return parse_list<double>(scanner, [&] { return scanner.real(); });
    case AttributeKind::dim: {
      TRY(Dim value, parse_dim_at(scanner, symbols, " ,;})]\n"));
      return Attribute(std::move(value));
    }
    case AttributeKind::dims:
      return parse_list<Dim>(scanner, [&] { return parse_dim_at(scanner, symbols, ",]"); });
    case AttributeKind::tensor: {
      TRY(Tensor value, parse_tensor(scanner));
      return Attribute(std::move(value));
    }
  }
  return scanner.refuse("an attribute value");
}

struct Printer {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return shortest(value); }
  std::string operator()(const std::string& value) const { return quote(value); }
  std::string operator()(DType value) const { return std::string(name_of(value)); }
  std::string operator()(const Dim& value) const {
    return value.is_constant() || value.is_symbol() ? value.text() : "(" + value.text() + ")";
  }
  std::string operator()(const Tensor& value) const { return print_tensor(value); }
  std::string operator()(const std::vector<std::int64_t>& values) const {
    return list_of(values, [](std::int64_t value) { return std::to_string(value); });
  }
  std::string operator()(const std::vector<double>& values) const {
    return list_of(values, [](double value) { return shortest(value); });
  }
  std::string operator()(const std::vector<Dim>& values) const {
    return list_of(values, [](const Dim& value) { return value.text(); });
  }
};

}  // namespace

std::string print_attribute(const Attribute& attribute) { return std::visit(Printer{}, attribute); }

std::string print_attributes(const Attributes& attributes, const std::vector<AttributeSpec>* specs) {
  std::string out;
  for (const auto& [name, value] : attributes.values()) {
    if (specs != nullptr) {
      bool is_default = false;
      for (const AttributeSpec& spec : *specs) {
        if (spec.name != name || !spec.default_value.has_value()) continue;
        is_default = Attributes({{name, *spec.default_value}}) == Attributes({{name, value}});
      }
      if (is_default) continue;
    }
    out += (out.empty() ? "" : " ") + name + "=" + print_attribute(value);
  }
  return out;
}

Result<Attributes> parse_attributes(std::string_view text, const std::vector<AttributeSpec>& specs,
                                    const Symbols& symbols) {
  Scanner scanner(text);
  Attributes out;
  while (!scanner.at_end()) {
    TRY(const std::string name, scanner.word());
    const AttributeSpec* spec = nullptr;
    for (const AttributeSpec& candidate : specs) {
      if (candidate.name == name) spec = &candidate;
    }
    if (spec == nullptr) return scanner.refuse("a known attribute instead of '" + name.substr(0, 60) + "'");
    if (out.has(name)) return scanner.refuse("'" + name + "' only once");
    TRY_VOID(scanner.expect("="));
    TRY(Attribute value, parse_value(scanner, spec->kind, symbols));
    out.set(name, std::move(value));
  }
  return out;
}

}  // namespace polyphase

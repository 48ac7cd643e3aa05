// Attributes: the named settings of one operator use, and how an operator lists them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dim.h"
#include "base/dtype.h"
#include "base/result.h"
#include "base/tensor.h"

namespace polyphase {

// DO NOT REORDER: the index is AttributeKind.
using Attribute = std::variant<bool, std::int64_t, double, std::string, DType, std::vector<std::int64_t>,
                               std::vector<double>, Dim, std::vector<Dim>, Tensor>;

enum class AttributeKind : std::uint8_t { boolean, integer, real, word, dtype, integers, reals, dim, dims, tensor };
std::string_view name_of(AttributeKind kind);
inline AttributeKind kind_of(const Attribute& attribute) { return static_cast<AttributeKind>(attribute.index()); }

// One line of an operator's attribute list. Printing, parsing, comparing, hashing, saving and documentation read this.
struct AttributeSpec {
  std::string name;
  AttributeKind kind = AttributeKind::integer;
  std::string doc;
  std::optional<Attribute> default_value = std::nullopt;  // none: the attribute is required
  std::vector<std::string> words = {};                    // AttributeKind::word: what may stand there
};

// Name → value. Absent names mean the default; `OpDef::complete` fills them in, so that readers can rely on get().
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> list) : values_(list) {}

  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  void set(std::string name, Attribute value) { values_.insert_or_assign(std::move(name), std::move(value)); }
  void erase(std::string_view name);
  template <typename T>
  const T& get(std::string_view name) const {
    const auto found = values_.find(name);
    CHECK(found != values_.end(), "attribute is missing; was the node completed?");
    const T* value = std::get_if<T>(&found->second);
    CHECK(value != nullptr, "attribute has another kind");
    return *value;
  }
  const std::map<std::string, Attribute, std::less<>>& values() const { return values_; }
  bool operator==(const Attributes& other) const;

  // The same attributes with every Dim evaluated (they stay Dim, now constant). Nothing if a symbol is unbound.
  std::optional<Attributes> evaluate(const DimBindings& bindings) const;
  Attributes substitute(const std::map<std::string, Dim, std::less<>>& sizes) const;
  void collect_symbols(std::map<std::string, DimRange, std::less<>>& into) const;

 private:
  std::map<std::string, Attribute, std::less<>> values_;
};

// Constant Dims as integers: for plan time and references, when everything is known. CHECKs that they are constant.
std::vector<std::int64_t> integers_of(const std::vector<Dim>& dims);

// Text form: `stride=[2, 2] mode="reflect"`; the order is by name; defaults are printed too unless `specs` is given and
// the value equals its default. Tensors print as f32[2]{1, 2} in full (floats as shortest round-trip decimals).
std::string print_attribute(const Attribute& attribute);
std::string print_attributes(const Attributes& attributes, const std::vector<AttributeSpec>* specs = nullptr);
// Reads what print_attributes wrote. The kinds come from `specs`; an unknown name or a wrong kind is an Error.
Result<Attributes> parse_attributes(std::string_view text, const std::vector<AttributeSpec>& specs,
                                    const std::map<std::string, DimRange, std::less<>>& symbols = {});

}  // namespace polyphase

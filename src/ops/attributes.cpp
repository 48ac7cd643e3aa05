// Attributes: lookup, comparison, evaluation of their sizes.
#include "ops/attributes.h"

#include "base/check.h"

namespace polyphase {

std::string_view name_of(AttributeKind kind) {
  constexpr std::string_view names[] = {"boolean",  "integer", "real", "word", "dtype",
                                        "integers", "reals",   "dim",  "dims", "tensor"};
  return names[static_cast<std::size_t>(kind)];
}

void Attributes::erase(std::string_view name) {
  const auto found = values_.find(name);
  if (found != values_.end()) values_.erase(found);
}

namespace {

bool same(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index()) return false;
  const auto* left = std::get_if<Tensor>(&a);
  if (left == nullptr) {
    return std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, Tensor>) {
            return false;
          } else {
            return value == std::get<T>(b);
          }
        },
        a);
  }
  const Tensor& right = std::get<Tensor>(b);
  if (left->valid() != right.valid()) return false;
  return !left->valid() || left->view().data == right.view().data || equal_elements(left->view(), right.view());
}

// Applies f to every Dim of an attribute; false from f stops.
template <typename F>
bool for_each_dim(Attribute& attribute, F&& f) {
  if (auto* dim = std::get_if<Dim>(&attribute)) return f(*dim);
  if (auto* dims = std::get_if<std::vector<Dim>>(&attribute)) {
    for (Dim& dim : *dims) {
      if (!f(dim)) return false;
    }
  }
  return true;
}

}  // namespace

bool Attributes::operator==(const Attributes& other) const {
  if (values_.size() != other.values_.size()) return false;
  auto it = other.values_.begin();
  for (const auto& [name, value] : values_) {
    if (name != it->first || !same(value, it->second)) return false;
    ++it;
  }
  return true;
}

std::optional<Attributes> Attributes::evaluate(const DimBindings& bindings) const {
  Attributes out = *this;
  for (auto& [name, value] : out.values_) {
    const bool evaluated = for_each_dim(value, [&](Dim& dim) {
      const auto size = dim.evaluate(bindings);
      if (size.has_value()) dim = Dim(*size);
      return size.has_value();
    });
    if (!evaluated) return std::nullopt;
  }
  return out;
}

Attributes Attributes::substitute(const std::map<std::string, Dim, std::less<>>& sizes) const {
  Attributes out = *this;
  for (auto& [name, value] : out.values_) {
    for_each_dim(value, [&](Dim& dim) {
      dim = dim.substitute(sizes);
      return true;
    });
  }
  return out;
}

void Attributes::collect_symbols(std::map<std::string, DimRange, std::less<>>& into) const {
  for (const auto& [name, value] : values_) {
    Attribute copy = value;
    for_each_dim(copy, [&](Dim& dim) {
      dim.collect_symbols(into);
      return true;
    });
  }
}

std::vector<std::int64_t> integers_of(const std::vector<Dim>& dims) {
  std::vector<std::int64_t> out;
  out.reserve(dims.size());
  for (const Dim& dim : dims) out.push_back(dim.value());
  return out;
}

}  // namespace polyphase

// Shape's arithmetic and words.
#include "base/shape.h"

#include <algorithm>

namespace polyphase {

Shape Shape::from_sizes(const std::vector<std::int64_t>& sizes) {
  return Shape(std::vector<Dim>(sizes.begin(), sizes.end()));
}

bool Shape::is_static() const {
  return std::all_of(dims_.begin(), dims_.end(), [](const Dim& dim) { return dim.is_constant(); });
}

Dim Shape::element_count() const {
  Dim count(1);
  for (const Dim& dim : dims_) count *= dim;
  return count;
}

std::optional<std::vector<std::int64_t>> Shape::evaluate(const DimBindings& bindings) const {
  std::vector<std::int64_t> sizes;
  sizes.reserve(dims_.size());
  for (const Dim& dim : dims_) {
    const auto size = dim.evaluate(bindings);
    if (!size.has_value()) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

std::string Shape::text() const {
  std::string out = "[";
  for (std::size_t i = 0; i < dims_.size(); ++i) out += (i == 0 ? "" : ", ") + dims_[i].text();
  return out + "]";
}

std::string Type::text() const { return std::string(name_of(dtype)) + shape.text(); }

}  // namespace polyphase

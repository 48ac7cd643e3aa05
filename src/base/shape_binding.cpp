// Symbols get their values from the shapes a caller brings.
#include "base/shape_binding.h"

#include <vector>

namespace polyphase {
namespace {

std::string sizes_text(std::span<const std::int64_t> sizes) {
  return Shape::from_sizes({sizes.begin(), sizes.end()}).text();
}

Error mismatch(const Shape& declared, std::span<const std::int64_t> sizes, const Subject& what,
               const std::string& why) {
  return {ErrorCode::shape_mismatch,
          what + " has the shape " + sizes_text(sizes) + "; expected " + declared.text() + ": " + why + ".",
          "`polyphase inspect` lists the sizes that the network takes; --shape and --dim of compile choose others."};
}

}  // namespace

Result<void> bind_shape(const Shape& declared, std::span<const std::int64_t> sizes, const Subject& what,
                        DimBindings& bindings) {
  if (declared.rank() != static_cast<int>(sizes.size())) {
    return mismatch(declared, sizes, what,
                    "rank " + std::to_string(declared.rank()) + " is needed, found " + std::to_string(sizes.size()));
  }
  for (int axis = 0; axis < declared.rank(); ++axis) {
    const std::int64_t size = sizes[static_cast<std::size_t>(axis)];
    const Dim& dim = declared[axis];
    // A number born from data, such as where a slice ends, may be negative; its range says so.
    const bool may_be_negative = dim.is_symbol() && dim.range().low < 0;
    if (size < 0 && !may_be_negative)
      return mismatch(declared, sizes, what, "axis " + std::to_string(axis) + " is negative");
    if (dim.is_constant() && dim.value() != size) {
      return mismatch(declared, sizes, what,
                      "axis " + std::to_string(axis) + " must be " + dim.text() + ", found " + std::to_string(size));
    }
    if (!dim.is_symbol()) continue;
    const DimRange range = dim.range();
    if (size < range.low || size > range.high) {
      return mismatch(declared, sizes, what,
                      "axis " + std::to_string(axis) + " (" + dim.text() + ") must lie in " +
                          std::to_string(range.low) + ".." + std::to_string(range.high) + ", found " +
                          std::to_string(size));
    }
    const auto [bound, fresh] = bindings.emplace(dim.symbol_name(), size);
    if (!fresh && bound->second != size) {
      return mismatch(declared, sizes, what,
                      "axis " + std::to_string(axis) + " is " + std::to_string(size) + ", but " + dim.text() + " is " +
                          std::to_string(bound->second) + " elsewhere");
    }
  }
  return {};
}

void solve_shape(const Shape& declared, std::span<const std::int64_t> sizes, DimBindings& bindings) {
  for (int axis = 0; axis < declared.rank(); ++axis) {
    if (declared[axis].is_constant() || declared[axis].is_symbol()) continue;
    std::map<std::string, DimRange, std::less<>> used;
    declared[axis].collect_symbols(used);
    std::erase_if(used, [&](const auto& symbol) { return bindings.count(symbol.first) != 0; });
    if (used.size() != 1) continue;
    DimBindings probe = bindings;
    const auto at = [&](std::int64_t value) {
      probe[used.begin()->first] = value;
      return declared[axis].evaluate(probe);
    };
    const auto zero = at(0);
    const auto one = at(1);
    if (!zero.has_value() || !one.has_value() || *one == *zero) continue;
    std::int64_t slope = 0;
    std::int64_t rise = 0;
    if (__builtin_sub_overflow(*one, *zero, &slope) || slope == -1) continue;
    if (__builtin_sub_overflow(sizes[static_cast<std::size_t>(axis)], *zero, &rise)) continue;
    const std::int64_t guess = rise / slope;
    const DimRange range = used.begin()->second;
    if (guess >= range.low && guess <= range.high) bindings.emplace(used.begin()->first, guess);
  }
}

Result<void> check_shape(const Shape& declared, std::span<const std::int64_t> sizes, const Subject& what,
                         const DimBindings& bindings) {
  for (int axis = 0; axis < declared.rank(); ++axis) {
    const auto expected = declared[axis].evaluate(bindings);
    if (expected.has_value() && *expected == sizes[static_cast<std::size_t>(axis)]) continue;
    return mismatch(
        declared, sizes, what,
        "axis " + std::to_string(axis) + " must be " + declared[axis].text() +
            (expected.has_value() ? " = " + std::to_string(*expected) : ", which cannot be known from the inputs") +
            ", found " + std::to_string(sizes[static_cast<std::size_t>(axis)]));
  }
  return {};
}

}  // namespace polyphase

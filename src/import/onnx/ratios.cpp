// Walks back from a float tensor to the sizes that it is made of.
#include "import/onnx/ratios.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace polyphase {
namespace {

using Ratios = std::vector<Ratio>;

constexpr int max_depth = 32;
constexpr std::int64_t max_elements = 64;

std::optional<std::int64_t> small_count(const Value& value) {
  const auto count = value.type.shape.element_count().constant();
  if (!count.has_value() || *count < 0 || *count > max_elements) return std::nullopt;
  return count;
}

Ratio reduced(const Dim& above, const Dim& below, bool exact) {
  if (above == below) return {Dim(1), Dim(1), exact};
  if (above.is_constant() && below.is_constant() && above.value() > 0 && below.value() > 0) {
    const std::int64_t shared = std::gcd(above.value(), below.value());
    return {Dim(above.value() / shared), Dim(below.value() / shared), exact};
  }
  return {above, below, exact};
}

bool surely_positive(const Ratio& ratio) {
  const auto positive = [](const Dim& dim) { return !dim.is_constant() || dim.value() > 0; };
  return positive(ratio.above) && positive(ratio.below);
}

// Nothing if a factor may be 0 or negative.
std::optional<Ratio> product(const Ratio& x, const Ratio& y) {
  if (!surely_positive(x) || !surely_positive(y)) return std::nullopt;
  const bool exact = x.exact && y.exact;
  // Equal factors go first: (A / B) · (B / C) is A / C.
  const Ratio left = reduced(x.above, y.below, exact);
  const Ratio right = reduced(y.above, x.below, exact);
  return reduced(left.above * right.above, left.below * right.below, exact);
}

Ratio sum(const Ratio& x, const Ratio& y, std::int64_t sign) {
  const bool exact = x.exact && y.exact;
  if (x.below == y.below) return {x.above + Dim(sign) * y.above, x.below, exact};
  return {x.above * y.below + Dim(sign) * y.above * x.below, x.below * y.below, exact};
}

// Nothing where a rounding of the model's floats may lead to another whole number.
std::optional<Ratio> rounded(const Ratio& x, bool up) {
  constexpr std::int64_t most_below =
      4096;  // quotients of numbers below 2^24 / 4096 keep their distance from the whole
  if (!x.exact || !x.below.is_constant() || x.below.value() < 1 || x.below.value() > most_below) return std::nullopt;
  const Dim minus(-1);
  return Ratio{up ? minus * floor_div(minus * x.above, x.below) : floor_div(x.above, x.below), Dim(1)};
}

std::optional<Ratios> of_numbers(const TensorView& view) {
  Ratios out;
  for (std::int64_t i = 0; i < view.element_count(); ++i) {
    const double number = load_double(view.data + i * static_cast<std::int64_t>(size_bytes(view.dtype)), view.dtype);
    if (!(std::abs(number) < 1e6)) return std::nullopt;
    const auto [p, q] = number == 0 ? std::pair<std::int64_t, std::int64_t>(0, 1) : fraction_of(std::abs(number));
    const bool exact = static_cast<double>(p) == std::abs(number) * static_cast<double>(q);
    out.push_back({Dim(number < 0 ? -p : p), Dim(q), exact});
  }
  return out;
}

class Walk {
 public:
  explicit Walk(FixedValues& fixed) : fixed_(fixed) {}

  std::optional<Ratios> of(const Value* value, int depth) {
    if (value == nullptr || depth > max_depth || !small_count(*value).has_value()) return std::nullopt;
    if (value->contents.has_value()) {
      Ratios out;
      for (const Dim& dim : *value->contents) out.push_back({dim, Dim(1)});
      return out;
    }
    if (const auto tensor = fixed_.of(value); tensor.has_value()) return of_numbers(tensor->view());
    const Node* const node = value->producer;
    // Integers without contents were rounded on their way.
    if (!is_float(value->type.dtype)) return std::nullopt;
    if (node == nullptr || node->fused() || !node->regions().empty()) return std::nullopt;
    if (node->is("cast")) return cast_all(*node, depth);
    if (node->is("mul") || node->is("div") || node->is("add") || node->is("sub"))
      return combined(*node, *small_count(*value), depth);
    if (node->is("ceil") || node->is("floor")) return rounded_all(*node, depth);
    return node->op().moves_elements ? moved(*node, depth) : std::nullopt;
  }

 private:
  std::optional<Ratios> combined(const Node& node, std::int64_t count, int depth) {
    auto a = of(node.input(0), depth + 1);
    auto b = of(node.input(1), depth + 1);
    if (!a.has_value() || !b.has_value()) return std::nullopt;
    const auto fits = [&](const Ratios& one) {
      return one.size() == 1 || static_cast<std::int64_t>(one.size()) == count;
    };
    if (!fits(*a) || !fits(*b) || node.output()->type.shape.rank() > 1) return std::nullopt;
    Ratios out;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const Ratio& x = (*a)[a->size() == 1 ? 0 : i];
      Ratio y = (*b)[b->size() == 1 ? 0 : i];
      if (node.is("div")) std::swap(y.above, y.below);
      const bool adds = node.is("add") || node.is("sub");
      const auto result = adds ? sum(x, y, node.is("sub") ? -1 : 1) : product(x, y);
      if (!result.has_value()) return std::nullopt;
      out.push_back(*result);
    }
    return out;
  }

  std::optional<Ratios> cast_all(const Node& node, int depth) {
    auto out = of(node.input(0), depth + 1);
    const bool narrow = size_bytes(node.output()->type.dtype) < 4;
    if (out.has_value() && narrow) std::for_each(out->begin(), out->end(), [](Ratio& ratio) { ratio.exact = false; });
    return out;
  }

  std::optional<Ratios> rounded_all(const Node& node, int depth) {
    auto out = of(node.input(0), depth + 1);
    if (!out.has_value()) return std::nullopt;
    for (Ratio& ratio : *out) {
      const auto whole = rounded(ratio, node.is("ceil"));
      if (!whole.has_value()) return std::nullopt;
      ratio = *whole;
    }
    return out;
  }

  // The reference moves numbers that stand for the elements.
  std::optional<Ratios> moved(const Node& node, int depth) {
    const Value& result = *node.output();
    std::map<std::string, DimRange, std::less<>> symbols;
    node.attributes().collect_symbols(symbols);
    if (!symbols.empty() || node.op().reference == nullptr) return std::nullopt;
    Ratios table;
    std::vector<Tensor> operands;
    for (const Value* input : node.inputs()) {
      if (input == nullptr) {
        operands.emplace_back();
        continue;
      }
      if (input->type.dtype != result.type.dtype) {
        auto tensor = fixed_.of(input);
        if (!tensor.has_value()) return std::nullopt;
        operands.push_back(std::move(*tensor));
        continue;
      }
      const auto elements = of(input, depth + 1);
      const auto sizes = input->type.shape.evaluate({});
      if (!elements.has_value() || !sizes.has_value()) return std::nullopt;
      std::vector<std::int64_t> places(elements->size());
      std::iota(places.begin(), places.end(), static_cast<std::int64_t>(table.size()));
      table.insert(table.end(), elements->begin(), elements->end());
      operands.push_back(Tensor::from_integers(DType::i64, *sizes, places));
    }
    const auto results = evaluate_reference(node.op(), node.attributes(), operands);
    if (!results.ok() || results->size() != 1 || results->front().dtype() != DType::i64) return std::nullopt;
    const TensorView& view = results->front().view();
    Ratios out;
    for (std::int64_t i = 0; i < view.element_count(); ++i)
      out.push_back(table[static_cast<std::size_t>(view.as<std::int64_t>()[i])]);
    return out;
  }

  FixedValues& fixed_;
};

}  // namespace

std::pair<std::int64_t, std::int64_t> fraction_of(double number) {
  for (std::int64_t q = 1; q <= 4096; ++q) {
    const auto p = static_cast<std::int64_t>(std::llround(number * static_cast<double>(q)));
    if (p > 0 && static_cast<float>(static_cast<double>(p) / static_cast<double>(q)) == static_cast<float>(number))
      return {p, q};
  }
  return {static_cast<std::int64_t>(std::llround(number * 1048576.0)), 1048576};
}

std::optional<std::vector<Ratio>> ratios_of(const Value* value, FixedValues& fixed) { return Walk(fixed).of(value, 0); }

std::optional<std::vector<Dim>> whole_sizes_of(const Value* value, FixedValues& fixed) {
  if (fixed.of(value).has_value()) return std::nullopt;
  const auto ratios = ratios_of(value, fixed);
  if (!ratios.has_value()) return std::nullopt;
  std::vector<Dim> out;
  for (const Ratio& ratio : *ratios) {
    if (!ratio.exact || !(ratio.below == 1)) return std::nullopt;
    out.push_back(ratio.above);
  }
  return out;
}

}  // namespace polyphase

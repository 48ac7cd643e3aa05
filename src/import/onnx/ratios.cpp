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

Ratio reduced(const Dim& above, const Dim& below) {
  if (above == below) return {Dim(1), Dim(1)};
  if (above.is_constant() && below.is_constant() && above.value() > 0 && below.value() > 0) {
    const std::int64_t shared = std::gcd(above.value(), below.value());
    return {Dim(above.value() / shared), Dim(below.value() / shared)};
  }
  return {above, below};
}

std::optional<Ratios> of_numbers(const TensorView& view) {
  Ratios out;
  for (std::int64_t i = 0; i < view.element_count(); ++i) {
    const double number = load_double(view.data + i * static_cast<std::int64_t>(size_bytes(view.dtype)), view.dtype);
    if (!(number > 0) || !(number < 1e6)) return std::nullopt;
    const auto [p, q] = fraction_of(number);
    out.push_back({Dim(p), Dim(q)});
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
    if (node->is("cast")) return of(node->input(0), depth + 1);
    if (node->is("mul") || node->is("div")) return combined(*node, *small_count(*value), depth);
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
      // Equal factors go first: (A / B) · (B / C) is A / C.
      const Ratio left = reduced(x.above, y.below);
      const Ratio right = reduced(y.above, x.below);
      out.push_back(reduced(left.above * right.above, left.below * right.below));
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

}  // namespace polyphase

// Random operands and comparison of results.
#include "passes/random_data.h"

#include <algorithm>
#include <cmath>

#include "base/scanner.h"

namespace polyphase {

DimBindings random_sizes(const Graph& graph, const DimBindings& fixed, Random& random) {
  std::map<std::string, DimRange, std::less<>> symbols;
  for (const auto& input : graph.inputs()) {
    for (const Dim& dim : input->type.shape) dim.collect_symbols(symbols);
  }
  DimBindings sizes;
  for (const auto& [name, range] : symbols) {
    const std::int64_t low = std::max<std::int64_t>(range.low, range.high > 0 ? 1 : 0);
    std::uniform_int_distribution<std::int64_t> draw(low, std::min(range.high, low + 6));
    sizes[name] = draw(random);
  }
  for (const auto& [name, size] : fixed) sizes[name] = size;
  return sizes;
}

Tensor random_tensor(DType dtype, const std::vector<std::int64_t>& sizes, Random& random) {
  Tensor tensor = Tensor::allocate(dtype, sizes).value();
  const bool with_sign = is_signed(dtype);
  std::uniform_int_distribution<int> draw(with_sign ? -4 : 0, dtype == DType::boolean ? 1 : with_sign ? 4 : 8);
  const std::int64_t count = tensor.view().element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    std::byte* element = tensor.view().data + static_cast<std::size_t>(i) * size_bytes(dtype);
    const int value = draw(random);
    if (is_float(dtype)) {
      store_double(element, dtype, value);
    } else {
      store_integer(element, dtype, value);
    }
  }
  return tensor;
}

std::vector<Tensor> random_inputs(const Graph& graph, const DimBindings& sizes, Random& random) {
  std::vector<Tensor> inputs;
  for (const auto& input : graph.inputs())
    inputs.push_back(random_tensor(input->type.dtype, input->type.shape.evaluate(sizes).value(), random));
  return inputs;
}

namespace {

bool agree(double a, double b, double tolerance) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  return std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(a));
}

}  // namespace

std::string difference(const std::vector<Tensor>& expected, const std::vector<Tensor>& found, double tolerance) {
  if (expected.size() != found.size()) return "another number of results";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::string which = "result " + std::to_string(i) + ": ";
    if (!(expected[i].type() == found[i].type()))
      return which + found[i].type().text() + " instead of " + expected[i].type().text();
    const TensorView& a = expected[i].view();
    const TensorView& b = found[i].view();
    std::string wrong;
    std::int64_t index = 0;
    for_each_index<2>(a.size_span(), {a.strides.data(), b.strides.data()}, [&](const std::array<std::int64_t, 2>& at) {
      const auto bytes = static_cast<std::int64_t>(size_bytes(a.dtype));
      const double left = load_double(a.data + at[0] * bytes, a.dtype);
      const double right = load_double(b.data + at[1] * bytes, b.dtype);
      if (wrong.empty() && !agree(left, right, tolerance))
        wrong = which + "element " + std::to_string(index) + " is " + shortest(right) + " instead of " + shortest(left);
      ++index;
    });
    if (!wrong.empty()) return wrong;
  }
  return {};
}

double rms_error(const TensorView& expected, const TensorView& found, double least) {
  if (expected.size_span().size() != found.size_span().size() ||
      !std::equal(expected.size_span().begin(), expected.size_span().end(), found.size_span().begin())) {
    return 1;
  }
  double error = 0;
  double size = 0;
  const auto bytes = static_cast<std::int64_t>(size_bytes(expected.dtype));
  for_each_index<2>(expected.size_span(), {expected.strides.data(), found.strides.data()}, [&](const auto& at) {
    const double a = load_double(expected.data + at[0] * bytes, expected.dtype);
    const double b = load_double(found.data + at[1] * bytes, found.dtype);
    error += (a - b) * (a - b);
    size += std::max(a * a, least * least);
  });
  return error == 0 ? 0 : std::sqrt(error / size);
}

}  // namespace polyphase

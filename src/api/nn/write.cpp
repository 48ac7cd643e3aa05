// Operands as tensors, axes and numbers for each axis, with the words of PyTorch where they are wrong.
#include "api/nn/write.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace polyphase::api::nn {
namespace {

constexpr DType cast_dtypes[] = {DType::f32, DType::f16, DType::bf16, DType::boolean, DType::i32, DType::i8};

template <typename T>
Made one_element(Network& network, DType dtype, T value, bool vector) {
  TRY(Tensor made, Tensor::allocate(dtype, vector ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{}));
  *made.as<T>() = value;
  return network.add_constant(made);
}

template <typename T>
std::string list_words(const std::vector<T>& entries, const char* open, const char* close) {
  std::string out = open;
  for (const T& one : entries) out += (out == open ? "" : ", ") + one;
  return out + close;
}

std::vector<std::string> texts(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> out;
  for (const std::int64_t number : numbers) out.push_back(std::to_string(number));
  return out;
}

std::string float_words(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  char digits[32];
  const auto written = std::to_chars(digits, digits + sizeof digits, value);
  std::string out(digits, written.ptr);
  return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
}

}  // namespace

bool can_cast_to(DType dtype) {
  return std::find(std::begin(cast_dtypes), std::end(cast_dtypes), dtype) != std::end(cast_dtypes);
}

std::string python_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float32";
    case DType::f64:
      return "float64";
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
    case DType::i64:
      return "int64";
    default:
      return std::string(name_of(dtype));
  }
}

Made number_constant(Network& network, const Operand& number, bool vector) {
  if (const auto* value = number.number<bool>()) return one_element(network, DType::boolean, *value, vector);
  if (const auto* value = number.number<std::int64_t>()) return one_element(network, DType::i64, *value, vector);
  return one_element(network, DType::f32, static_cast<float>(*number.number<double>()), vector);
}

Made tensor_of(Network& network, const Operand& operand, const char* what) {
  if (operand.error() != nullptr) return Error(*operand.error());
  if (operand.tensor() != nullptr) return *operand.tensor();
  if (operand.is_absent()) return refused_layer(std::string(what) + " is not there.", "Give a tensor or a number.");
  return number_constant(network, operand, false);
}

Result<std::int64_t> axis_of(const NetworkTensor& x, std::int64_t dim, const char* what, int rank) {
  const std::int64_t all = rank < 0 ? x.rank() : rank;
  if (dim >= -all && dim < all) return dim < 0 ? dim + all : dim;
  return refused_layer(std::string(what) + " is " + std::to_string(dim) + ", but tensor '" + x.name() + "' has rank " +
                           std::to_string(x.rank()) + ".",
                       "Axes count from " + std::to_string(-all) + " to " + std::to_string(all - 1) + " here.");
}

Result<std::vector<std::int64_t>> axes_of(const NetworkTensor& x, const Numbers& dims, const char* what, int rank) {
  std::vector<std::int64_t> axes;
  for (const std::int64_t dim : dims.list()) {
    TRY(axes.emplace_back(), axis_of(x, dim, what, rank));
  }
  std::vector<std::int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) return axes;
  return refused_layer(std::string(what) + " names an axis twice: " + list_text(dims.list()) + ".",
                       "Name each axis once.");
}

Result<std::vector<std::int64_t>> per_axis(const Numbers& given, std::size_t count, const char* what) {
  if (given.list().size() == 1) return std::vector<std::int64_t>(count, given.list().front());
  if (given.list().size() == count) return given.list();
  return refused_layer(std::string(what) + " has " + std::to_string(given.list().size()) + " entries for " +
                           std::to_string(count) + " spatial axes.",
                       "Give one, or one for each axis.");
}

std::string list_text(const std::vector<Size>& sizes) {
  std::vector<std::string> out;
  for (const Size& size : sizes) out.push_back(size.text());
  return list_words(out, "[", "]");
}

std::string list_text(const std::vector<std::int64_t>& numbers) { return list_words(texts(numbers), "[", "]"); }

std::string tuple_text(const std::vector<std::int64_t>& numbers) {
  return list_words(texts(numbers), "(", numbers.size() == 1 ? ",)" : ")");
}

std::string list_text(const Reals& reals) {
  if (reals.is_one()) return float_words(reals.list().front());
  std::vector<std::string> out;
  for (const double real : reals.list()) out.push_back(float_words(real));
  return list_words(out, "[", "]");
}

}  // namespace polyphase::api::nn

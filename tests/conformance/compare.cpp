// Element by element.
#include "conformance/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/scanner.h"

namespace polyphase::test {
namespace {

// The distance between neighbours around a value.
double unit_of(double value, DType dtype) {
  struct Format {
    int mantissa_bits;
    int least_exponent;
  };
  const Format format = dtype == DType::f64      ? Format{52, -1022}
                        : dtype == DType::f32    ? Format{23, -126}
                        : dtype == DType::f16    ? Format{10, -14}
                        : dtype == DType::bf16   ? Format{7, -126}
                        : dtype == DType::f8e4m3 ? Format{3, -6}
                        : dtype == DType::f8e5m2 ? Format{2, -14}
                                                 : Format{0, 0};
  if (!is_float(dtype)) return 1;
  const int exponent = value == 0 ? format.least_exponent : std::max(std::ilogb(value), format.least_exponent);
  return std::ldexp(1.0, exponent - format.mantissa_bits);
}

bool agree(double found, double expected, DType dtype, const Bound& bound, double scale) {
  if (found == expected || (std::isnan(found) && std::isnan(expected))) return true;
  if (!std::isfinite(found) || !std::isfinite(expected)) return false;
  if (bound.flushes && found == 0 && std::fabs(expected) < std::numeric_limits<float>::min()) return true;
  const double error = std::fabs(found - expected);
  return error <= bound.ulp * unit_of(expected, dtype) || error <= bound.tolerance * scale;
}

std::string place_of_element(std::int64_t number, const TensorView& view) {
  std::string out;
  for (std::size_t axis = static_cast<std::size_t>(view.rank); axis-- > 0;) {
    out = std::to_string(number % view.sizes[axis]) + (out.empty() ? "" : ", ") + out;
    number /= view.sizes[axis];
  }
  return "[" + out + "]";
}

}  // namespace

std::string compare(const TensorView& found, const TensorView& expected, const Bound& bound) {
  if (equal_elements(found, expected)) return {};  // quickly, since it is the rule
  const auto size = static_cast<std::int64_t>(size_bytes(expected.dtype));
  double scale = 0;
  for_each_index<1>(expected.size_span(), {expected.strides.data()}, [&](const auto& at) {
    const double magnitude = std::fabs(load_double(expected.data + at[0] * size, expected.dtype));
    if (std::isfinite(magnitude)) scale = std::max(scale, magnitude);
  });
  std::int64_t number = 0;
  std::int64_t wrong = 0;
  std::string first;
  for_each_index<2>(expected.size_span(), {found.strides.data(), expected.strides.data()}, [&](const auto& at) {
    const std::byte* x = found.data + at[0] * size;
    const std::byte* y = expected.data + at[1] * size;
    const bool same = is_float(expected.dtype) ? agree(load_double(x, expected.dtype), load_double(y, expected.dtype),
                                                       expected.dtype, bound, scale)
                                               : load_integer(x, expected.dtype) == load_integer(y, expected.dtype);
    if (!same && wrong++ == 0) {
      first = "at " + place_of_element(number, expected) + " is " + shortest(load_double(x, expected.dtype)) +
              ", expected " + shortest(load_double(y, expected.dtype));
    }
    ++number;
  });
  if (wrong == 0) return {};
  return first + " (" + std::to_string(wrong) + " of " + std::to_string(number) + " wrong)";
}

}  // namespace polyphase::test

// Elementwise comparison in doubles.
#include "cli/differences.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "cli/terminal.h"

namespace polyphase::cli {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double half_value(std::uint16_t bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  if (exponent == 31) return mantissa == 0 ? sign * infinity : std::numeric_limits<double>::quiet_NaN();
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25));
}

// The integers' bytes, sign-extended: exact equality of u64 and i64 is decided on these.
std::int64_t integer_value(const api::Tensor& tensor, std::size_t at) {
  const std::size_t width = size_bytes(tensor.dtype());
  std::uint64_t bits = 0;
  std::memcpy(&bits, tensor.as<std::byte>() + at * width, width);
  const int unused = 64 - 8 * static_cast<int>(width);
  if (is_signed(tensor.dtype())) return static_cast<std::int64_t>(bits << unused) >> unused;
  return static_cast<std::int64_t>(bits);
}

double element_value(const api::Tensor& tensor, std::size_t at) {
  switch (tensor.dtype()) {
    case DType::f32:
      return static_cast<double>(tensor.as<float>()[at]);
    case DType::f64:
      return tensor.as<double>()[at];
    case DType::f16:
      return half_value(tensor.as<std::uint16_t>()[at]);
    case DType::bf16:
      return static_cast<double>(
          std::bit_cast<float>(static_cast<std::uint32_t>(tensor.as<std::uint16_t>()[at]) << 16));
    case DType::u64:
      return static_cast<double>(static_cast<std::uint64_t>(integer_value(tensor, at)));
    default:
      return static_cast<double>(integer_value(tensor, at));
  }
}

std::vector<std::int64_t> index_of(std::int64_t at, const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> index(sizes.size());
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    index[axis] = at % sizes[axis];
    at /= sizes[axis];
  }
  return index;
}

// Numbers of different storage compare; numbers and truth values do not.
bool comparable(DType found, DType expected) { return found == expected || (is_float(found) && is_float(expected)); }

}  // namespace

Difference compare_tensors(const api::Tensor& found, const api::Tensor& expected, double rtol, double atol,
                           std::size_t worst_count) {
  Difference out;
  out.elements = found.element_count();
  const auto text = [](const api::Tensor& tensor) {
    return std::string(name_of(tensor.dtype())) + " " + shape_text(tensor.sizes());
  };
  if (found.sizes() != expected.sizes() || !comparable(found.dtype(), expected.dtype())) {
    out.mismatch = "it is " + text(found) + ", expected " + text(expected);
    return out;
  }
  const bool exact = !is_float(found.dtype());
  double squares = 0;
  double expected_squares = 0;
  const auto by_excess = [](const Place& a, const Place& b) { return a.excess > b.excess; };
  for (std::int64_t i = 0; i < out.elements; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double a = element_value(found, at);
    const double b = element_value(expected, at);
    out.found_nan += std::isnan(a) ? 1 : 0;
    out.expected_nan += std::isnan(b) ? 1 : 0;
    double difference = std::abs(a - b);
    if ((std::isnan(a) && std::isnan(b)) || a == b) difference = 0;
    if (std::isnan(difference)) difference = infinity;
    if (exact && difference == 0 && integer_value(found, at) != integer_value(expected, at)) difference = 1;
    if (std::isfinite(a) && std::isfinite(b)) {
      squares += difference * difference;
      expected_squares += b * b;
    }
    out.largest_absolute = std::max(out.largest_absolute, difference);
    if (b != 0 && difference != 0 && !std::isnan(b))
      out.largest_relative = std::max(out.largest_relative, difference / std::abs(b));
    const double allowed = exact ? 0 : atol + (std::isfinite(b) ? rtol * std::abs(b) : 0);
    if (difference <= allowed) continue;
    ++out.outside;
    const double excess = allowed > 0 ? difference / allowed : difference;
    if (out.worst.size() == worst_count && (worst_count == 0 || excess <= out.worst.back().excess)) continue;
    const Place place{index_of(i, found.sizes()), a, b, difference, excess};
    out.worst.insert(std::upper_bound(out.worst.begin(), out.worst.end(), place, by_excess), place);
    if (out.worst.size() > worst_count) out.worst.pop_back();
  }
  out.relative_rms = expected_squares > 0 ? std::sqrt(squares / expected_squares) : std::sqrt(squares);
  return out;
}

}  // namespace polyphase::cli

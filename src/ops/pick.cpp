// Element copies along per-axis tables.
#include "ops/pick.h"

#include <array>
#include <cstring>

namespace polyphase {
namespace {

struct Pick {
  const TensorView& from;
  const PickTables& source;
  const TensorView& to;
  std::array<std::byte, 8> constant{};
  std::size_t size = 0;

  // `element` is null once some axis has picked the constant.
  void axis(std::size_t a, const std::byte* element, std::byte* at) const {
    if (a == source.size()) {
      std::memcpy(at, element == nullptr ? constant.data() : element, size);
      return;
    }
    const auto from_step = from.strides[a] * static_cast<std::int64_t>(size);
    const auto to_step = to.strides[a] * static_cast<std::int64_t>(size);
    for (const std::int64_t place : source[a]) {
      axis(a + 1, element == nullptr || place == picks_constant ? nullptr : element + place * from_step, at);
      at += to_step;
    }
  }
};

std::uint64_t unsigned_of(std::int64_t a) { return static_cast<std::uint64_t>(a); }

// (i - pre) modulo n for i >= 0, also where the difference itself is beyond int64.
std::uint64_t difference_modulo(std::int64_t i, std::int64_t pre, std::uint64_t n) {
  const std::uint64_t a = unsigned_of(i) % n;
  const std::uint64_t size_of_pre = (pre < 0 ? 0 - unsigned_of(pre) : unsigned_of(pre)) % n;
  const std::uint64_t b = pre < 0 && size_of_pre != 0 ? n - size_of_pre : size_of_pre;
  return a >= b ? a - b : a + (n - b);
}

}  // namespace

void pick_elements(const TensorView& from, const PickTables& source, double constant, const TensorView& to) {
  CHECK(source.size() == static_cast<std::size_t>(to.rank));
  Pick pick{from, source, to, {}, size_bytes(to.dtype)};
  store_double(pick.constant.data(), to.dtype, constant);
  pick.axis(0, from.data, to.data);
}

//   a b c d      reflect: … c b [a b c d] c b …     edge: … a a [a b c d] d d …     wrap: … c d [a b c d] a b …
std::int64_t padded_source(std::int64_t i, std::int64_t pre, std::int64_t size, const std::string& mode) {
  const bool before = i < pre;
  const bool inside = !before && unsigned_of(i) - unsigned_of(pre) < unsigned_of(size);
  if (inside) return i - pre;
  if (mode == "edge") return before ? 0 : size - 1;
  if (mode == "wrap") return static_cast<std::int64_t>(difference_modulo(i, pre, unsigned_of(size)));
  if (mode == "reflect") {
    if (size == 1) return 0;
    const std::uint64_t period = 2 * unsigned_of(size - 1);
    const std::uint64_t place = difference_modulo(i, pre, period);
    return static_cast<std::int64_t>(place < unsigned_of(size) ? place : period - place);
  }
  return picks_constant;
}

}  // namespace polyphase

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

}  // namespace

void pick_elements(const TensorView& from, const PickTables& source, double constant, const TensorView& to) {
  CHECK(source.size() == static_cast<std::size_t>(to.rank));
  Pick pick{from, source, to, {}, size_bytes(to.dtype)};
  store_double(pick.constant.data(), to.dtype, constant);
  pick.axis(0, from.data, to.data);
}

//   a b c d      reflect: … c b [a b c d] c b …     edge: … a a [a b c d] d d …     wrap: … c d [a b c d] a b …
std::int64_t padded_source(std::int64_t i, std::int64_t size, const std::string& mode) {
  if (i >= 0 && i < size) return i;
  if (mode == "edge") return i < 0 ? 0 : size - 1;
  if (mode == "wrap") return floor_mod(i, size);
  if (mode == "reflect") {
    if (size == 1) return 0;
    const std::int64_t place = floor_mod(i, 2 * (size - 1));
    return place < size ? place : 2 * (size - 1) - place;
  }
  return picks_constant;
}

}  // namespace polyphase

// Guard zones and poison.
#include "conformance/guarded.h"

#include <algorithm>

#include "base/rows.h"

namespace polyphase::test {
namespace {

constexpr auto guard_byte = std::byte{0xa5};
constexpr auto poison_byte = std::byte{0xff};

bool all_are(const std::byte* begin, const std::byte* end, std::byte value) {
  return begin == end ||
         (*begin == value && std::memcmp(begin, begin + 1, static_cast<std::size_t>(end - begin) - 1) == 0);
}

}  // namespace

GuardedBytes::GuardedBytes(std::size_t size_bytes) : size_bytes_(size_bytes) {
  total_bytes_ = size_bytes + 2 * guard_bytes + 64;
  memory_ = std::make_unique<std::byte[]>(total_bytes_);
  std::fill_n(memory_.get(), total_bytes_, guard_byte);
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.get()) + guard_bytes;
  data_ = memory_.get() + guard_bytes + (64 - address % 64) % 64;
  poison();
}

bool GuardedBytes::intact() const {
  return all_are(memory_.get(), data_, guard_byte) &&
         all_are(data_ + size_bytes_, memory_.get() + total_bytes_, guard_byte);
}

void GuardedBytes::poison() {
  if (size_bytes_ > 0) std::memset(data_, std::to_integer<int>(poison_byte), size_bytes_);
}

// The axes from innermost to outermost, each with room before and after it that depends on the density.
GuardedTensor::Placement GuardedTensor::place(DType dtype, std::span<const std::int64_t> sizes, const Layout& layout,
                                              Density density) {
  Placement out;
  out.desc = TensorDesc(dtype, sizes, layout);
  std::int64_t extent = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    const std::size_t axis = layout.order()[i];
    const std::int64_t gap = density == Density::strided ? 2 : 1;
    const bool reversed = density == Density::strided && i + 1 < sizes.size() && i % 2 == 0;
    const std::int64_t before = density == Density::dense ? 0 : (i == 0 ? 0 : 1 + static_cast<std::int64_t>(i) % 3);
    const std::int64_t after = density == Density::dense || i == 0 ? 0 : 2;
    const std::int64_t room = before + std::max<std::int64_t>(sizes[axis], 1) * gap + after;
    out.desc.strides[axis] = reversed ? -extent * gap : extent * gap;
    out.first += extent * (reversed ? before + (std::max<std::int64_t>(sizes[axis], 1) - 1) * gap : before);
    extent *= room;
  }
  out.elements = extent;
  return out;
}

GuardedTensor::GuardedTensor(DType dtype, std::span<const std::int64_t> sizes, const Layout& layout, Density density)
    : GuardedTensor(place(dtype, sizes, layout, density)) {}

GuardedTensor::GuardedTensor(const Placement& placement)
    : bytes_(static_cast<std::size_t>(placement.elements) * size_bytes(placement.desc.dtype)),
      view_(placement.desc,
            bytes_.data() + placement.first * static_cast<std::int64_t>(size_bytes(placement.desc.dtype))),
      has_gaps_(view_.element_count() != placement.elements) {}

void GuardedTensor::fill(const TensorView& from) {
  bytes_.poison();
  copy_elements(from, view_);
}

bool GuardedTensor::gaps_intact() const {
  if (!has_gaps_) return true;
  std::vector<std::byte> rest = snapshot();
  const auto size = static_cast<std::int64_t>(size_bytes(view_.dtype));
  std::byte* first = rest.data() + (view_.data - bytes_.data());
  for_each_row<1>(view_.size_span(), {view_.strides.data()}, RowOrder::any,
                  [&](const auto& at, std::int64_t count, const auto& step) {
                    std::byte* row = first + at[0] * size;
                    if (step[0] == 1) {
                      std::memset(row, std::to_integer<int>(poison_byte), static_cast<std::size_t>(count * size));
                      return;
                    }
                    for (std::int64_t i = 0; i < count; ++i)
                      std::memset(row + i * step[0] * size, std::to_integer<int>(poison_byte),
                                  static_cast<std::size_t>(size));
                  });
  return all_are(rest.data(), rest.data() + rest.size(), poison_byte);
}

}  // namespace polyphase::test

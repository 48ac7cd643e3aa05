// Guard zones and poison.
#include "conformance/guarded.h"

#include <algorithm>

namespace polyphase::test {
namespace {

constexpr auto guard_byte = std::byte{0xa5};
constexpr auto poison_byte = std::byte{0xff};

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
  const auto is_guard = [](std::byte b) { return b == guard_byte; };
  return std::all_of(memory_.get(), data_, is_guard) &&
         std::all_of(data_ + size_bytes_, memory_.get() + total_bytes_, is_guard);
}

void GuardedBytes::poison() { std::fill_n(data_, size_bytes_, poison_byte); }

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
            bytes_.data() + placement.first * static_cast<std::int64_t>(size_bytes(placement.desc.dtype))) {}

void GuardedTensor::fill(const TensorView& from) {
  bytes_.poison();
  copy_elements(from, view_);
}

bool GuardedTensor::gaps_intact() const {
  std::vector<std::byte> rest = snapshot();
  const auto size = static_cast<std::int64_t>(size_bytes(view_.dtype));
  const std::int64_t first = view_.data - bytes_.data();
  for_each_index<1>(view_.size_span(), {view_.strides.data()},
                    [&](const auto& at) { std::fill_n(rest.begin() + first + at[0] * size, size, poison_byte); });
  return std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == poison_byte; });
}

}  // namespace polyphase::test

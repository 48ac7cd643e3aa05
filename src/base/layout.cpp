// Layouts by name and by text.
#include "base/layout.h"

#include <numeric>

namespace polyphase {

Layout Layout::row_major(int rank) {
  Layout out;
  out.order_.resize(static_cast<std::size_t>(rank));
  std::iota(out.order_.begin(), out.order_.end(), std::uint8_t{0});
  out.set_ = true;
  return out;
}

Layout Layout::channels_last(int rank) {
  Layout out = row_major(rank);
  if (rank < 3) return out;
  for (std::size_t i = 1; i + 1 < out.order_.size(); ++i) out.order_[i] = static_cast<std::uint8_t>(i + 1);
  out.order_.back() = 1;
  return out;
}

bool Layout::is_row_major() const { return is_set() && *this == row_major(rank()); }
bool Layout::is_channels_last() const { return is_set() && *this == channels_last(rank()); }

std::string Layout::text() const {
  std::string out;
  for (const std::uint8_t axis : order_) out += (out.empty() ? "" : ",") + std::to_string(axis);
  return out;
}

std::optional<Layout> Layout::from_text(std::string_view text) {
  Layout out;
  out.set_ = true;
  std::uint32_t seen = 0;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const char digit = text[i];
    if (digit < '0' || digit > '7' || (i + 1 < text.size() && text[i + 1] != ',')) return std::nullopt;
    seen |= 1U << (digit - '0');
    out.order_.push_back(static_cast<std::uint8_t>(digit - '0'));
  }
  if (out.order_.size() > 8 || seen != (1U << out.order_.size()) - 1U) return std::nullopt;
  if (!text.empty() && text.back() == ',') return std::nullopt;
  return out;
}

}  // namespace polyphase

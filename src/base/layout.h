// Layout: the order in which a tensor's logical axes lie in memory, outermost first.
//
//   logical (N, C, H, W):  row-major = order 0 1 2 3,  channels-last = order 0 2 3 1
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polyphase {

class Layout {
 public:
  Layout() = default;  // unset: choose_layouts has not spoken
  explicit Layout(std::vector<std::uint8_t> order) : order_(std::move(order)), set_(true) {}
  static Layout row_major(int rank);
  static Layout channels_last(int rank);  // axis 1 innermost; row-major below rank 3

  bool is_set() const { return set_; }
  bool is_row_major() const;
  bool is_channels_last() const;
  int rank() const { return static_cast<int>(order_.size()); }
  const std::vector<std::uint8_t>& order() const { return order_; }
  bool operator==(const Layout& other) const { return order_ == other.order_ && set_ == other.set_; }

  // Dense strides, in elements, of a tensor of these logical sizes lying in this order. `Size` is int64 or Dim.
  template <typename Size>
  std::vector<Size> dense_strides(const std::vector<Size>& sizes) const {
    std::vector<Size> strides(sizes.size(), Size(1));
    Size step(1);
    for (std::size_t i = order_.size(); i-- > 0;) {
      strides[order_[i]] = step;
      step = step * sizes[order_[i]];
    }
    return strides;
  }

  std::string text() const;                                       // "0,2,3,1"; "" if unset or of rank 0
  static std::optional<Layout> from_text(std::string_view text);  // a permutation of 0…n-1, nothing otherwise

 private:
  std::vector<std::uint8_t> order_;
  bool set_ = false;
};

}  // namespace polyphase

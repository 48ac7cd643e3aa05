// LayoutName: the axes of a tensor by their letters, outermost first, as frameworks write them.
//
//   "NCHW"  "NHWC"  "OIHW"      and one axis in blocks, whose elements lie innermost:  "NCHW16c" = (N, C/16, H, W, 16)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace polyphase {

class LayoutName {
 public:
  // Capital letters, each once; then at most one number (2 to 1024) with the small letter of the axis it divides.
  // Error: invalid_argument.
  static Result<LayoutName> parse(std::string_view text);
  // "NCHW" for two spatial axes. 1 to 3.
  static std::string channels_first(int spatial);

  const std::string& text() const { return text_; }
  const std::string& axes() const { return axes_; }  // the capital letters
  bool is_blocked() const { return block_ > 1; }
  std::int64_t block() const { return block_; }          // 1: no axis is in blocks
  std::size_t blocked_axis() const { return blocked_; }  // its place among the axes
  // Of a tensor that lies so.
  int rank() const { return static_cast<int>(axes_.size()) + (is_blocked() ? 1 : 0); }
  std::size_t place_of(char axis) const { return axes_.find(axis); }
  bool names_the_same_axes(const LayoutName& other) const;

 private:
  std::string text_;
  std::string axes_;
  std::int64_t block_ = 1;
  std::size_t blocked_ = 0;
};

}  // namespace polyphase

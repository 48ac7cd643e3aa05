// Reads layouts by their letters.
#include "base/layout_name.h"

#include <algorithm>

namespace polyphase {
namespace {

constexpr std::int64_t most_in_block = 1024;

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

Error refused(std::string_view text, const std::string& why) {
  std::string shown(text.substr(0, 40));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return Error{ErrorCode::invalid_argument, "the layout '" + shown + "' " + why,
               "A layout has a capital letter for each axis, outermost first: NCHW, NHWC, OIHW; one axis may lie in "
               "blocks: NCHW16c."};
}

std::string sorted(std::string letters) {
  std::sort(letters.begin(), letters.end());
  return letters;
}

}  // namespace

Result<LayoutName> LayoutName::parse(std::string_view text) {
  LayoutName out;
  out.text_ = std::string(text);
  std::size_t at = 0;
  for (; at < text.size() && is_capital(text[at]); ++at) {
    if (out.axes_.find(text[at]) != std::string::npos)
      return refused(text, std::string("names the axis ") + text[at] + " twice.");
    out.axes_ += text[at];
  }
  if (out.axes_.empty()) return refused(text, "names no axis.");
  if (out.axes_.size() > 7) return refused(text, "names more than 7 axes.");
  if (at == text.size()) return out;
  out.block_ = 0;
  for (; at < text.size() && is_digit(text[at]) && out.block_ <= most_in_block; ++at)
    out.block_ = out.block_ * 10 + (text[at] - '0');
  if (at + 1 != text.size()) return refused(text, "does not end behind its axes, nor behind one block.");
  if (out.block_ < 2 || out.block_ > most_in_block)
    return refused(text, "has a block that is not of 2 to " + std::to_string(most_in_block) + " elements.");
  const auto axis = static_cast<char>(text[at] - 'a' + 'A');
  out.blocked_ = out.axes_.find(axis);
  if (out.blocked_ == std::string::npos) return refused(text, "divides an axis that it does not name.");
  return out;
}

std::string LayoutName::channels_first(int spatial) {
  return "NC" + std::string("DHW").substr(3 - static_cast<std::size_t>(spatial));
}

bool LayoutName::names_the_same_axes(const LayoutName& other) const { return sorted(axes_) == sorted(other.axes_); }

}  // namespace polyphase

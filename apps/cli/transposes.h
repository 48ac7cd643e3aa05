// The steps of an engine that only bring elements into another order of axes, and why they are there.
#pragma once

#include <string>
#include <vector>

#include "polyphase/polyphase.h"

namespace polyphase::cli {

// "row-major", "channels-last", or the axes by number, outermost first: "1,0".
std::string axes_text(const std::string& layout);

struct Transpose {
  std::size_t step = 0;
  std::string from;  // as axes_text
  std::string to;
  std::string why;  // "'up1' (conv_transpose) gives channels-last, the caller takes row-major"
};
std::vector<Transpose> transposes_of(const api::EngineInfo& engine);

}  // namespace polyphase::cli

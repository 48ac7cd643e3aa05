// The files of apps/cli/report as text; their definitions are generated when the program is built.
#pragma once

#include <string_view>
#include <vector>

namespace polyphase::cli {

extern const std::string_view page_html;  // with @style@, @data@ and @script@ where they go
extern const std::string_view page_style;
extern const std::vector<std::string_view> page_scripts;  // in the order in which they are read

}  // namespace polyphase::cli

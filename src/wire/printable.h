// printable: text from a file made safe for a message: control characters escaped, long names shortened.
#pragma once

#include <string>
#include <string_view>

namespace polyphase::wire {

// At most about `limit` characters; NUL, control characters and invalid UTF-8 appear as \xHH, the rest of a long text
// as "…(N bytes)".
std::string printable(std::string_view text, std::size_t limit = 80);

// The same in single quotes.
std::string quoted_name(std::string_view text);

}  // namespace polyphase::wire

// What this machine has, as far as this process may use it.
#pragma once

#include <cstdint>

namespace polyphase::api {

int usable_cores();
// Of the machine, or of the control group that bounds this process, whichever is less.
std::uint64_t memory_bytes();

}  // namespace polyphase::api

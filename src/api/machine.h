// What this machine has, as far as this process may use it.
#pragma once

#include <cstdint>

namespace polyphase::api {

// Those that the process may run on, or fewer where the control group that bounds it has less of their time: more
// threads would be stopped in the middle of a run.
int usable_cores();
// Of the machine, or of the control group that bounds this process, whichever is less.
std::uint64_t memory_bytes();

}  // namespace polyphase::api

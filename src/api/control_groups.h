// What control groups (cgroups(7), both versions) leave to this process: the least limit of its own group and of all
// groups around it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace polyphase::api {

// Where the system tells of them.
struct ControlGroups {
  std::string of_process = "/proc/self/cgroup";
  std::string mount = "/sys/fs/cgroup";

  // Time on processors per time that passes; infinite without a limit.
  double processors() const;
  // Largest number without a limit.
  std::uint64_t memory_bytes() const;
};

}  // namespace polyphase::api

// Reads the limits of control groups.
#include "api/control_groups.h"

#include <algorithm>
#include <fstream>

namespace polyphase::api {
namespace {

// f(folder) for the folder of the process's group under a controller, and for those of all groups around it. In a
// container the process may name a group of the machine outside: of the folders only the mounted one is there then.
template <class F>
void each_folder(const ControlGroups& groups, const std::string& controller, F f) {
  std::ifstream lines(groups.of_process);
  for (std::string line; std::getline(lines, line);) {  // number:controllers:path
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_unified = controllers == ",,";
    if (!is_unified && controllers.find("," + controller + ",") == std::string::npos) continue;
    const std::string mount = groups.mount + (is_unified ? "" : "/" + controller);
    std::string path = line.substr(second + 1);
    for (std::size_t end = path.size(); end != std::string::npos && end > 0; end = path.rfind('/')) {
      path.resize(end);
      f(mount + path);
    }
  }
  f(groups.mount);
  f(groups.mount + "/" + controller);
}

// A number of a file; false where there is none, or the word "max".
template <class T>
bool read(const std::string& file, T& number) {
  return static_cast<bool>(std::ifstream(file) >> number);
}

}  // namespace

double ControlGroups::processors() const {
  double least = std::numeric_limits<double>::infinity();
  each_folder(*this, "cpu", [&](const std::string& folder) {
    double quota = 0;
    double period = 0;
    std::ifstream both(folder + "/cpu.max");
    const bool found = (both >> quota && both >> period) ||
                       (read(folder + "/cpu.cfs_quota_us", quota) && read(folder + "/cpu.cfs_period_us", period));
    if (found && quota > 0 && period > 0) least = std::min(least, quota / period);
  });
  return least;
}

std::uint64_t ControlGroups::memory_bytes() const {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  each_folder(*this, "memory", [&](const std::string& folder) {
    std::uint64_t limit = 0;
    const bool found = read(folder + "/memory.max", limit) || read(folder + "/memory.limit_in_bytes", limit);
    if (found && limit > 0) least = std::min(least, limit);
  });
  return least;
}

}  // namespace polyphase::api

// Random bytes as a timing cache: refused with an Error, or read line by line; what is read is found again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "tune/timing_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace polyphase;
  static const int file = memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, bytes, size, 0) != static_cast<ssize_t>(size)) return 0;
  auto cache = TimingCache::open(path);
  if (!cache.ok()) return 0;
  cache->remember("machine", "step", {{"row", 1}});
  const StepTimes* times = cache->look_up("machine", "step");
  if (times == nullptr || times->count("row") != 1 || times->at("row") == 0) std::abort();
  return 0;
}

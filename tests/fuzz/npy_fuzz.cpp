// Random bytes as an array of NumPy's: refused with an Error, or its elements lie inside of them.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "wire/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(bytes), size);
  const auto array = polyphase::wire::read_npy(file);
  if (!array.ok()) {
    if (array.error().message.empty() || array.error().hint.empty()) std::abort();
    return 0;
  }
  unsigned sum = 0;
  for (const std::byte one : array->elements) sum += std::to_integer<unsigned>(one);
  return sum == UINT32_MAX ? 1 : 0;
}

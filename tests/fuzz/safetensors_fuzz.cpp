// Random bytes as a safetensors file: refused with an Error, or every tensor's elements lie inside of them.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "wire/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(bytes), size);
  const auto tensors = polyphase::wire::read_safetensors(file);
  if (!tensors.ok()) {
    if (tensors.error().message.empty() || tensors.error().hint.empty()) std::abort();
    return 0;
  }
  unsigned sum = 0;
  for (const auto& tensor : *tensors) {
    for (const std::byte one : tensor.elements) sum += std::to_integer<unsigned>(one);
  }
  return sum == UINT32_MAX ? 1 : 0;
}

// Random bytes as files with tensors, by their first byte: .npz, .npy, PNG, WAV. Each is refused with an Error or read
// whole, in memory that the file's length bounds.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "io/image.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/png.h"
#include "io/wav.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace polyphase;
  if (size == 0) return 0;
  static const int file = memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, bytes + 1, size - 1, 0) != static_cast<ssize_t>(size - 1)) return 0;
  switch (bytes[0] % 4) {
    case 0:
      (void)io::read_npz(path);
      break;
    case 1:
      (void)io::read_npy_file(path);
      break;
    case 2: {
      const auto image = io::read_png(path);
      if (image.ok()) (void)io::tensor_from_image(*image, {}, {}, path);
      break;
    }
    default:
      (void)io::read_wav(path, 3 - bytes[0] / 4 % 3);
      break;
  }
  return 0;
}

// PNG files as images.
#pragma once

#include <string>

#include "io/image.h"

namespace polyphase::io {

// 1 to 16 bits, grey, palette, RGB, with or without alpha, interlaced too. Errors: io; corrupt, in libpng's words; more
// than 2^28 pixels.
Result<Image> read_png(const std::string& path);
// 8 bits a sample.
Result<void> write_png(const std::string& path, const Image& image);

}  // namespace polyphase::io

// PNG files as images.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "io/image.h"

namespace polyphase::io {

// 1 to 16 bits, grey, palette, RGB, with or without alpha, interlaced too. Errors: io; corrupt, in libpng's words; more
// than 2^28 pixels.
Result<Image> read_png(const std::string& path);
// 8 bits a sample.
Result<void> write_png(const std::string& path, const Image& image);

// An image that is read from the top, some rows at a time.
class PngRows {
 public:
  // Errors: as read_png, but for the number of pixels.
  static Result<PngRows> open(const std::string& path);
  PngRows(PngRows&&) noexcept;
  PngRows& operator=(PngRows&&) noexcept;
  ~PngRows();
  // Without samples.
  const Image& head() const { return head_; }
  // Whether its rows follow each other in the file; interlaced images do not have them so.
  bool is_plain() const;
  // The next rows, as `samples` of an Image has them. Errors: corrupt.
  Result<void> read(std::int64_t rows, std::uint16_t* samples);

 private:
  struct Decoder;
  explicit PngRows(std::unique_ptr<Decoder> decoder);
  std::unique_ptr<Decoder> decoder_;
  Image head_;
};

// An image of 8 bits a sample that is written from the top, some rows at a time; it takes its name when all is written.
class NewPngRows {
 public:
  static Result<NewPngRows> create(const std::string& path, std::int64_t width, std::int64_t height, int channels);
  NewPngRows(NewPngRows&&) noexcept;
  ~NewPngRows();
  Result<void> write(std::int64_t rows, const std::uint8_t* samples);
  Result<void> finish();

 private:
  struct Encoder;
  explicit NewPngRows(std::unique_ptr<Encoder> encoder);
  std::unique_ptr<Encoder> encoder_;
};

}  // namespace polyphase::io

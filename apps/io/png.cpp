// PNG through libpng. Its errors leave by longjmp, so the functions between setjmp and libpng hold plain data only.
#include "io/png.h"

#include <png.h>

#include <cerrno>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <memory>

#include "io/try.h"
#include "io/whole_file.h"

namespace polyphase::io {
namespace {

constexpr png_uint_32 max_side = 1 << 20;
constexpr std::uint64_t max_pixels = std::uint64_t{1} << 28;

// What libpng said last, kept across the jump.
struct Words {
  char text[160] = "";
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* words = static_cast<Words*>(png_get_error_ptr(png));
  std::snprintf(words->text, sizeof words->text, "%s", message);
  png_longjmp(png, 1);
}
void on_warning(png_structp, png_const_charp) {}

struct PngHeader {
  png_uint_32 width = 0;
  png_uint_32 height = 0;
  int channels = 0;
  int bits = 0;
};

bool read_head(png_structp png, png_infop info, std::FILE* file, PngHeader* head) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_init_io(png, file);
  png_set_user_limits(png, max_side, max_side);
  png_read_info(png, info);
  png_set_expand(png);  // palettes, few bits and transparent colours become plain samples
  if (png_get_bit_depth(png, info) == 16) png_set_swap(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  head->width = png_get_image_width(png, info);
  head->height = png_get_image_height(png, info);
  head->channels = png_get_channels(png, info);
  head->bits = png_get_bit_depth(png, info);
  return true;
}

bool read_rows(png_structp png, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

bool write_all(png_structp png, png_infop info, std::FILE* file, const PngHeader* head, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  static constexpr int colour_types[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                         PNG_COLOR_TYPE_RGB_ALPHA};
  png_init_io(png, file);
  png_set_IHDR(png, info, head->width, head->height, 8, colour_types[head->channels], PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  png_write_image(png, rows);
  png_write_end(png, info);
  return true;
}

struct Reader {
  explicit Reader(Words* words) : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, words, on_error, on_warning)) {
    if (png != nullptr) info = png_create_info_struct(png);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  png_structp png = nullptr;
  png_infop info = nullptr;
};

struct Writer {
  explicit Writer(Words* words) : png(png_create_write_struct(PNG_LIBPNG_VER_STRING, words, on_error, on_warning)) {
    if (png != nullptr) info = png_create_info_struct(png);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { png_destroy_write_struct(&png, &info); }
  png_structp png = nullptr;
  png_infop info = nullptr;
};

}  // namespace

Result<Image> read_png(const std::string& path) {
  IO_TRY(const File file, open_file(path));
  Words words;
  const auto refuse = [&] {
    return Error{ErrorCode::corrupt, "'" + path + "' is not a sound PNG image: " + words.text + ".",
                 "Copy it again, or save it again from an image editor."};
  };
  Reader reader(&words);
  if (reader.info == nullptr)
    return Error{ErrorCode::out_of_memory, "no memory to read '" + path + "'.", "Use a machine with more memory."};
  PngHeader head;
  if (!read_head(reader.png, reader.info, file.get(), &head)) return refuse();
  if (std::uint64_t{head.width} * head.height > max_pixels) {
    return Error{ErrorCode::unsupported,
                 "'" + path + "' has " + std::to_string(head.width) + " x " + std::to_string(head.height) +
                     " pixels, more than 2^28.",
                 "Cut the image into parts."};
  }
  const std::size_t row_samples = std::size_t{head.width} * static_cast<std::size_t>(head.channels);
  const std::size_t row_bytes = row_samples * static_cast<std::size_t>(head.bits / 8);
  std::vector<png_byte> bytes(row_bytes * head.height);
  std::vector<png_bytep> rows(head.height);
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = bytes.data() + y * row_bytes;
  if (!read_rows(reader.png, rows.data())) return refuse();
  Image image{head.width, head.height, head.channels, head.bits, std::vector<std::uint16_t>(row_samples * head.height)};
  if (head.bits == 16) {
    std::memcpy(image.samples.data(), bytes.data(), bytes.size());
  } else {
    std::copy(bytes.begin(), bytes.end(), image.samples.begin());
  }
  return image;
}

Result<void> write_png(const std::string& path, const Image& image) {
  std::vector<png_byte> bytes(image.samples.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<png_byte>(image.samples[i]);
  std::vector<png_bytep> rows(static_cast<std::size_t>(image.height));
  const std::size_t row_bytes = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.channels);
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = bytes.data() + y * row_bytes;
  IO_TRY(NewFile target, NewFile::create(path));
  File file(std::fopen(target.path().c_str(), "wb"));
  if (file == nullptr) return write_error(path, errno);
  Words words;
  Writer writer(&words);
  if (writer.info == nullptr)
    return Error{ErrorCode::out_of_memory, "no memory to write '" + path + "'.", "Use a machine with more memory."};
  const PngHeader head{static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height), image.channels,
                       8};
  if (!write_all(writer.png, writer.info, file.get(), &head, rows.data())) {
    return Error{ErrorCode::io, "cannot write '" + path + "': " + words.text + ".",
                 "Free space on the disk, or write elsewhere."};
  }
  if (std::fclose(file.release()) != 0) return write_error(path, errno);
  return target.publish();
}

}  // namespace polyphase::io

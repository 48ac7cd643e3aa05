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

// What libpng said last, kept across the jump.
struct PngWords {
  char text[160] = "";
};

struct PngHeader {
  png_uint_32 width = 0;
  png_uint_32 height = 0;
  int channels = 0;
  int bits = 0;
};

namespace {

constexpr png_uint_32 max_side = 1 << 20;
constexpr std::uint64_t max_pixels = std::uint64_t{1} << 28;

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* words = static_cast<PngWords*>(png_get_error_ptr(png));
  std::snprintf(words->text, sizeof words->text, "%s", message);
  png_longjmp(png, 1);
}
void on_warning(png_structp, png_const_charp) {}

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

// Called where errors jump to a caller's setjmp.
void set_head(png_structp png, png_infop info, std::FILE* file, const PngHeader* head) {
  static constexpr int colour_types[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                         PNG_COLOR_TYPE_RGB_ALPHA};
  png_init_io(png, file);
  png_set_user_limits(png, max_side, max_side);
  png_set_IHDR(png, info, head->width, head->height, 8, colour_types[head->channels], PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
}

bool write_all(png_structp png, png_infop info, std::FILE* file, const PngHeader* head, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  set_head(png, info, file, head);
  png_write_image(png, rows);
  png_write_end(png, info);
  return true;
}

bool read_some_rows(png_structp png, png_bytep row, png_uint_32 row_bytes, png_uint_32 rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  for (png_uint_32 y = 0; y < rows; ++y) png_read_row(png, row + std::size_t{y} * row_bytes, nullptr);
  return true;
}

bool write_head(png_structp png, png_infop info, std::FILE* file, const PngHeader* head) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  set_head(png, info, file, head);
  return true;
}

bool write_some_rows(png_structp png, png_const_bytep row, png_uint_32 row_bytes, png_uint_32 rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  for (png_uint_32 y = 0; y < rows; ++y) png_write_row(png, row + std::size_t{y} * row_bytes);
  return true;
}

bool write_end(png_structp png, png_infop info) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_write_end(png, info);
  return true;
}

}  // namespace

struct PngReader {
  explicit PngReader(PngWords* words)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, words, on_error, on_warning)) {
    if (png != nullptr) info = png_create_info_struct(png);
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  png_structp png = nullptr;
  png_infop info = nullptr;
};

struct PngWriter {
  explicit PngWriter(PngWords* words)
      : png(png_create_write_struct(PNG_LIBPNG_VER_STRING, words, on_error, on_warning)) {
    if (png != nullptr) info = png_create_info_struct(png);
  }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;
  ~PngWriter() { png_destroy_write_struct(&png, &info); }
  png_structp png = nullptr;
  png_infop info = nullptr;
};

namespace {

Error broken_png(const std::string& path, const PngWords& words) {
  return {ErrorCode::corrupt, "'" + path + "' is not a sound PNG image: " + words.text + ".",
          "Copy it again, or save it again from an image editor."};
}

Error unwritten_png(const std::string& path, const PngWords& words) {
  return {ErrorCode::io, "cannot write '" + path + "': " + words.text + ".",
          "Free space on the disk, or write elsewhere."};
}

// Bytes as libpng gives them, and an Image's samples.
void widen(const std::vector<png_byte>& bytes, int bits, std::uint16_t* samples) {
  if (bits == 16) {
    std::memcpy(samples, bytes.data(), bytes.size());
  } else {
    std::copy(bytes.begin(), bytes.end(), samples);
  }
}

}  // namespace

Result<Image> read_png(const std::string& path) {
  IO_TRY(const File file, open_file(path));
  PngWords words;
  const auto refuse = [&] { return broken_png(path, words); };
  PngReader reader(&words);
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
  widen(bytes, head.bits, image.samples.data());
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
  PngWords words;
  PngWriter writer(&words);
  if (writer.info == nullptr)
    return Error{ErrorCode::out_of_memory, "no memory to write '" + path + "'.", "Use a machine with more memory."};
  const PngHeader head{static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height), image.channels,
                       8};
  if (!write_all(writer.png, writer.info, file.get(), &head, rows.data())) return unwritten_png(path, words);
  if (std::fclose(file.release()) != 0) return write_error(path, errno);
  return target.publish();
}

// ---------------------------------------------------------------- row by row

struct PngRows::Decoder {
  Decoder(std::string of, File from) : path(std::move(of)), file(std::move(from)), reader(&words) {}
  std::string path;
  File file;
  PngWords words;
  PngReader reader;
  PngHeader head;
  std::vector<png_byte> bytes;
};

PngRows::PngRows(std::unique_ptr<Decoder> decoder) : decoder_(std::move(decoder)) {
  const PngHeader& head = decoder_->head;
  head_ = {head.width, head.height, head.channels, head.bits, {}};
}
PngRows::PngRows(PngRows&&) noexcept = default;
PngRows& PngRows::operator=(PngRows&&) noexcept = default;
PngRows::~PngRows() = default;

Result<PngRows> PngRows::open(const std::string& path) {
  IO_TRY(File file, open_file(path));
  auto decoder = std::make_unique<Decoder>(path, std::move(file));
  if (decoder->reader.info == nullptr)
    return Error{ErrorCode::out_of_memory, "no memory to read '" + path + "'.", "Use a machine with more memory."};
  if (!read_head(decoder->reader.png, decoder->reader.info, decoder->file.get(), &decoder->head))
    return broken_png(path, decoder->words);
  return PngRows(std::move(decoder));
}

bool PngRows::is_plain() const {
  return png_get_interlace_type(decoder_->reader.png, decoder_->reader.info) == PNG_INTERLACE_NONE;
}

Result<void> PngRows::read(std::int64_t rows, std::uint16_t* samples) {
  Decoder& d = *decoder_;
  const auto row_bytes = static_cast<std::size_t>(head_.width * head_.channels * (head_.bits / 8));
  d.bytes.resize(row_bytes * static_cast<std::size_t>(rows));
  if (!read_some_rows(d.reader.png, d.bytes.data(), static_cast<png_uint_32>(row_bytes),
                      static_cast<png_uint_32>(rows)))
    return broken_png(d.path, d.words);
  widen(d.bytes, head_.bits, samples);
  return {};
}

struct NewPngRows::Encoder {
  Encoder(std::string of, NewFile to, File stream)
      : path(std::move(of)), target(std::move(to)), file(std::move(stream)), writer(&words) {}
  std::string path;
  NewFile target;
  File file;
  PngWords words;
  PngWriter writer;
  PngHeader head;
};

NewPngRows::NewPngRows(std::unique_ptr<Encoder> encoder) : encoder_(std::move(encoder)) {}
NewPngRows::NewPngRows(NewPngRows&&) noexcept = default;
NewPngRows::~NewPngRows() = default;

Result<NewPngRows> NewPngRows::create(const std::string& path, std::int64_t width, std::int64_t height, int channels) {
  if (width < 1 || height < 1 || width > max_side || height > max_side) {
    return Error{ErrorCode::invalid_argument,
                 "cannot write '" + path + "': an image of " + std::to_string(width) + " x " + std::to_string(height) +
                     " pixels has no place in PNG.",
                 "Write it as .npy instead."};
  }
  IO_TRY(NewFile target, NewFile::create(path));
  File file(std::fopen(target.path().c_str(), "wb"));
  if (file == nullptr) return write_error(path, errno);
  auto encoder = std::make_unique<Encoder>(path, std::move(target), std::move(file));
  if (encoder->writer.info == nullptr)
    return Error{ErrorCode::out_of_memory, "no memory to write '" + path + "'.", "Use a machine with more memory."};
  encoder->head = {static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), channels, 8};
  if (!write_head(encoder->writer.png, encoder->writer.info, encoder->file.get(), &encoder->head))
    return unwritten_png(path, encoder->words);
  return NewPngRows(std::move(encoder));
}

Result<void> NewPngRows::write(std::int64_t rows, const std::uint8_t* samples) {
  Encoder& e = *encoder_;
  const auto row_bytes = e.head.width * static_cast<png_uint_32>(e.head.channels);
  if (!write_some_rows(e.writer.png, samples, row_bytes, static_cast<png_uint_32>(rows)))
    return unwritten_png(e.path, e.words);
  return {};
}

Result<void> NewPngRows::finish() {
  Encoder& e = *encoder_;
  if (!write_end(e.writer.png, e.writer.info)) return unwritten_png(e.path, e.words);
  if (std::fclose(e.file.release()) != 0) return write_error(e.path, errno);
  return e.target.publish();
}

}  // namespace polyphase::io

// Reads and writes .npy; the header is a Python literal of which just the three keys NumPy writes are accepted.
#include "io/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>

#include "io/try.h"
#include "io/whole_file.h"

namespace polyphase::io {
namespace {

constexpr std::string_view magic("\x93NUMPY", 6);
constexpr std::size_t max_header_bytes = 1 << 16;
constexpr std::size_t max_rank = 8;

struct NpyName {
  std::string_view code;  // without the byte order
  DType dtype;
};
constexpr NpyName npy_names[] = {
    {"f4", DType::f32}, {"f8", DType::f64}, {"f2", DType::f16},  {"b1", DType::boolean}, {"i1", DType::i8},
    {"u1", DType::u8},  {"i2", DType::i16}, {"u2", DType::u16},  {"i4", DType::i32},     {"u4", DType::u32},
    {"i8", DType::i64}, {"u8", DType::u64}, {"V2", DType::bf16}, {"V1", DType::f8e4m3},
};

Error refuse(const std::string& name, const std::string& why, const std::string& hint = "Write it with numpy.save.") {
  return {ErrorCode::corrupt, "'" + name + "' is not a sound .npy array: " + why + ".", hint};
}

// {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 8), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Result<NpyHeader> parse() {
    if (!take("{")) return broken("a dictionary");
    while (!take("}")) {
      IO_TRY(const std::string key, word());
      if (!take(":")) return broken("':'");
      if (key == "descr") {
        IO_TRY_VOID(dtype());
      } else if (key == "fortran_order") {
        header_.fortran = take("True");
        if (!header_.fortran && !take("False")) return broken("True or False");
      } else if (key == "shape") {
        IO_TRY_VOID(shape());
      } else {
        return refuse(name_, "its header has the key '" + key + "'");
      }
      ++keys_;
      if (!take(",") && !peek('}')) return broken("',' or '}'");
    }
    skip();
    if (at_ != text_.size() || keys_ != 3 || !has_dtype_ || !has_shape_)
      return broken("descr, fortran_order and shape, each once");
    return header_;
  }

 private:
  Error broken(const std::string& expected) const {
    return refuse(name_, "its header lacks " + expected + " at character " + std::to_string(at_ + 1));
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool peek(char c) {
    skip();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  Result<std::string> word() {
    const char mark = peek('"') ? '"' : '\'';
    if (!take(std::string_view(&mark, 1))) return broken("a quoted word");
    const std::size_t end = text_.find(mark, at_);
    if (end == std::string_view::npos) return broken("the end of a quoted word");
    std::string out(text_.substr(at_, end - at_));
    at_ = end + 1;
    return out;
  }
  Result<void> dtype() {
    if (peek('[')) {
      return Error{ErrorCode::unsupported, "'" + name_ + "' is a structured array.",
                   "Save its fields as arrays of their own."};
    }
    IO_TRY(const std::string code, word());
    const bool has_order = !code.empty() && std::strchr("<>|=", code.front()) != nullptr;
    const std::string_view kind = std::string_view(code).substr(has_order ? 1 : 0);
    const auto* found = std::find_if(std::begin(npy_names), std::end(npy_names),
                                     [&](const NpyName& item) { return item.code == kind; });
    if (found == std::end(npy_names)) {
      return Error{ErrorCode::unsupported,
                   "'" + name_ + "' has elements of type '" + code + "', which no tensor can hold.",
                   "Convert it first, e.g. array.astype(numpy.float32)."};
    }
    header_.dtype = found->dtype;
    header_.big_endian = code.front() == '>';
    has_dtype_ = true;
    return {};
  }
  Result<void> shape() {
    if (!take("(")) return broken("the shape's '('");
    while (!take(")")) {
      skip();
      std::int64_t size = 0;
      const auto [end, failure] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (failure != std::errc() || size < 0) return broken("a size that is not negative");
      at_ = static_cast<std::size_t>(end - text_.data());
      take("L");  // Python 2 wrote its long integers so
      header_.sizes.push_back(size);
      if (header_.sizes.size() > max_rank)
        return refuse(name_, "it has more than 8 axes", "Reshape it to at most 8 axes.");
      if (!take(",") && !peek(')')) return broken("',' or ')'");
    }
    has_shape_ = true;
    return {};
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  int keys_ = 0;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  NpyHeader header_;
};

// The elements' bytes; nothing if they exceed the address space.
std::optional<std::uint64_t> data_bytes(const NpyHeader& header) {
  if (std::find(header.sizes.begin(), header.sizes.end(), 0) != header.sizes.end()) return 0;
  unsigned __int128 bytes = size_bytes(header.dtype);
  for (const std::int64_t size : header.sizes) {
    bytes *= static_cast<std::uint64_t>(size);
    if (bytes > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  }
  return static_cast<std::uint64_t>(bytes);
}

void swap_bytes(const api::Tensor& tensor) {
  auto* bytes = tensor.as<std::byte>();
  const std::size_t width = size_bytes(tensor.dtype());
  for (std::size_t at = 0; at < tensor.size_bytes(); at += width) std::reverse(bytes + at, bytes + at + width);
}

// Fortran order is the row-major order of the axes reversed.
Result<api::Tensor> from_fortran(const api::Tensor& from) {
  IO_TRY(api::Tensor to, api::Tensor::allocate(from.dtype(), from.sizes()));
  const std::vector<std::int64_t>& sizes = from.sizes();
  const std::size_t width = size_bytes(from.dtype());
  std::vector<std::int64_t> index(sizes.size(), 0);
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t axis = 1; axis < sizes.size(); ++axis) strides[axis] = strides[axis - 1] * sizes[axis - 1];
  std::int64_t offset = 0;
  const std::int64_t count = from.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to.as<std::byte>() + static_cast<std::size_t>(i) * width,
                from.as<std::byte>() + static_cast<std::size_t>(offset) * width, width);
    for (std::size_t axis = sizes.size(); axis-- > 0;) {
      offset += strides[axis];
      if (++index[axis] < sizes[axis]) break;
      offset -= strides[axis] * sizes[axis];
      index[axis] = 0;
    }
  }
  return to;
}

Result<std::string> read_header_text(const ByteSource& source, const std::string& name, std::uint64_t& used) {
  std::array<std::byte, 8> start{};
  IO_TRY_VOID(source(start));
  if (std::memcmp(start.data(), magic.data(), magic.size()) != 0)
    return refuse(name, "it does not begin with \\x93NUMPY");
  const auto version = std::to_integer<int>(start[6]);
  if (version < 1 || version > 3)
    return refuse(name, "its format version is " + std::to_string(version) + ", known are 1 to 3");
  std::array<std::byte, 4> length_bytes{};
  const std::size_t length_width = version == 1 ? 2 : 4;
  IO_TRY_VOID(source(std::span(length_bytes).first(length_width)));
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < length_width; ++i) length |= std::to_integer<std::uint32_t>(length_bytes[i]) << (8 * i);
  if (length > max_header_bytes) return refuse(name, "its header says it has " + std::to_string(length) + " bytes");
  std::string text(length, ' ');
  IO_TRY_VOID(source(std::as_writable_bytes(std::span(text))));
  used = start.size() + length_width + length;
  return text;
}

std::string npy_code(DType dtype) {
  for (const NpyName& item : npy_names) {
    if (item.dtype == dtype)
      return std::string(size_bytes(dtype) == 1 || item.code[0] == 'V' ? "|" : "<") + std::string(item.code);
  }
  if (dtype == DType::i4) return "|i1";
  if (dtype == DType::u4) return "|u1";
  return "|V1";  // f8e5m2
}

}  // namespace

Result<NpyHeader> read_npy_header(const ByteSource& source, std::uint64_t size_bytes, const std::string& name) {
  if (size_bytes < 10) return refuse(name, "it has " + std::to_string(size_bytes) + " bytes, fewer than a header");
  std::uint64_t used = 0;
  IO_TRY(const std::string text, read_header_text(source, name, used));
  IO_TRY(NpyHeader header, HeaderParser(text, name).parse());
  const auto expected = data_bytes(header);
  if (!expected.has_value() || used + *expected != size_bytes) {
    return refuse(name, "its header promises " + (expected.has_value() ? std::to_string(*expected) : "too many") +
                            " bytes of elements, found " + std::to_string(size_bytes - std::min(used, size_bytes)));
  }
  header.size_bytes = used;
  return header;
}

Result<api::Tensor> read_npy(const ByteSource& source, std::uint64_t size_bytes, const std::string& name) {
  IO_TRY(const NpyHeader header, read_npy_header(source, size_bytes, name));
  IO_TRY(api::Tensor tensor, api::Tensor::allocate(header.dtype, header.sizes));
  IO_TRY_VOID(source(std::span(tensor.as<std::byte>(), tensor.size_bytes())));
  if (header.big_endian) swap_bytes(tensor);
  if (header.dtype == DType::boolean) {
    // Any byte but 0 is true to NumPy; a tensor holds 0 and 1 only.
    for (auto& byte : std::span(tensor.as<std::uint8_t>(), tensor.size_bytes())) byte = byte != 0 ? 1 : 0;
  }
  return header.fortran && header.sizes.size() > 1 ? from_fortran(tensor) : tensor;
}

Result<api::Tensor> read_npy_file(const std::string& path) {
  IO_TRY(const File file, open_file(path));
  const long end = std::fseek(file.get(), 0, SEEK_END) == 0 ? std::ftell(file.get()) : -1;
  if (end < 0 || end == LONG_MAX)
    return Error{ErrorCode::io, "'" + path + "' is not a regular file.", "Give the path of a file."};
  std::rewind(file.get());
  const ByteSource source = [&](std::span<std::byte> bytes) -> Result<void> {
    if (std::fread(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) {
      return refuse(path, "it ends too early", "Copy or write the file again.");
    }
    return {};
  };
  return read_npy(source, static_cast<std::uint64_t>(end), path);
}

std::string npy_header(DType dtype, const std::vector<std::int64_t>& sizes) {
  std::string shape;
  for (const std::int64_t size : sizes) shape += std::to_string(size) + ", ";
  if (sizes.size() > 1) shape.resize(shape.size() - 2);
  if (sizes.size() == 1) shape.pop_back();
  std::string text = "{'descr': '" + npy_code(dtype) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // The elements begin at a multiple of 64.
  const std::size_t used = magic.size() + 4 + text.size() + 1;
  text.append((64 - used % 64) % 64, ' ');
  text += '\n';
  std::string out = std::string(magic) + '\x01' + '\0';
  out += static_cast<char>(text.size() & 255);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

Result<NpyImage> make_npy(const api::Tensor& tensor) {
  NpyImage out;
  out.elements = tensor;
  if (tensor.dtype() == DType::bf16) {
    IO_TRY(out.elements, api::Tensor::allocate(DType::f32, tensor.sizes()));
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      out.elements.as<float>()[i] =
          std::bit_cast<float>(static_cast<std::uint32_t>(tensor.as<std::uint16_t>()[i]) << 16);
    }
  }
  out.header = npy_header(out.elements.dtype(), tensor.sizes());
  return out;
}

Result<void> write_npy_file(const std::string& path, const api::Tensor& tensor) {
  IO_TRY(const NpyImage image, make_npy(tensor));
  return write_whole_file(path, {image.header, {image.elements.as<char>(), image.elements.size_bytes()}});
}

}  // namespace polyphase::io

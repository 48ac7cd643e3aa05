// Arrays as NumPy writes them; of the header's literal just the three keys that NumPy writes are accepted.
#include "wire/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/shape.h"

namespace polyphase::wire {
namespace {

constexpr std::string_view npy_magic("\x93NUMPY", 6);
constexpr std::size_t longest_npy_header = 1 << 16;

struct NpyName {
  std::string_view code;  // without the order of bytes
  DType dtype;
};
constexpr std::array npy_names = {NpyName{"f4", DType::f32},     NpyName{"f8", DType::f64}, NpyName{"f2", DType::f16},
                                  NpyName{"b1", DType::boolean}, NpyName{"i1", DType::i8},  NpyName{"u1", DType::u8},
                                  NpyName{"i2", DType::i16},     NpyName{"u2", DType::u16}, NpyName{"i4", DType::i32},
                                  NpyName{"u4", DType::u32},     NpyName{"i8", DType::i64}, NpyName{"u8", DType::u64},
                                  NpyName{"V2", DType::bf16}};  // what NumPy makes of ml_dtypes.bfloat16

Error npy_damaged(const std::string& what) {
  return {ErrorCode::corrupt, "the .npy array " + what + ".", "Write it again with numpy.save or numpy.savez."};
}

std::optional<DType> npy_dtype_of(std::string_view descr) {
  const bool has_order = !descr.empty() && std::string_view("<>|=").find(descr.front()) != std::string_view::npos;
  const std::string_view code = descr.substr(has_order ? 1 : 0);
  const auto* found =
      std::find_if(npy_names.begin(), npy_names.end(), [&](const NpyName& one) { return one.code == code; });
  if (found == npy_names.end() || (descr.front() == '>' && size_bytes(found->dtype) > 1)) return std::nullopt;
  return found->dtype;
}

// {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 8), }
class NpyHeaderReader {
 public:
  explicit NpyHeaderReader(std::string_view text) : text_(text) {}

  Result<NpyArray> read() {
    NpyArray out;
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    if (!take('{')) return lacks("'{'");
    while (!take('}')) {
      TRY(const std::string key, word());
      if (!take(':')) return lacks("':'");
      bool* const seen = key == "descr"           ? &has_descr
                         : key == "fortran_order" ? &has_order
                         : key == "shape"         ? &has_shape
                                                  : nullptr;
      if (seen == nullptr || *seen)
        return npy_damaged("has a header of other keys than descr, fortran_order and shape");
      *seen = true;
      if (key == "descr") {
        TRY(out.dtype_name, descr());
      } else if (key == "shape") {
        TRY(out.sizes, shape());
      } else {
        TRY(out.is_column_major, truth());
      }
      if (!take(',') && !peek('}')) return lacks("',' or '}'");
    }
    if (!has_descr || !has_order || !has_shape) return lacks("descr, fortran_order and shape");
    out.dtype = npy_dtype_of(out.dtype_name);
    return out;
  }

 private:
  Error lacks(const std::string& what) const {
    return npy_damaged("has a header that lacks " + what + " at character " + std::to_string(at_ + 1));
  }
  bool peek(char one) {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() && text_[at_] == one;
  }
  bool take(char one) {
    if (!peek(one)) return false;
    ++at_;
    return true;
  }
  Result<std::string> word() {
    const char mark = peek('"') ? '"' : '\'';
    const std::size_t end = take(mark) ? text_.find(mark, at_) : std::string_view::npos;
    if (end == std::string_view::npos) return lacks("a quoted word");
    std::string out(text_.substr(at_, end - at_));
    at_ = end + 1;
    return out;
  }
  // Of a structured array a list, whose text nobody reads further.
  Result<std::string> descr() {
    if (!peek('[')) return word();
    const std::size_t end = text_.find(']', at_);
    if (end == std::string_view::npos) return lacks("']'");
    std::string out(text_.substr(at_, std::min<std::size_t>(end + 1 - at_, 60)));
    at_ = end + 1;
    return out;
  }
  Result<bool> truth() {
    peek(' ');
    for (const std::string_view one : {"True", "False"}) {
      if (text_.substr(at_, one.size()) != one) continue;
      at_ += one.size();
      return one == "True";
    }
    return lacks("True or False");
  }
  Result<std::vector<std::int64_t>> shape() {
    std::vector<std::int64_t> sizes;
    if (!take('(')) return lacks("'('");
    while (!take(')')) {
      peek(' ');
      std::int64_t size = -1;
      const auto [end, failure] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (failure != std::errc() || size < 0) return lacks("a size of 0 or more");
      at_ = static_cast<std::size_t>(end - text_.data());
      sizes.push_back(size);
      if (!take(',') && !peek(')')) return lacks("',' or ')'");
    }
    return sizes;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<NpyArray> read_npy(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.size() < 12 || text.substr(0, npy_magic.size()) != npy_magic) return npy_damaged("does not begin as one");
  const int version = std::to_integer<int>(file[6]);
  if (version < 1 || version > 3) return npy_damaged("is of version " + std::to_string(version) + " of the format");
  const std::size_t digits = version == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t i = 0; i < digits; ++i) length |= std::to_integer<std::size_t>(file[8 + i]) << (8 * i);
  const std::size_t first = 8 + digits;
  if (length > longest_npy_header || length > text.size() - first) return npy_damaged("ends inside of its header");
  TRY(NpyArray out, NpyHeaderReader(text.substr(first, length)).read());
  if (!out.dtype.has_value()) return out;
  const std::size_t left = text.size() - first - length;
  const bool is_empty = std::find(out.sizes.begin(), out.sizes.end(), 0) != out.sizes.end();
  std::size_t bytes = is_empty ? 0 : size_bytes(*out.dtype);
  for (const std::int64_t size : out.sizes) {
    if (is_empty) break;
    if (bytes > left / static_cast<std::size_t>(size)) return npy_damaged("has fewer elements than its shape");
    bytes *= static_cast<std::size_t>(size);
  }
  if (bytes > left) return npy_damaged("has fewer elements than its shape");  // of a number
  out.elements = file.subspan(first + length, bytes);
  return out;
}

}  // namespace polyphase::wire

// The header of safetensors, compared with the file's length.
#include "wire/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "wire/printable.h"

namespace polyphase::wire {
namespace {

using nlohmann::json;

// The format's own limit.
constexpr std::uint64_t longest_header = 100'000'000;

Error damaged_safetensors(const std::string& what) {
  return {ErrorCode::corrupt, what + ".", "Copy the file again, or write it again with safetensors.save_file."};
}

struct KnownDType {
  std::string_view name;
  DType dtype;
};
constexpr KnownDType known_dtypes[] = {{"F64", DType::f64},   {"F32", DType::f32},        {"F16", DType::f16},
                                       {"BF16", DType::bf16}, {"F8_E4M3", DType::f8e4m3}, {"F8_E5M2", DType::f8e5m2},
                                       {"I64", DType::i64},   {"U64", DType::u64},        {"I32", DType::i32},
                                       {"U32", DType::u32},   {"I16", DType::i16},        {"U16", DType::u16},
                                       {"I8", DType::i8},     {"U8", DType::u8},          {"BOOL", DType::boolean}};

std::optional<DType> dtype_of(const std::string& name) {
  for (const KnownDType& one : known_dtypes) {
    if (one.name == name) return one.dtype;
  }
  return std::nullopt;
}

// A parser's callback that notes names which stand twice in one object.
class Repetitions {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    const auto level = static_cast<std::size_t>(depth);
    if (keys_.size() <= level + 1) keys_.resize(level + 2);
    if (event == json::parse_event_t::object_start) keys_[level + 1].clear();
    if (event == json::parse_event_t::key && !keys_[level].insert(parsed.get<std::string>()).second && found.empty())
      found = parsed.get<std::string>();
    return true;
  }
  std::string found;

 private:
  std::vector<std::set<std::string>> keys_;
};

// Whole numbers of 0 or more, below 2^63.
std::optional<std::vector<std::int64_t>> naturals(const json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array()) return std::nullopt;
  std::vector<std::int64_t> out;
  for (const json& one : *found) {
    if (!one.is_number_unsigned() || one.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
    out.push_back(one.get<std::int64_t>());
  }
  return out;
}

Result<SafeTensor> read_entry(const std::string& name, const json& entry, std::span<const std::byte> data) {
  const std::string shown = "tensor " + quoted_name(name);
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string())
    return damaged_safetensors(shown + " of the file has no dtype");
  SafeTensor out{name, entry["dtype"].get<std::string>(), std::nullopt, {}, {}};
  out.dtype = dtype_of(out.dtype_name);
  auto sizes = naturals(entry, "shape");
  if (!sizes.has_value())
    return damaged_safetensors(shown + " of the file has no shape, or one that is no list of sizes");
  out.sizes = std::move(*sizes);
  const auto offsets = naturals(entry, "data_offsets");
  if (!offsets.has_value() || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1] ||
      static_cast<std::uint64_t>((*offsets)[1]) > data.size()) {
    return damaged_safetensors(shown + " has elements outside of the file, which has " + std::to_string(data.size()) +
                               " bytes of them");
  }
  out.elements =
      data.subspan(static_cast<std::size_t>((*offsets)[0]), static_cast<std::size_t>((*offsets)[1] - (*offsets)[0]));
  if (!out.dtype.has_value()) return out;
  std::uint64_t bytes = size_bytes(*out.dtype);
  for (const std::int64_t size : out.sizes) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes))
      return damaged_safetensors(shown + " has a shape beyond 64-bit arithmetic");
  }
  if (bytes == out.elements.size()) return out;
  return damaged_safetensors(shown + " has " + std::to_string(out.elements.size()) + " bytes; its dtype " +
                             out.dtype_name + " and its shape need " + std::to_string(bytes));
}

// Elements follow one another and fill the file, so no byte is anybody's twice.
Result<void> check_places(std::vector<SafeTensor>& tensors, std::span<const std::byte> data) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const SafeTensor& a, const SafeTensor& b) {
    return a.elements.data() != b.elements.data() ? a.elements.data() < b.elements.data()
                                                  : a.elements.size() < b.elements.size();
  });
  const std::byte* next = data.data();
  for (const SafeTensor& tensor : tensors) {
    if (tensor.elements.data() != next) {
      return damaged_safetensors("the elements of tensor " + quoted_name(tensor.name) + " begin " +
                                 (tensor.elements.data() < next ? "inside of another tensor's" : "behind a gap"));
    }
    next += tensor.elements.size();
  }
  if (next == data.data() + data.size()) return {};
  return damaged_safetensors("the file has " + std::to_string(data.data() + data.size() - next) +
                             " bytes behind the last of its tensors");
}

}  // namespace

Result<std::vector<SafeTensor>> read_safetensors(std::span<const std::byte> file) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8 && i < file.size(); ++i)
    length |= static_cast<std::uint64_t>(std::to_integer<unsigned>(file[i])) << (8 * i);
  if (file.size() < 8 || length > file.size() - 8 || length > longest_header) {
    return damaged_safetensors("the file of " + std::to_string(file.size()) +
                               " bytes is no safetensors file: its first 8 bytes promise a header of " +
                               std::to_string(length));
  }
  const auto* text = reinterpret_cast<const char*>(file.data()) + 8;
  Repetitions repetitions;
  const json header = json::parse(
      text, text + length,
      [&](int depth, json::parse_event_t event, json& parsed) { return repetitions(depth, event, parsed); }, false);
  if (header.is_discarded() || !header.is_object())
    return damaged_safetensors("the header of the safetensors file is no JSON object");
  if (!repetitions.found.empty())
    return damaged_safetensors("the header of the safetensors file has the name " + quoted_name(repetitions.found) +
                               " twice");
  const auto data = file.subspan(8 + static_cast<std::size_t>(length));
  std::vector<SafeTensor> out;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    TRY(out.emplace_back(), read_entry(name, entry, data));
  }
  TRY_VOID(check_places(out, data));
  return out;
}

}  // namespace polyphase::wire

// What a file that is not an engine seems to be, by its first bytes: to say more than "bad magic".
#include <cstring>

#include "engine/file_header.h"

namespace polyphase {
namespace {

struct Signature {
  std::string_view bytes;
  std::string_view is;
  std::string_view hint;
};

using namespace std::string_view_literals;

constexpr std::string_view compile_it = "Compile it first: polyphase compile MODEL -o model.ppe";
constexpr Signature signatures[] = {
    {"\x89PPE"sv, "an engine whose line ends a text-mode transfer has changed, or whose first bytes are damaged",
     "Copy it again in binary mode, or compile the model again."},
    {"PK\x03\x04"sv, "a zip archive, such as a PyTorch .pt2 program or an .npz of arrays",
     "Give an engine made by polyphase compile."},
    {"\x93NUMPY"sv, "a NumPy array", "Give arrays with --input NAME=FILE.npy or --inputs FILE.npz."},
    {"\x89PNG"sv, "a PNG image", "Give images with --input NAME=FILE.png."},
    {"RIFF"sv, "a WAV file", "Give sounds with --input NAME=FILE.wav."},
    {"ftrt"sv, "a TensorRT engine", "Compile the model it was built from with polyphase compile."},
    {"ptrt"sv, "a TensorRT engine", "Compile the model it was built from with polyphase compile."},
    {"\x1f\x8b"sv, "compressed by gzip", "Decompress it with gunzip."},
    {"\x89HDF\r\n"sv, "an HDF5 file", "Export the model to ONNX."},
    {"\x7f"
     "ELF"sv,
     "a program or library (ELF)", "Give an engine made by polyphase compile."},
    {"version https://git-lfs"sv, "a pointer of Git LFS, not the file itself", "Fetch the file with git lfs pull."},
};

bool starts_with(std::span<const std::byte> file, std::string_view prefix) {
  return file.size() >= prefix.size() && std::memcmp(file.data(), prefix.data(), prefix.size()) == 0;
}

// ONNX is a protobuf message without a magic: field 1 (ir_version) is a small varint, then a field that ModelProto has.
bool looks_like_onnx(std::span<const std::byte> file) {
  if (file.size() < 4 || file[0] != std::byte{0x08} || file[1] > std::byte{0x20}) return false;
  const auto next = std::to_integer<unsigned>(file[2]);
  return next == 0x12 || next == 0x1a || next == 0x3a ||
         next == 0x42;  // producer_name, producer_version, graph, opset_import
}

bool is_text(std::span<const std::byte> file) {
  for (const std::byte byte : file.first(std::min<std::size_t>(file.size(), 256))) {
    const auto c = std::to_integer<unsigned>(byte);
    if (c < 32 && c != '\n' && c != '\r' && c != '\t') return false;
  }
  return true;
}

}  // namespace

Error refuse_foreign_file(std::span<const std::byte> file, const std::string& path) {
  const auto refuse = [&](std::string_view is, std::string_view hint) {
    return Error{ErrorCode::corrupt, "'" + path + "' is not a Polyphase engine: it is " + std::string(is) + ".",
                 std::string(hint)};
  };
  if (file.empty()) return refuse("empty", "The write may have failed: compile the model again.");
  for (const Signature& signature : signatures) {
    if (starts_with(file, signature.bytes)) return refuse(signature.is, signature.hint);
  }
  if (looks_like_onnx(file)) return refuse("an ONNX model", compile_it);
  if (is_text(file)) return refuse("text", "Give an engine made by polyphase compile.");
  return refuse("of an unknown kind", "Give an engine made by polyphase compile.");
}

}  // namespace polyphase

// Signatures of files that people give by mistake.
#include "wire/file_kind.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace polyphase::wire {
namespace {

constexpr std::string_view export_advice =
    "Export the network from Python, by torch.export.save(torch.export.export(module, inputs), \"model.pt2\") or "
    "torch.onnx.export(module, inputs, \"model.onnx\"), and give that file.";

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  std::string_view what;
  std::string_view advice;
};

using namespace std::string_view_literals;
constexpr std::array signatures = {
    Signature{0, "\x80\x02"sv, "a Python pickle (an old .pt or .pth file)", export_advice},
    Signature{0, "\x80\x03"sv, "a Python pickle", export_advice},
    Signature{0, "\x80\x04"sv, "a Python pickle", export_advice},
    Signature{0, "\x80\x05"sv, "a Python pickle", export_advice},
    Signature{0, "\x89PPE\r\n"sv, "a Polyphase engine", "It is compiled already: load it, or give its model."},
    Signature{0, "ftrt"sv, "a TensorRT engine",
              "A TensorRT engine cannot be read back; give the ONNX file that it was built from."},
    Signature{0, "ptrt"sv, "a TensorRT engine",
              "A TensorRT engine cannot be read back; give the ONNX file that it was built from."},
    Signature{0, "GGUF"sv, "a GGUF file", "It holds weights without the network; export the model as ONNX."},
    Signature{0, "\x89HDF"sv, "an HDF5 file (Keras .h5)", "Convert it to ONNX first, for example with tf2onnx."},
    Signature{4, "TFL3"sv, "a TensorFlow Lite model", "Convert it to ONNX first, for example with tf2onnx --tflite."},
    Signature{4, "ET12"sv, "an ExecuTorch program", export_advice},
    Signature{0, "\x1f\x8b"sv, "a gzip archive", "Unpack it first (gunzip) and give the .onnx file inside."},
    Signature{0, "\x28\xb5\x2f\xfd"sv, "a zstd archive", "Unpack it first (unzstd) and give the .onnx file inside."},
    Signature{0, "7z\xbc\xaf"sv, "a 7-Zip archive", "Unpack it first and give the .onnx file inside."},
    Signature{0, "\x89PNG"sv, "a PNG picture", "Give the model first; pictures are inputs (--input NAME=FILE.png)."},
    Signature{0, "\x93NUMPY"sv, "a NumPy array", "Give the model first; arrays are inputs (--input NAME=FILE.npy)."},
    Signature{0,
              "\x7f"
              "ELF"sv,
              "a program or library", "Give an .onnx file."},
    Signature{0, "version https://git-lfs"sv, "a Git LFS pointer, not the file itself",
              "Fetch the real file with git lfs pull."},
};

bool contains(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

FileKind zip_kind(std::string_view head) {
  if (contains(head, "data.pkl") || contains(head, "archive_format") || contains(head, "archive_version") ||
      contains(head, "constants.pkl") || contains(head, "byteorder") || contains(head, ".format_version")) {
    return {true, "a PyTorch archive (.pt, .pt2 or TorchScript)", std::string(export_advice)};
  }
  if (contains(head, ".npy"))
    return {true, "a NumPy archive (.npz)", "Give the model first; arrays are inputs (--inputs FILE.npz)."};
  return {true, "a zip archive", "Unpack it and give the .onnx file inside."};
}

bool looks_like_safetensors(std::string_view head) {
  if (head.size() < 9 || head[8] != '{') return false;
  return head[4] == 0 && head[5] == 0 && head[6] == 0 && head[7] == 0;  // a header below 4 GB
}

bool looks_like_text(std::string_view head) {
  return !head.empty() && std::all_of(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7f : (byte >= 9 && byte <= 13);
  });
}

}  // namespace

FileKind recognise(std::span<const std::byte> bytes) {
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 512));
  if (head.empty()) return {true, "empty", "The download or the export did not finish; get the file again."};
  if (head.starts_with("PK\x03\x04"sv) || head.starts_with("PK\x05\x06"sv)) return zip_kind(head);
  for (const Signature& signature : signatures) {
    if (head.substr(std::min(signature.offset, head.size())).starts_with(signature.bytes)) {
      return {true, std::string(signature.what), std::string(signature.advice)};
    }
  }
  if (looks_like_safetensors(head)) {
    return {true, "a safetensors file",
            "It holds weights without the network; load them into the model in Python and export that as ONNX."};
  }
  if (head.find_first_not_of('\0') == std::string_view::npos) {
    return {true, "filled with zeros", "The download or the copy did not finish; get the file again."};
  }
  if (contains(head, "ir_version:") && looks_like_text(head)) {
    return {true, "an ONNX model in protobuf's text form",
            "Convert it with onnx.save(onnx.load(FILE, format='textproto'), 'model.onnx')."};
  }
  if (looks_like_text(head)) return {false, "a text file", "Give an .onnx file."};
  return {};
}

}  // namespace polyphase::wire

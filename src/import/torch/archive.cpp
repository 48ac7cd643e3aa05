// The layout of the archive, and tensors out of storages.
#include "import/torch/archive.h"

#include <algorithm>
#include <optional>

#include "base/shape.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

constexpr const char* save_again =
    "Load it with torch.export.load in the PyTorch that wrote it, then save it with torch.export.save of PyTorch 2.9 "
    "or "
    "newer.";

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

Error damaged(std::string message) {
  return Error{ErrorCode::corrupt, std::move(message),
               "The file is damaged or not finished: copy it again, or save the program again."};
}

Result<std::int64_t> fixed(const ProgramNumber& number) {
  if (number.number.has_value()) return *number.number;
  return damaged("a weight has a symbolic size");
}

Result<std::vector<std::int64_t>> fixed(const std::vector<ProgramNumber>& numbers) {
  std::vector<std::int64_t> out;
  for (const ProgramNumber& number : numbers) {
    TRY(const std::int64_t one, fixed(number));
    out.push_back(one);
  }
  return out;
}

constexpr std::string_view format_member = "archive_format";
constexpr std::string_view old_member = "serialized_exported_program.json";

}  // namespace

namespace {

bool has_member(const wire::ZipArchive& archive, std::string_view end) {
  return std::any_of(archive.names().begin(), archive.names().end(), [&](const std::string& name) {
    return name == end || ends_with(name, std::string("/").append(end));
  });
}

// What else torch saves as a zip archive.
Error no_program(const wire::ZipArchive& archive) {
  if (has_member(archive, "constants.pkl"))
    return Error{ErrorCode::unsupported,
                 "this is a TorchScript archive (torch.jit.save), not a program of torch.export.",
                 "Export the module that it was made from: torch.export.save(torch.export.export(module, inputs), "
                 "\"model.pt2\")."};
  if (has_member(archive, "data.pkl"))
    return Error{ErrorCode::unsupported,
                 "this file of torch.save holds pickled objects, such as a state_dict, but no network.",
                 "Load it into the module in Python (load_state_dict), then save the program: "
                 "torch.export.save(torch.export.export(module, inputs), \"model.pt2\")."};
  return damaged("the archive holds no program of torch.export");
}

}  // namespace

bool is_of_torch(const wire::ZipArchive& archive) {
  return has_member(archive, format_member) || has_member(archive, old_member) || has_member(archive, "data.pkl") ||
         has_member(archive, "constants.pkl");
}

Result<ProgramArchive> ProgramArchive::open(wire::ZipArchive archive) {
  std::optional<std::string> root;
  for (const std::string& name : archive.names()) {
    if (ends_with(name, old_member))
      return Error{ErrorCode::unsupported, "this program was saved by PyTorch 2.7 or older, with pickled weights.",
                   save_again};
    if (name == format_member || ends_with(name, "/archive_format"))
      root = name.substr(0, name.size() - format_member.size());
  }
  if (!root.has_value()) return no_program(archive);
  TRY(const std::string format, archive.read_text(*root + std::string(format_member)));
  if (trimmed(format) != "pt2")
    return Error{ErrorCode::unsupported, "the archive's format is " + wire::quoted_name(trimmed(format)) + ", not pt2.",
                 "Give a program that torch.export.save wrote."};
  TRY(const std::string version, archive.read_text(*root + "archive_version"));
  if (trimmed(version) != "0")
    return Error{ErrorCode::unsupported,
                 "the archive's version is " + wire::quoted_name(trimmed(version)) + "; Polyphase reads version 0.",
                 save_again};
  if (archive.has(*root + "byteorder")) {
    TRY(const std::string order, archive.read_text(*root + "byteorder"));
    if (trimmed(order) != "little")
      return Error{ErrorCode::unsupported,
                   "the archive's numbers are " + wire::quoted_name(trimmed(order)) + "-endian.",
                   "Save the program on a machine whose numbers are little-endian."};
  }
  std::vector<std::string> models;
  const std::string folder = *root + "models/";
  for (const std::string& name : archive.names()) {
    if (name.rfind(folder, 0) == 0 && ends_with(name, ".json"))
      models.push_back(name.substr(folder.size(), name.size() - folder.size() - 5));
  }
  if (models.size() != 1) {
    return Error{ErrorCode::unsupported,
                 models.empty() ? std::string("the archive holds no program, only compiled code.")
                                : "the archive holds " + std::to_string(models.size()) + " programs.",
                 "Save one program with torch.export.save(torch.export.export(model, inputs), \"model.pt2\")."};
  }
  ProgramArchive out(std::move(archive), *root, models.front());
  TRY_VOID(out.read_lists());
  return out;
}

Result<void> ProgramArchive::read_lists() {
  struct Kind {
    const char* folder;
    const char* list;
  };
  for (const Kind& kind :
       {Kind{"data/weights/", "_weights_config.json"}, Kind{"data/constants/", "_constants_config.json"}}) {
    const std::string list = root_ + kind.folder + name_ + kind.list;
    if (archive_.has(root_ + kind.folder + name_ + ".pt"))
      return Error{ErrorCode::unsupported, "this program was saved by PyTorch 2.8, with pickled weights.", save_again};
    if (!archive_.has(list)) continue;
    TRY(const std::string json, archive_.read_text(list));
    TRY(auto found, read_payloads(json));
    for (auto& [target, payload] : found) {
      payload.path_name = root_ + kind.folder + payload.path_name;
      payloads_.emplace(target, std::move(payload));
    }
  }
  return {};
}

Result<TorchProgram> ProgramArchive::program() const {
  TRY(const std::string json, archive_.read_text(root_ + "models/" + name_ + ".json"));
  return read_program(json);
}

Result<std::shared_ptr<Buffer>> ProgramArchive::storage(const std::string& path) {
  const auto found = storages_.find(path);
  if (found != storages_.end()) return found->second;
  TRY(auto buffer, archive_.read(path));
  storages_.emplace(path, buffer);
  return buffer;
}

Result<Tensor> ProgramArchive::tensor(const std::string& target) {
  const auto found = payloads_.find(target);
  if (found == payloads_.end()) return damaged("the archive does not hold the weight " + wire::quoted_name(target));
  const ProgramPayload& payload = found->second;
  const std::string shown = "weight " + wire::quoted_name(target);
  if (payload.use_pickle)
    return Error{ErrorCode::unsupported, shown + " is an object of Python, not a plain tensor.",
                 "Replace it by a plain tensor before the export."};
  constexpr std::int64_t strided = 7;
  if (payload.tensor.layout != strided)
    return Error{ErrorCode::unsupported, shown + " is not strided (sparse or of another library).",
                 "Make it dense before the export."};
  TRY(const DType dtype, dtype_of_scalar_type(payload.tensor.scalar_type));
  TRY(const std::vector<std::int64_t> sizes, fixed(payload.tensor.sizes));
  TRY(const std::vector<std::int64_t> strides, fixed(payload.tensor.strides));
  TRY(const std::int64_t offset, fixed(payload.tensor.storage_offset));
  if (sizes.size() != strides.size() || sizes.size() > static_cast<std::size_t>(max_rank))
    return damaged(shown + " has " + std::to_string(sizes.size()) + " sizes and " + std::to_string(strides.size()) +
                   " strides");
  TRY(const auto bytes, storage(payload.path_name));
  const auto element = static_cast<std::int64_t>(size_bytes(dtype));
  const auto available = static_cast<std::int64_t>(bytes->size_bytes()) / element;
  // The last element that a stride reaches, each sum checked: the numbers come from the file.
  std::int64_t last = offset;
  bool empty = false;
  bool sound = offset >= 0 && offset <= available;
  for (std::size_t i = 0; i < sizes.size() && sound; ++i) {
    sound = sizes[i] >= 0 && strides[i] >= 0;
    if (!sound || sizes[i] == 0) {
      empty = true;
      continue;
    }
    std::int64_t step = 0;
    sound = !__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) && !__builtin_add_overflow(last, step, &last);
  }
  if (!sound || (!empty && last >= available))
    return damaged(shown + " reaches beyond its storage of " + std::to_string(bytes->size_bytes()) + " bytes");
  TensorDesc desc = TensorDesc::row_major(dtype, sizes);
  std::copy(strides.begin(), strides.end(), desc.strides.begin());
  const TensorView in_file(desc, bytes->data() + offset * element);
  if (desc.is_row_major()) return Tensor(bytes, in_file);
  // A small storage can stand for a huge tensor by strides of 0.
  if (desc.element_count() > available)
    return Error{ErrorCode::unsupported, shown + " repeats its elements by strides of 0.",
                 "Call contiguous() on it before the export."};
  TRY(Tensor tensor, Tensor::allocate(dtype, sizes));
  copy_elements(in_file, tensor.view());
  return tensor;
}

}  // namespace polyphase

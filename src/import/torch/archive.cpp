// The layout of the archive, and tensors out of storages.
#include "import/torch/archive.h"

#include <algorithm>
#include <optional>

#include "import/torch/import_torch.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

constexpr const char* save_by_current =
    "Load it with torch.export.load in the PyTorch that wrote it, then save it with torch.export.save of a current "
    "one.";

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

Result<std::int64_t> fixed(const ProgramNumber& number) {
  if (number.number.has_value()) return *number.number;
  return damaged_archive("a weight has a symbolic size");
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
constexpr const char* flat_member = "serialized_exported_program.json";

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
  return damaged_archive("the archive holds no program of torch.export");
}

}  // namespace

bool is_of_torch(const wire::ZipArchive& archive) {
  return has_member(archive, format_member) || has_member(archive, flat_member) || has_member(archive, "data.pkl") ||
         has_member(archive, "constants.pkl");
}

Result<ProgramArchive> ProgramArchive::open(wire::ZipArchive archive) {
  std::optional<std::string> root;
  for (const std::string& name : archive.names()) {
    if (name == format_member || ends_with(name, "/archive_format"))
      root = name.substr(0, name.size() - format_member.size());
    if (name == flat_member) {  // the layout of PyTorch 2.7 and older, which has no root
      ProgramArchive out(std::move(archive), "", "model");
      out.program_member_ = flat_member;
      TRY_VOID(out.read_pickled("serialized_state_dict.pt", out.pickled_weights_));
      TRY_VOID(out.read_pickled("serialized_constants.pt", out.pickled_constants_));
      return out;
    }
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
                 save_by_current};
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
  out.program_member_ = folder + models.front() + ".json";
  TRY_VOID(out.read_lists());
  return out;
}

Result<void> ProgramArchive::read_lists() {
  struct Kind {
    const char* folder;
    const char* list;
    std::optional<PickledTensors>& pickled;
  };
  for (const Kind& kind : {Kind{"data/weights/", "_weights_config.json", pickled_weights_},
                           Kind{"data/constants/", "_constants_config.json", pickled_constants_}}) {
    const std::string list = root_ + kind.folder + name_ + kind.list;
    TRY_VOID(read_pickled(root_ + kind.folder + name_ + ".pt", kind.pickled));
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

// PyTorch writes no bytes at all where there is nothing to pickle.
Result<void> ProgramArchive::read_pickled(const std::string& member, std::optional<PickledTensors>& into) {
  if (!archive_.has(member)) return {};
  TRY(auto bytes, archive_.read(member));
  if (bytes->size_bytes() == 0) return {};
  auto tensors = PickledTensors::open(std::move(bytes));
  if (!tensors.ok()) return std::move(tensors).error().within("member " + wire::quoted_name(member));
  into.emplace(std::move(tensors).value());
  return {};
}

Result<TorchProgram> ProgramArchive::program() const {
  TRY(const std::string json, archive_.read_text(program_member_));
  return read_program(json);
}

Result<std::shared_ptr<Buffer>> ProgramArchive::storage(const std::string& path) {
  const auto found = storages_.find(path);
  if (found != storages_.end()) return found->second;
  TRY(auto buffer, archive_.read(path));
  storages_.emplace(path, buffer);
  return buffer;
}

namespace {

// Complex numbers become pairs on a last axis of 2.
Result<void> count_in_parts(StoredLayout& layout, const std::string& shown) {
  bool wild = __builtin_mul_overflow(layout.offset, 2, &layout.offset);
  for (std::int64_t& stride : layout.strides) wild = __builtin_mul_overflow(stride, 2, &stride) || wild;
  if (wild) return damaged_archive(shown + " reaches beyond its storage");
  layout.sizes.push_back(2);
  layout.strides.push_back(1);
  return {};
}

}  // namespace

Result<Tensor> ProgramArchive::tensor(const std::string& target) {
  for (auto* const pickled : {&pickled_weights_, &pickled_constants_}) {
    if (pickled->has_value() && (*pickled)->has(target)) return (*pickled)->tensor(target);
  }
  const auto found = payloads_.find(target);
  if (found == payloads_.end())
    return damaged_archive("the archive does not hold the weight " + wire::quoted_name(target) + " as a tensor");
  const ProgramPayload& payload = found->second;
  const std::string shown = "weight " + wire::quoted_name(target);
  if (payload.use_pickle)
    return Error{ErrorCode::unsupported, shown + " is an object of Python, not a plain tensor.",
                 "Replace it by a plain tensor before the export."};
  constexpr std::int64_t strided = 7;
  if (payload.tensor.layout != strided)
    return Error{ErrorCode::unsupported, shown + " is not strided (sparse or of another library).",
                 "Make it dense before the export."};
  StoredLayout layout;
  TRY(layout.dtype, dtype_of_parts(payload.tensor.scalar_type));
  TRY(layout.sizes, fixed(payload.tensor.sizes));
  TRY(layout.strides, fixed(payload.tensor.strides));
  TRY(layout.offset, fixed(payload.tensor.storage_offset));
  if (is_complex_type(payload.tensor.scalar_type)) {
    TRY_VOID(count_in_parts(layout, shown));
  }
  TRY(const auto bytes, storage(payload.path_name));
  return tensor_in_storage(bytes, layout, shown);
}

std::string ProgramArchive::place_of(const std::string& target) const {
  const ProgramPayload& payload = payloads_.at(target);
  std::string out = payload.path_name + " " + std::to_string(payload.tensor.scalar_type);
  const auto add = [&](const ProgramNumber& number) { out += " " + std::to_string(number.number.value_or(-1)); };
  for (const ProgramNumber& size : payload.tensor.sizes) add(size);
  for (const ProgramNumber& stride : payload.tensor.strides) add(stride);
  add(payload.tensor.storage_offset);
  return out;
}

}  // namespace polyphase

// Parsing within limits, and the search for the reason when it fails.
#include "wire/onnx_model.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <google/protobuf/io/coded_stream.h>
#include "onnx/onnx.pb.h"
#include "wire/file_kind.h"
#include "wire/regular_file.h"

namespace polyphase::wire {

void ModelDeleter::operator()(onnx::ModelProto* model) const { delete model; }

namespace {

Error foreign(const FileKind& kind) {
  const std::string what =
      kind.what == "empty" || kind.what == "filled with zeros" ? kind.what : kind.what + ", not an ONNX model";
  return Error{ErrorCode::corrupt, "the file is " + what + ".", kind.advice};
}

// Walks the outermost fields, whose lengths must add up to the file: says where the bytes end too early.
std::optional<std::string> find_truncation(std::span<const std::byte> bytes) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  const int total = static_cast<int>(bytes.size());
  while (stream.CurrentPosition() < total) {
    const int start = stream.CurrentPosition();
    const std::uint32_t tag = stream.ReadTag();
    if (tag == 0) return std::nullopt;
    std::uint64_t value = 0;
    std::uint32_t length = 0;
    switch (tag & 7U) {
      case 0:
        if (!stream.ReadVarint64(&value)) return "the number at byte " + std::to_string(start) + " does not end";
        break;
      case 1:
        if (!stream.Skip(8)) return "the field at byte " + std::to_string(start) + " is cut off";
        break;
      case 2: {
        if (!stream.ReadVarint32(&length)) return "the length at byte " + std::to_string(start) + " does not end";
        const int left = total - stream.CurrentPosition();
        if (length > static_cast<std::uint32_t>(left)) {
          return "field " + std::to_string(tag >> 3U) + " at byte " + std::to_string(start) + " claims " +
                 std::to_string(length) + " bytes, but only " + std::to_string(left) + " are left";
        }
        stream.Skip(static_cast<int>(length));
        break;
      }
      case 5:
        if (!stream.Skip(4)) return "the field at byte " + std::to_string(start) + " is cut off";
        break;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

Error explain_failure(std::span<const std::byte> bytes, const FileKind& kind) {
  if (!kind.what.empty()) return foreign(kind);
  if (const auto cut = find_truncation(bytes); cut.has_value()) {
    return Error{
        ErrorCode::corrupt,
        "the ONNX file is truncated or damaged: " + *cut + " (" + std::to_string(bytes.size()) + " bytes in all).",
        "Download or export it again."};
  }
  return Error{ErrorCode::corrupt,
               "the bytes are not a sound ONNX model: a field inside breaks protobuf's rules, or subgraphs are nested "
               "more than " +
                   std::to_string(max_message_depth / 3) + " deep.",
               "Check the file with onnx.checker.check_model; download or export it again."};
}

Result<ModelPointer> parse(std::span<const std::byte> bytes) {
  if (static_cast<std::int64_t>(bytes.size()) > max_model_bytes) {
    return Error{ErrorCode::unsupported,
                 "the ONNX file has " + std::to_string(bytes.size()) + " bytes; protobuf allows at most " +
                     std::to_string(max_model_bytes) + ".",
                 "Save the weights beside it: onnx.save(model, FILE, save_as_external_data=True)."};
  }
  const FileKind kind = recognise(bytes);
  if (kind.surely_foreign) return foreign(kind);
  ModelPointer model(new onnx::ModelProto);
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(static_cast<int>(max_model_bytes));
  stream.SetRecursionLimit(max_message_depth);
  if (!model->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) return explain_failure(bytes, kind);
  if (!model->has_graph()) {
    if (!kind.what.empty()) return foreign(kind);
    return Error{ErrorCode::invalid_model,
                 "the file parses as protobuf, but it holds no graph, so it is not an ONNX model.",
                 "Give an .onnx file; check it with onnx.checker.check_model."};
  }
  return model;
}

// f, with what protobuf and the system may throw as Errors.
template <typename F>
auto without_throwing(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "there is not enough memory to read the ONNX model.",
                 "Use a machine with more memory."};
  } catch (const std::exception& problem) {
    return Error{ErrorCode::corrupt, std::string("the ONNX model cannot be read: ") + problem.what() + ".",
                 "Export it again."};
  }
}

Result<std::shared_ptr<RegularFile>> open_model(const std::filesystem::path& path) {
  TRY(auto file, RegularFile::open(path));
  if (file->size_bytes() <= max_model_bytes) return file;
  return Error{ErrorCode::unsupported,
               "the file has " + std::to_string(file->size_bytes()) + " bytes; an ONNX file has at most " +
                   std::to_string(max_model_bytes) + ".",
               "Save the weights beside it: onnx.save(model, FILE, save_as_external_data=True)."};
}

using MaybeModel = std::optional<ModelApart>;

// Nothing: the model must be read whole, were it only to say what is wrong with it.
Result<MaybeModel> parse_skeleton(const ModelBytes& model) {
  if (model.size_bytes > max_model_bytes) return MaybeModel();
  std::vector<std::byte> head(static_cast<std::size_t>(std::min<std::int64_t>(model.size_bytes, 512)));
  TRY_VOID(model.read(0, head));
  if (recognise(head).surely_foreign) return MaybeModel();
  TRY(MaybeSkeleton skeleton, skeleton_of(model));
  if (!skeleton.has_value()) return MaybeModel();
  auto parsed = parse(std::as_bytes(std::span(skeleton->bytes)));
  if (!parsed.ok()) return MaybeModel();
  ModelApart out{std::move(parsed).value(), {}};
  for (auto& [place, data] : skeleton->initializers)
    out.data.emplace(&out.model->graph().initializer(place), std::move(data));
  return MaybeModel(std::move(out));
}

}  // namespace

Result<ModelPointer> parse_model(std::span<const std::byte> bytes) {
  return without_throwing([&] { return parse(bytes); });
}

Result<ModelPointer> read_model(const std::filesystem::path& path) {
  TRY(const auto file, open_model(path));
  TRY(const auto bytes, file->read(0, file->size_bytes()));
  return parse_model({bytes->data(), bytes->size_bytes()});
}

Result<ModelApart> parse_model_apart(std::span<const std::byte> bytes) {
  return without_throwing([&]() -> Result<ModelApart> {
    const auto read = [&](std::int64_t offset, std::span<std::byte> out) -> Result<void> {
      if (!out.empty()) std::memcpy(out.data(), bytes.data() + offset, out.size());
      return {};
    };
    TRY(auto apart, parse_skeleton({static_cast<std::int64_t>(bytes.size()), read}));
    if (apart.has_value()) return std::move(*apart);
    TRY(auto model, parse(bytes));
    return ModelApart{std::move(model), {}};
  });
}

Result<ModelApart> read_model_apart(const std::filesystem::path& path) {
  TRY(const auto file, open_model(path));
  return without_throwing([&]() -> Result<ModelApart> {
    const auto read = [&](std::int64_t offset, std::span<std::byte> out) { return file->read_into(offset, out); };
    TRY(auto apart, parse_skeleton({file->size_bytes(), read}));
    if (apart.has_value()) return std::move(*apart);
    TRY(const auto bytes, file->read(0, file->size_bytes()));
    TRY(auto model, parse({bytes->data(), bytes->size_bytes()}));
    return ModelApart{std::move(model), {}};
  });
}

}  // namespace polyphase::wire

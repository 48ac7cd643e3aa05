// Reading external_data entries: the keys are free strings from the file, so each is checked.
#include "wire/external_data.h"

#include <charconv>

#include "onnx/onnx.pb.h"
#include "wire/printable.h"

namespace polyphase::wire {
namespace {

struct Place {
  std::string location;
  std::int64_t offset = 0;
  std::optional<std::int64_t> length;
};

Error refuse(std::string message) {
  return Error{ErrorCode::invalid_model, std::move(message),
               "Save the model again with onnx.save(model, FILE, save_as_external_data=True)."};
}

Result<std::int64_t> number(const std::string& key, const std::string& text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < 0) {
    return refuse("external data: " + key + " is " + quoted_name(text) + "; it must be a whole number, 0 or more.");
  }
  return value;
}

Result<Place> place_named(const onnx::TensorProto& tensor) {
  Place place;
  bool seen_location = false;
  bool seen_offset = false;
  for (const auto& entry : tensor.external_data()) {
    const std::string& key = entry.key();
    if (key == "location") {
      if (std::exchange(seen_location, true)) return refuse("external data: the key 'location' is there twice.");
      place.location = entry.value();
    } else if (key == "offset") {
      if (std::exchange(seen_offset, true)) return refuse("external data: the key 'offset' is there twice.");
      TRY(place.offset, number(key, entry.value()));
    } else if (key == "length") {
      if (place.length.has_value()) return refuse("external data: the key 'length' is there twice.");
      TRY(place.length, number(key, entry.value()));
    } else if (key != "checksum") {
      return refuse("external data: the key " + quoted_name(key) +
                    " is unknown; ONNX has location, offset, length and checksum.");
    }
  }
  if (!seen_location) return refuse("external data: the key 'location' (the file with the weights) is missing.");
  return place;
}

}  // namespace

std::shared_ptr<Buffer> ExternalData::take_set_apart(const onnx::TensorProto& tensor) {
  auto found = set_apart_.extract(&tensor);
  return found.empty() ? nullptr : std::move(found.mapped());
}

Result<ExternalData::OpenFile*> ExternalData::open(const std::string& location) {
  const auto found = files_.find(location);
  if (found != files_.end()) return &found->second;
  if (files_.size() >= 4096) return refuse("external data: the weights lie in more than 4096 files.");
  TRY(auto file, RegularFile::open_below(*folder_, location));
  return &files_.emplace(location, OpenFile{std::move(file), 0}).first->second;
}

Result<std::shared_ptr<Buffer>> ExternalData::read(const onnx::TensorProto& tensor, std::int64_t size_bytes) {
  TRY(const Place place, place_named(tensor));
  if (!folder_.has_value()) {
    return Error{ErrorCode::unsupported,
                 "the weights lie in the file " + quoted_name(place.location) +
                     " beside the model, but the model was given as bytes without a folder.",
                 "Give the path of the model, or save it with its weights inside."};
  }
  TRY(OpenFile * open_file, open(place.location));
  const std::int64_t file_bytes = open_file->file->size_bytes();
  if (place.length.has_value() && *place.length != size_bytes) {
    return refuse("external data: length is " + std::to_string(*place.length) +
                  " bytes, but the tensor's type and shape need " + std::to_string(size_bytes) + ".");
  }
  if (place.offset > file_bytes || size_bytes > file_bytes - place.offset) {
    return Error{ErrorCode::corrupt,
                 "external data: " + std::to_string(size_bytes) + " bytes at offset " + std::to_string(place.offset) +
                     " lie beyond the end of " + quoted_name(place.location) + ", which has " +
                     std::to_string(file_bytes) + " bytes.",
                 "The file is truncated or belongs to another model: fetch it again."};
  }
  auto& region = regions_[{place.location, place.offset, size_bytes}];
  if (region == nullptr) {
    if (size_bytes > 2 * file_bytes - open_file->read_bytes) {
      return refuse("external data: the tensors in " + quoted_name(place.location) +
                    " overlap, and together they are more than twice the file.");
    }
    TRY(region, open_file->file->read(place.offset, size_bytes));
    open_file->read_bytes += size_bytes;
  }
  return region;
}

}  // namespace polyphase::wire

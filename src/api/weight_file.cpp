// Tensors by name out of safetensors files and archives of NumPy's.
#include "polyphase/weight_file.h"

#include <map>
#include <mutex>

#include "api/state.h"
#include "engine/mapped_file.h"
#include "wire/npy.h"
#include "wire/printable.h"
#include "wire/safetensors.h"
#include "wire/zip_archive.h"

namespace polyphase::api {

struct WeightFile::State {
  std::string path;
  std::shared_ptr<Buffer> bytes;
  std::vector<wire::SafeTensor> tensors;    // of a safetensors file
  std::optional<wire::ZipArchive> archive;  // or members NAME.npy
  std::vector<std::string> names;
  std::map<std::string, std::size_t, std::less<>> places;  // in both
  mutable std::mutex reading;                              // of the archive
};

namespace {

constexpr std::string_view suffix = ".npy";

bool is_archive(const Buffer& file) {
  return file.size_bytes() >= 2 && std::to_integer<char>(file.data()[0]) == 'P' &&
         std::to_integer<char>(file.data()[1]) == 'K';
}

Result<std::vector<std::string>> arrays_in(const wire::ZipArchive& archive) {
  std::vector<std::string> out;
  for (const std::string& name : archive.names()) {
    if (name.size() <= suffix.size() || !std::string_view(name).ends_with(suffix)) {
      return Error{ErrorCode::invalid_model, "the archive is no .npz: it has a member " + wire::quoted_name(name) + ".",
                   "Write the weights with numpy.savez, or with safetensors.torch.save_file."};
    }
    out.push_back(name.substr(0, name.size() - suffix.size()));
  }
  return out;
}

Error cannot_hold(const std::string& shown, const std::string& path, const std::string& dtype) {
  return {ErrorCode::unsupported, "tensor " + shown + " of '" + path + "' is of type " + wire::printable(dtype) + ".",
          "Convert it to float32 before it is saved."};
}

Result<Tensor> copy_of(DType dtype, const std::vector<std::int64_t>& sizes, std::span<const std::byte> elements) {
  TRY(Tensor copy, Tensor::allocate(dtype, sizes));
  std::copy(elements.begin(), elements.end(), copy.as<std::byte>());
  return copy;
}

Result<Tensor> tensor_of(const std::shared_ptr<Buffer>& file, const std::string& shown, const std::string& path) {
  auto read = wire::read_npy({file->data(), file->size_bytes()});
  if (!read.ok()) return std::move(read).error().within("while reading " + shown + " of " + path);
  if (!read->dtype.has_value()) return cannot_hold(shown, path, read->dtype_name);
  std::vector<std::int64_t> strides;
  if (read->is_column_major && !read->elements.empty()) {
    std::int64_t stride = 1;
    for (const std::int64_t size : read->sizes) {
      strides.push_back(stride);
      stride *= size;
    }
  }
  TensorView view{*read->dtype, read->sizes, std::move(strides), const_cast<std::byte*>(read->elements.data())};
  if (reinterpret_cast<std::uintptr_t>(view.data) % size_bytes(view.dtype) == 0 || read->elements.empty())
    return Tensor::borrow(std::move(view), file);
  if (!read->is_column_major) return copy_of(view.dtype, view.sizes, read->elements);
  return Error{ErrorCode::unsupported, "tensor " + shown + " of '" + path + "' lies at an odd place.",
               "Write the archive again with numpy.savez."};
}

}  // namespace

Result<WeightFile> WeightFile::open(const std::string& path) {
  return without_throwing([&]() -> Result<WeightFile> {
    auto state = std::make_shared<State>();
    state->path = path;
    TRY(state->bytes, map_file(path));
    const std::span<const std::byte> bytes(state->bytes->data(), state->bytes->size_bytes());
    if (is_archive(*state->bytes)) {
      auto archive = wire::ZipArchive::of_bytes(bytes);
      if (!archive.ok()) return std::move(archive).error().within("while reading " + path);
      auto names = arrays_in(*archive);
      if (!names.ok()) return std::move(names).error().within("while reading " + path);
      state->archive = std::move(*archive);
      state->names = std::move(*names);
    } else {
      auto tensors = wire::read_safetensors(bytes);
      if (!tensors.ok()) return std::move(tensors).error().within("while reading " + path);
      state->tensors = std::move(*tensors);
      for (const wire::SafeTensor& tensor : state->tensors) state->names.push_back(tensor.name);
    }
    for (std::size_t i = 0; i < state->names.size(); ++i) state->places.emplace(state->names[i], i);
    WeightFile out;
    out.state_ = std::move(state);
    return out;
  });
}

std::vector<std::string> WeightFile::names() const {
  return state_ == nullptr ? std::vector<std::string>() : state_->names;
}

const std::string& WeightFile::path() const {
  static const std::string nobody;
  return state_ == nullptr ? nobody : state_->path;
}

namespace {

// The name of the file that shares most of its beginning with the one that was asked for.
std::string nearest(const std::map<std::string, std::size_t, std::less<>>& places, std::string_view name) {
  std::string best;
  std::size_t most = 0;
  for (const auto& [one, place] : places) {
    std::size_t same = 0;
    while (same < one.size() && same < name.size() && one[same] == name[same]) ++same;
    if (best.empty() || same > most) best = one;
    most = std::max(most, same);
  }
  return best;
}

}  // namespace

Result<Tensor> WeightFile::tensor(std::string_view name) const {
  return without_throwing([&]() -> Result<Tensor> {
    const std::string shown = wire::quoted_name(name);
    const auto found = state_ == nullptr ? decltype(state_->places.find(name))() : state_->places.find(name);
    if (state_ == nullptr || found == state_->places.end()) {
      const std::string near = state_ == nullptr ? "" : nearest(state_->places, name);
      return Error{ErrorCode::invalid_argument, "'" + path() + "' has no tensor " + shown + ".",
                   near.empty() ? "It has none at all." : "The name nearest to it is " + wire::quoted_name(near) + "."};
    }
    if (state_->archive.has_value()) {
      const std::lock_guard lock(state_->reading);
      auto file = state_->archive->read_packed(found->first + std::string(suffix));
      if (!file.ok()) return std::move(file).error().within("while reading " + path());
      return tensor_of(*file, shown, path());
    }
    const wire::SafeTensor& tensor = state_->tensors[found->second];
    if (!tensor.dtype.has_value()) return cannot_hold(shown, path(), tensor.dtype_name);
    TensorView view{*tensor.dtype, tensor.sizes, {}, const_cast<std::byte*>(tensor.elements.data())};
    if (reinterpret_cast<std::uintptr_t>(view.data) % size_bytes(view.dtype) == 0)
      return Tensor::borrow(std::move(view), state_->bytes);
    // Only what stands behind a header of an odd length.
    return copy_of(view.dtype, view.sizes, tensor.elements);
  });
}

}  // namespace polyphase::api

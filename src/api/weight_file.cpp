// safetensors files by name.
#include "polyphase/weight_file.h"

#include <map>

#include "api/state.h"
#include "engine/mapped_file.h"
#include "wire/printable.h"
#include "wire/safetensors.h"

namespace polyphase::api {

struct WeightFile::State {
  std::string path;
  std::shared_ptr<Buffer> bytes;
  std::vector<wire::SafeTensor> tensors;
  std::map<std::string, std::size_t, std::less<>> places;
};

Result<WeightFile> WeightFile::open(const std::string& path) {
  return without_throwing([&]() -> Result<WeightFile> {
    auto state = std::make_shared<State>();
    state->path = path;
    TRY(state->bytes, map_file(path));
    auto tensors = wire::read_safetensors({state->bytes->data(), state->bytes->size_bytes()});
    if (!tensors.ok()) return std::move(tensors).error().within("while reading " + path);
    state->tensors = std::move(*tensors);
    for (std::size_t i = 0; i < state->tensors.size(); ++i) state->places.emplace(state->tensors[i].name, i);
    WeightFile out;
    out.state_ = std::move(state);
    return out;
  });
}

std::vector<std::string> WeightFile::names() const {
  std::vector<std::string> out;
  if (state_ == nullptr) return out;
  for (const wire::SafeTensor& tensor : state_->tensors) out.push_back(tensor.name);
  return out;
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
    const wire::SafeTensor& tensor = state_->tensors[found->second];
    if (!tensor.dtype.has_value()) {
      return Error{ErrorCode::unsupported,
                   "tensor " + shown + " of '" + path() + "' is of type " + wire::printable(tensor.dtype_name) + ".",
                   "Convert it to float32 before it is saved."};
    }
    TensorView view{*tensor.dtype, tensor.sizes, {}, const_cast<std::byte*>(tensor.elements.data())};
    if (reinterpret_cast<std::uintptr_t>(view.data) % size_bytes(view.dtype) == 0)
      return Tensor::borrow(std::move(view), state_->bytes);
    // Only what stands behind a header of an odd length.
    TRY(Tensor copy, Tensor::allocate(view.dtype, view.sizes));
    std::copy(tensor.elements.begin(), tensor.elements.end(), copy.as<std::byte>());
    return copy;
  });
}

}  // namespace polyphase::api

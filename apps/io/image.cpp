// Samples ↔ values.
#include "io/image.h"

#include <algorithm>
#include <cmath>

#include "io/try.h"

namespace polyphase::io {
namespace {

Channels resolve(Channels wanted, std::int64_t network_channels) {
  if (wanted != Channels::automatic) return wanted;
  return network_channels == 1 ? Channels::grey : network_channels == 4 ? Channels::rgba : Channels::rgb;
}

int count_of(Channels channels) { return channels == Channels::grey ? 1 : channels == Channels::rgba ? 4 : 3; }

// One channel of one pixel, as a sample.
double sample_of(const Image& image, std::size_t pixel, Channels channels, int channel) {
  const std::uint16_t* samples = image.samples.data() + pixel * static_cast<std::size_t>(image.channels);
  const bool colour = image.channels >= 3;
  const bool has_alpha = image.channels == 2 || image.channels == 4;
  const double full = image.bits == 16 ? 65535 : 255;
  if (channels == Channels::grey) {
    return colour ? 0.299 * samples[0] + 0.587 * samples[1] + 0.114 * samples[2] : samples[0];
  }
  if (channel == 3) return has_alpha ? samples[image.channels - 1] : full;
  if (!colour) return samples[0];
  return samples[channels == Channels::bgr ? 2 - channel : channel];
}

double per_channel(const std::vector<double>& values, int channel, double otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? values[0] : values[static_cast<std::size_t>(channel)];
}

Result<void> check_lists(const ImageOptions& options, int channels) {
  for (const auto* list : {&options.mean, &options.deviation}) {
    if (list->size() > 1 && list->size() != static_cast<std::size_t>(channels)) {
      return Error{ErrorCode::invalid_argument,
                   std::string(list == &options.mean ? "--mean" : "--std") + " has " + std::to_string(list->size()) +
                       " numbers for " + std::to_string(channels) + " channels.",
                   "Give one number, or one per channel."};
    }
  }
  return {};
}

template <typename T>
void fill(const Image& image, const ImageOptions& options, Channels channels, bool raw, T* out) {
  const double full = image.bits == 16 ? 65535 : 255;
  const auto pixels = static_cast<std::size_t>(image.width * image.height);
  for (int channel = 0; channel < count_of(channels); ++channel) {
    const double mean = per_channel(options.mean, channel, 0);
    const double deviation = per_channel(options.deviation, channel, 1);
    for (std::size_t i = 0; i < pixels; ++i) {
      const double sample = sample_of(image, i, channels, channel) / full;
      const double value =
          raw ? std::nearbyint(sample * 255) : (options.low + sample * (options.high - options.low) - mean) / deviation;
      *out++ = static_cast<T>(value);
    }
  }
}

// One element as a share of the full sample.
double level_of(const api::Tensor& tensor, std::size_t at, const ImageOptions& options) {
  if (tensor.dtype() == DType::u8) return tensor.as<std::uint8_t>()[at] / 255.0;
  const double value =
      tensor.dtype() == DType::f64 ? tensor.as<double>()[at] : static_cast<double>(tensor.as<float>()[at]);
  const double level = (value - options.low) / (options.high - options.low);
  return std::isnan(level) ? 0 : std::clamp(level, 0.0, 1.0);
}

}  // namespace

Result<Channels> channels_from_word(const std::string& word) {
  if (word == "rgb") return Channels::rgb;
  if (word == "bgr") return Channels::bgr;
  if (word == "grey" || word == "gray") return Channels::grey;
  if (word == "rgba") return Channels::rgba;
  return Error{ErrorCode::invalid_argument, "--channels is '" + word + "', expected rgb, bgr, grey or rgba.",
               "For example --channels rgb."};
}

Result<api::Tensor> tensor_from_image(const Image& image, const ImageSlot& slot, const ImageOptions& options,
                                      const std::string& path) {
  const Channels channels = resolve(options.channels, slot.channels);
  const int count = count_of(channels);
  if (slot.channels != 0 && slot.channels != count && slot.rank >= 3) {
    return Error{ErrorCode::invalid_argument,
                 "the network takes " + std::to_string(slot.channels) + " channels, '" + path + "' gives " +
                     std::to_string(count) + ".",
                 "Choose with --channels rgb, bgr, grey or rgba, or give the tensor as .npy."};
  }
  IO_TRY_VOID(check_lists(options, count));
  std::vector<std::int64_t> sizes = {1, count, image.height, image.width};
  if (slot.rank == 3) sizes.erase(sizes.begin());
  if (slot.rank == 2 && count == 1) sizes.erase(sizes.begin(), sizes.begin() + 2);
  if (static_cast<std::size_t>(slot.rank) != sizes.size()) {
    return Error{ErrorCode::invalid_argument,
                 "the network takes a tensor of rank " + std::to_string(slot.rank) + ", an image of " +
                     std::to_string(count) + " channels has rank " + std::to_string(sizes.size()) + ".",
                 "Give the tensor as .npy."};
  }
  const bool known = slot.dtype == DType::f32 || slot.dtype == DType::f64 || slot.dtype == DType::u8;
  if (!known) {
    return Error{ErrorCode::invalid_argument,
                 "the network takes " + std::string(name_of(slot.dtype)) + ", an image gives f32, f64 or u8.",
                 "Give the tensor as .npy."};
  }
  IO_TRY(api::Tensor tensor, api::Tensor::allocate(slot.dtype, sizes));
  if (slot.dtype == DType::f32) fill(image, options, channels, false, tensor.as<float>());
  if (slot.dtype == DType::f64) fill(image, options, channels, false, tensor.as<double>());
  if (slot.dtype == DType::u8) fill(image, options, channels, true, tensor.as<std::uint8_t>());
  return tensor;
}

Result<Image> image_from_tensor(const api::Tensor& tensor, const ImageOptions& options, const std::string& path) {
  std::vector<std::int64_t> sizes = tensor.sizes();
  const auto refuse = [&](const std::string& why) {
    std::string shape;
    for (const std::int64_t size : tensor.sizes()) shape += (shape.empty() ? "" : ", ") + std::to_string(size);
    return Error{ErrorCode::invalid_argument,
                 "cannot write a tensor " + std::string(name_of(tensor.dtype())) + "[" + shape + "] to '" + path +
                     "': " + why + ".",
                 "Write it as .npy instead."};
  };
  if (sizes.size() == 2) sizes.insert(sizes.begin(), 1);
  if (sizes.size() == 4 && sizes[0] == 1) sizes.erase(sizes.begin());
  if (sizes.size() != 3) return refuse("an image is [1, C, H, W], [C, H, W] or [H, W]");
  if (sizes[0] != 1 && sizes[0] != 3 && sizes[0] != 4) return refuse("an image has 1, 3 or 4 channels");
  if (sizes[1] == 0 || sizes[2] == 0) return refuse("it is empty");
  if (tensor.dtype() != DType::f32 && tensor.dtype() != DType::f64 && tensor.dtype() != DType::u8)
    return refuse("an image is f32, f64 or u8");
  if (!(options.high > options.low)) return refuse("the range is empty");
  Image image{sizes[2], sizes[1], static_cast<int>(sizes[0]), 8, {}};
  const auto pixels = static_cast<std::size_t>(image.width * image.height);
  const auto channels = static_cast<std::size_t>(image.channels);
  image.samples.resize(pixels * channels);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const std::size_t place = options.channels == Channels::bgr && channel < 3 && channels >= 3 ? 2 - channel : channel;
    for (std::size_t i = 0; i < pixels; ++i) {
      const double level = level_of(tensor, channel * pixels + i, options);
      image.samples[i * channels + place] = static_cast<std::uint16_t>(std::lround(level * 255));
    }
  }
  return image;
}

}  // namespace polyphase::io

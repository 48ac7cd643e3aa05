// Images as tensors: how samples become values, and back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "polyphase/polyphase.h"

namespace polyphase::io {

// Samples in rows, `channels` side by side: 1 grey, 2 grey + alpha, 3 RGB, 4 RGBA; 0 … 255 or 0 … 65535.
struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  int channels = 0;
  int bits = 8;  // 8 or 16
  std::vector<std::uint16_t> samples;
};

enum class Channels : std::uint8_t { automatic, rgb, bgr, grey, rgba };
Result<Channels> channels_from_word(const std::string& word);

// value = (low + sample/maximum · (high - low) - mean) / deviation, per channel. `mean` and `deviation` are empty, or
// hold one number or one per channel.
struct ImageOptions {
  double low = 0;
  double high = 1;
  std::vector<double> mean;
  std::vector<double> deviation;
  Channels channels = Channels::automatic;  // by what the network takes: 1 grey, 4 rgba, else rgb
};

// What the network takes: dtype, axes, and how many channels it fixes (0: any).
struct ImageSlot {
  DType dtype = DType::f32;
  int rank = 4;  // 4: [1, C, H, W], 3: [C, H, W], 2: [H, W]
  std::int64_t channels = 0;
};

// Grey is full-range BT.601 luma, 0.299 R + 0.587 G + 0.114 B. dtype u8 takes the samples as they are (range, mean and
// deviation do not apply); f64 and f32 take values.
Result<api::Tensor> tensor_from_image(const Image& image, const ImageSlot& slot, const ImageOptions& options,
                                      const std::string& path);

// [1, C, H, W], [C, H, W] or [H, W] with 1, 3 or 4 channels, as 8 bits a sample, clamped. Undoes low and high, not mean
// and deviation; channels: bgr is turned round, anything else is taken as it comes.
Result<Image> image_from_tensor(const api::Tensor& tensor, const ImageOptions& options, const std::string& path);

}  // namespace polyphase::io

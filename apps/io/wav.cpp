// WAV through libsndfile.
#include "io/wav.h"

#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "io/try.h"
#include "io/whole_file.h"

namespace polyphase::io {
namespace {

constexpr std::size_t chunk_frames = 1 << 16;
constexpr int max_channels = 64;

struct SoundCloser {
  void operator()(SNDFILE* file) const { sf_close(file); }
};
using SoundFile = std::unique_ptr<SNDFILE, SoundCloser>;

}  // namespace

Result<Sound> read_wav(const std::string& path, int rank) {
  IO_TRY_VOID(expect_file(path));
  SF_INFO info{};
  const SoundFile file(sf_open(path.c_str(), SFM_READ, &info));
  if (file == nullptr)
    return Error{ErrorCode::corrupt, "cannot read '" + path + "': " + sf_strerror(nullptr),
                 "Check the path; write the sound as WAV, or give the tensor as .npy."};
  if (info.channels < 1 || info.channels > max_channels || rank < 1 || rank > 3 || (rank == 1 && info.channels != 1)) {
    return Error{ErrorCode::invalid_argument,
                 "'" + path + "' has " + std::to_string(info.channels) +
                     " channels, the network takes a tensor of rank " + std::to_string(rank) + ".",
                 "Rank 3 is [1, C, L], rank 2 is [C, L], rank 1 is one channel; or give the tensor as .npy."};
  }
  const auto channels = static_cast<std::size_t>(info.channels);
  // Grows with what is read: the header's count may be a lie.
  std::vector<float> frames;
  for (;;) {
    const std::size_t used = frames.size();
    frames.resize(used + chunk_frames * channels);
    const sf_count_t got = sf_readf_float(file.get(), frames.data() + used, chunk_frames);
    frames.resize(used + static_cast<std::size_t>(std::max<sf_count_t>(got, 0)) * channels);
    if (got < static_cast<sf_count_t>(chunk_frames)) break;
  }
  const auto length = static_cast<std::int64_t>(frames.size() / channels);
  std::vector<std::int64_t> sizes = {1, info.channels, length};
  sizes.erase(sizes.begin(), sizes.end() - rank);
  IO_TRY(api::Tensor tensor, api::Tensor::allocate(DType::f32, sizes));
  for (std::size_t channel = 0; channel < channels; ++channel) {
    float* out = tensor.as<float>() + channel * static_cast<std::size_t>(length);
    for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) out[i] = frames[i * channels + channel];
  }
  return Sound{std::move(tensor), info.samplerate};
}

Result<void> write_wav(const std::string& path, const api::Tensor& tensor, int sample_rate) {
  std::vector<std::int64_t> sizes = tensor.sizes();
  if (sizes.size() == 1) sizes.insert(sizes.begin(), 1);
  if (sizes.size() == 3 && sizes[0] == 1) sizes.erase(sizes.begin());
  const bool is_float = tensor.dtype() == DType::f32 || tensor.dtype() == DType::f64;
  if (sizes.size() != 2 || sizes[0] < 1 || sizes[0] > max_channels || !is_float) {
    return Error{
        ErrorCode::invalid_argument,
        "cannot write '" + path + "': a sound is f32 or f64 of shape [1, C, L], [C, L] or [L] with 1 to 64 channels.",
        "Write it as .npy instead."};
  }
  SF_INFO info{};
  info.channels = static_cast<int>(sizes[0]);
  info.samplerate = sample_rate;
  info.format = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
  IO_TRY(NewFile target, NewFile::create(path));
  SoundFile file(sf_open(target.path().c_str(), SFM_WRITE, &info));
  if (file == nullptr)
    return Error{ErrorCode::io, "cannot write '" + path + "': " + sf_strerror(nullptr),
                 "Choose a folder that exists and can be written."};
  const auto channels = static_cast<std::size_t>(sizes[0]);
  const auto length = static_cast<std::size_t>(sizes[1]);
  std::vector<short> frames(channels * length);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t at = channel * length + i;
      const double value =
          tensor.dtype() == DType::f64 ? tensor.as<double>()[at] : static_cast<double>(tensor.as<float>()[at]);
      frames[i * channels + channel] =
          static_cast<short>(std::lround(std::isnan(value) ? 0.0 : std::clamp(value * 32768, -32768.0, 32767.0)));
    }
  }
  const auto written = sf_writef_short(file.get(), frames.data(), static_cast<sf_count_t>(length));
  if (written != static_cast<sf_count_t>(length) || sf_close(file.release()) != 0) {
    return Error{ErrorCode::io, "cannot write '" + path + "': the disk may be full.",
                 "Free space on the disk, or write elsewhere."};
  }
  return target.publish();
}

}  // namespace polyphase::io

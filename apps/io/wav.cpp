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

struct SoundCloser {
  void operator()(SNDFILE* file) const { sf_close(file); }
};
using SoundFile = std::unique_ptr<SNDFILE, SoundCloser>;

namespace {

constexpr std::size_t chunk_frames = 1 << 16;
constexpr int max_channels = 64;

Result<SoundFile> open_sound(const std::string& path, int rank, SF_INFO& info) {
  IO_TRY_VOID(expect_file(path));
  SoundFile file(sf_open(path.c_str(), SFM_READ, &info));
  if (file == nullptr)
    return Error{ErrorCode::corrupt, "cannot read '" + path + "': " + sf_strerror(nullptr),
                 "Check the path; write the sound as WAV, or give the tensor as .npy."};
  if (info.channels < 1 || info.channels > max_channels || rank < 1 || rank > 3 || (rank == 1 && info.channels != 1)) {
    return Error{ErrorCode::invalid_argument,
                 "'" + path + "' has " + std::to_string(info.channels) +
                     " channels, the network takes a tensor of rank " + std::to_string(rank) + ".",
                 "Rank 3 is [1, C, L], rank 2 is [C, L], rank 1 is one channel; or give the tensor as .npy."};
  }
  return file;
}

}  // namespace

Result<Sound> read_wav(const std::string& path, int rank) {
  SF_INFO info{};
  IO_TRY(const SoundFile file, open_sound(path, rank, info));
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

namespace {

// [C, L] of what is a sound; empty where it is none.
std::vector<std::int64_t> channels_and_length(DType dtype, std::vector<std::int64_t> sizes) {
  if (sizes.size() == 1) sizes.insert(sizes.begin(), 1);
  if (sizes.size() == 3 && sizes[0] == 1) sizes.erase(sizes.begin());
  const bool is_float = dtype == DType::f32 || dtype == DType::f64;
  if (sizes.size() != 2 || sizes[0] < 1 || sizes[0] > max_channels || !is_float) return {};
  return sizes;
}

std::vector<short> frames_of(const api::Tensor& tensor, std::size_t channels, std::size_t length) {
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
  return frames;
}

Error full_disk(const std::string& path) {
  return {ErrorCode::io, "cannot write '" + path + "': the disk may be full.",
          "Free space on the disk, or write elsewhere."};
}

}  // namespace

struct WavParts::Input {
  std::string path;
  SoundFile file;
  SF_INFO info;
  std::vector<float> frames;
};

WavParts::WavParts(std::unique_ptr<Input> input) : input_(std::move(input)) {}
WavParts::WavParts(WavParts&&) noexcept = default;
WavParts::~WavParts() = default;

Result<WavParts> WavParts::open(const std::string& path, int rank) {
  SF_INFO info{};
  IO_TRY(SoundFile file, open_sound(path, rank, info));
  WavParts out(std::make_unique<Input>(Input{path, std::move(file), info, {}}));
  out.sizes_ = {1, info.channels, info.frames};
  out.sizes_.erase(out.sizes_.begin(), out.sizes_.end() - rank);
  return out;
}

int WavParts::sample_rate() const { return input_->info.samplerate; }

Result<void> WavParts::read(std::int64_t first, std::int64_t count, float* samples) {
  const auto channels = static_cast<std::size_t>(input_->info.channels);
  const auto length = static_cast<std::size_t>(count);
  input_->frames.resize(length * channels);
  if (sf_seek(input_->file.get(), first, SEEK_SET) != first ||
      sf_readf_float(input_->file.get(), input_->frames.data(), count) != count) {
    return Error{ErrorCode::corrupt, "'" + input_->path + "' ends too early.", "Copy or write the file again."};
  }
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t i = 0; i < length; ++i) samples[channel * length + i] = input_->frames[i * channels + channel];
  }
  return {};
}

struct NewWavParts::Output {
  std::string path;
  NewFile target;
  SoundFile file;
  std::size_t channels;
};

NewWavParts::NewWavParts(std::unique_ptr<Output> output) : output_(std::move(output)) {}
NewWavParts::NewWavParts(NewWavParts&&) noexcept = default;
NewWavParts::~NewWavParts() = default;

Result<NewWavParts> NewWavParts::create(const std::string& path, DType dtype, const std::vector<std::int64_t>& given,
                                        int sample_rate) {
  const std::vector<std::int64_t> sizes = channels_and_length(dtype, given);
  if (sizes.empty()) {
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
  return NewWavParts(
      std::make_unique<Output>(Output{path, std::move(target), std::move(file), static_cast<std::size_t>(sizes[0])}));
}

Result<void> NewWavParts::write(const api::Tensor& part) {
  const auto length = static_cast<std::size_t>(part.sizes().back());
  const std::vector<short> frames = frames_of(part, output_->channels, length);
  const auto written = sf_writef_short(output_->file.get(), frames.data(), static_cast<sf_count_t>(length));
  if (written != static_cast<sf_count_t>(length)) return full_disk(output_->path);
  return {};
}

Result<void> NewWavParts::finish() {
  if (sf_close(output_->file.release()) != 0) return full_disk(output_->path);
  return output_->target.publish();
}

Result<void> write_wav(const std::string& path, const api::Tensor& tensor, int sample_rate) {
  IO_TRY(NewWavParts file, NewWavParts::create(path, tensor.dtype(), tensor.sizes(), sample_rate));
  IO_TRY_VOID(file.write(tensor));
  return file.finish();
}

}  // namespace polyphase::io

// WAV files as tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "polyphase/polyphase.h"

namespace polyphase::io {

struct Sound {
  api::Tensor tensor;  // f32, samples in -1 … 1
  int sample_rate = 0;
};

// rank 3: [1, C, L]; 2: [C, L]; 1: [L] (one channel). Errors: io; corrupt, in libsndfile's words; channels that do not
// fit the rank.
Result<Sound> read_wav(const std::string& path, int rank);
// [1, C, L], [C, L] or [L], f32 or f64, as 16-bit samples, clipped at ±1.
Result<void> write_wav(const std::string& path, const api::Tensor& tensor, int sample_rate);

// A sound that is read part by part.
class WavParts {
 public:
  // Errors: as read_wav.
  static Result<WavParts> open(const std::string& path, int rank);
  WavParts(WavParts&&) noexcept;
  ~WavParts();
  const std::vector<std::int64_t>& sizes() const { return sizes_; }  // of the whole, of the rank
  int sample_rate() const;
  // The samples [first, first + count) of every channel, one channel behind the other. Error: it ends too early.
  Result<void> read(std::int64_t first, std::int64_t count, float* samples);

 private:
  struct Input;
  explicit WavParts(std::unique_ptr<Input> input);
  std::unique_ptr<Input> input_;
  std::vector<std::int64_t> sizes_;
};

// A sound that is written part by part, from its beginning; it takes its name when all is written.
class NewWavParts {
 public:
  // `sizes` and `dtype` are those of a tensor that write_wav takes. Errors: as write_wav.
  static Result<NewWavParts> create(const std::string& path, DType dtype, const std::vector<std::int64_t>& sizes,
                                    int sample_rate);
  NewWavParts(NewWavParts&&) noexcept;
  ~NewWavParts();
  // The next samples, in the rank of the whole.
  Result<void> write(const api::Tensor& part);
  Result<void> finish();

 private:
  struct Output;
  explicit NewWavParts(std::unique_ptr<Output> output);
  std::unique_ptr<Output> output_;
};

}  // namespace polyphase::io

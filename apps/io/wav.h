// WAV files as tensors.
#pragma once

#include <string>

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

}  // namespace polyphase::io

// Discrete Fourier transforms as PyTorch scales them.
#pragma once

#include "import/compose/composer.h"

namespace polyphase {

// What a transform over n points is divided by.
enum class FourierNorm { none, by_root, by_size };

// value · count^power
Value* times_power(Composer& c, Value* value, const Dim& count, double power);

// One axis. The operand holds pairs, or real numbers with a last axis of 1; so does the result of `inverse` and
// `onesided`. Unscaled but for the division by the length that `dft` does where it is inverse.
Value* transformed(Composer& c, Value* x, std::int64_t axis, const Dim& length, bool inverse, bool onesided);

// What is left to multiply by, so that `transformed` over `points` in all comes out as PyTorch's.
Value* normalised(Composer& c, Value* x, const Dim& points, bool inverse, FourierNorm norm);

}  // namespace polyphase

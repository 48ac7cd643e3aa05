// stft, istft and their windows.
#include <cmath>
#include <numbers>

#include "import/torch/complex_parts.h"
#include "import/torch/fourier.h"

namespace polyphase {
namespace {

using Integers = Composer::Integers;
using Sizes = Composer::Sizes;

// What both directions are told: n_fft, hop_length, win_length, window, normalized.
struct Framing {
  std::int64_t points = 0;
  std::int64_t hop = 0;
  Value* window = nullptr;  // of `points` numbers; null: all ones
  FourierNorm norm = FourierNorm::none;
};

Result<Framing> framing_of(AtenNode& node, Composer& c, DType dtype) {
  Framing out;
  out.points = node.integer("n_fft");
  out.hop = node.has("hop_length") ? node.integer("hop_length") : out.points / 4;
  const std::int64_t length = node.has("win_length") ? node.integer("win_length") : out.points;
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (out.points <= 0 || out.points > most || out.hop <= 0 || length <= 0 || length > out.points)
    return broken_program(
        "expected 0 < win_length <= n_fft and hop_length > 0, found n_fft=" + std::to_string(out.points) +
        ", hop_length=" + std::to_string(out.hop) + ", win_length=" + std::to_string(length) + ".");
  if (node.takes("align_to_window") && node.flag("align_to_window"))
    return lacking("align_to_window.", "Leave align_to_window out, and crop the signal.");
  if (node.has("window")) {
    if (node.is_complex("window")) return lacking("a window of complex numbers.", "Give it a window of real numbers.");
    out.window = c.cast(node.tensor("window"), dtype);
    if (c.rank(out.window) != 1) return broken_program("expected a 1D window tensor of win_length numbers.");
    c.require_equal(c.size(out.window, 0), length,
                    "stft: the window must have win_length (" + std::to_string(length) + ") numbers, found " +
                        out.window->type.text() + ".");
  } else if (length < out.points) {
    out.window = c.expand(c.number(1, dtype), {Dim(length)});
  }
  const std::int64_t before = (out.points - length) / 2;
  if (out.window != nullptr) out.window = c.pad(out.window, 0, before, out.points - length - before);
  if (!c.ok()) return c.result(nullptr).error();
  return out;
}

// Frame f holds the places f·hop … f·hop + n_fft - 1 of the signal, times the window: (B, places) → (B, bins, frames).
Result<Values> convert_stft(AtenNode& node) {
  Composer c(node);
  const DType dtype = node.result_dtype().value_or(DType::f32);
  const bool from_complex = node.is_complex("self");
  Value* x = c.cast(node.tensor("self"), dtype);
  TRY(const Framing framing, framing_of(node, c, dtype));
  const bool onesided = node.has("onesided") ? node.flag("onesided") : !from_complex;
  if (onesided && from_complex) return broken_program("Cannot have onesided output if window or input is complex");
  const int rank = program_rank(node, "self");
  if (rank != 1 && rank != 2) return broken_program("expected a 1D or 2D tensor");
  if (rank == 1) x = c.unsqueeze(x, 0);
  if (!from_complex) x = c.unsqueeze(x, 2);
  if (node.takes("center") && node.flag("center")) {
    const std::string mode = node.word("pad_mode");
    if (mode != "reflect" && mode != "constant")
      return lacking("stft with pad_mode '" + mode + "'.", "Pad the signal before, and give center=False.");
    const Dim half(framing.points / 2);
    x = c.op("pad", {x},
             Attributes({{"pre", Sizes{Dim(0), half, Dim(0)}}, {"post", Sizes{Dim(0), half, Dim(0)}}, {"mode", mode}}));
  }
  const Dim places = c.size(x, 1);
  TRY_VOID(DimDemands(node.graph().checks())
               .require(framing.points, DimCheck::Relation::less_equal, places,
                        "stft: the signal must have at least n_fft (" + std::to_string(framing.points) +
                            ") places, found " + places.text() + "."));
  const Dim frames = floor_div(places - framing.points, framing.hop) + 1;
  Value* const starts = c.op("range", {}, Attributes({{"start", Dim(0)}, {"count", frames}, {"step", framing.hop}}));
  Value* const where = c.add(c.unsqueeze(starts, 1), c.counting(framing.points, DType::i64));
  Value* framed = c.gather(x, where, 1);
  if (framing.window != nullptr) framed = c.mul(framed, c.unsqueeze(framing.window, 1));
  Value* y = transformed(c, framed, 2, framing.points, false, onesided);
  const FourierNorm norm = node.flag("normalized") ? FourierNorm::by_root : FourierNorm::none;
  y = c.transpose(normalised(c, y, framing.points, false, norm), {0, 2, 1, 3});
  return c.results({rank == 1 ? c.squeeze(y, 0) : y});
}

// Frames that are short, or overlap often, are added by a transposed convolution, whose weights the transform joins.
constexpr std::int64_t longest_convolved = 256;
constexpr std::int64_t most_shifts = 32;
constexpr std::int64_t longest_overlapping = 2048;  // with more shifts

// (B, frames, points) → (B, places), frame f added from place f·hop on.
Value* overlapped(Composer& c, AtenNode& node, Value* frames, const Framing& framing, bool convolved) {
  const std::int64_t n = framing.points;
  const std::int64_t hop = framing.hop;
  const Dim batch = c.size(frames, 0);
  const Dim count = c.size(frames, 1);
  const Dim places = (count - 1) * Dim(hop) + Dim(n);
  if (convolved) {
    std::vector<double> diagonal(static_cast<std::size_t>(n * n));
    for (std::int64_t i = 0; i < n; ++i) diagonal[static_cast<std::size_t>(i * n + i)] = 1;
    Value* const weights = node.constant(Tensor::from_values(c.dtype(frames), Integers{n, 1, n}, diagonal));
    Value* const sums = c.op(
        "conv_transpose", {c.transpose(frames, {0, 2, 1}), weights},
        Attributes(
            {{"stride", Integers{hop}}, {"dilation", Integers{1}}, {"pre", Sizes{Dim(0)}}, {"post", Sizes{Dim(0)}}}));
    return c.reshape(sums, {batch, places});
  }
  // Pieces of `hop` places: piece j of frame f is added to row f + j.
  const std::int64_t pieces = (n + hop - 1) / hop;
  Value* const whole = c.reshape(c.pad(frames, 2, 0, pieces * hop - n), {batch, count, Dim(pieces), Dim(hop)});
  Value* sum = nullptr;
  for (std::int64_t j = 0; j < pieces; ++j) {
    Value* const piece = c.squeeze(c.slice(whole, 2, j, 1), 2);
    Value* const placed = c.pad(piece, 1, j, pieces - 1 - j);
    sum = sum == nullptr ? placed : c.add(sum, placed);
  }
  sum = c.reshape(sum, {batch, (count + (pieces - 1)) * Dim(hop)});
  return c.slice(sum, 1, 0, places);
}

Value* spectra_to_frames(AtenNode& node, Composer& c, Value* z, const Framing& framing) {
  const Dim bins = c.size(z, 2);
  const bool onesided = node.has("onesided") ? node.flag("onesided") : !(bins == framing.points);
  const Dim expected = onesided ? Dim(framing.points / 2 + 1) : Dim(framing.points);
  c.require_equal(bins, expected,
                  "istft: expected the frequency dimension (3rd to the last) of the input to have " + expected.text() +
                      " bins, found " + bins.text() + ".");
  const FourierNorm norm = node.flag("normalized") ? FourierNorm::by_root : FourierNorm::by_size;
  // Of a whole spectrum PyTorch reads one half as well.
  if (!onesided) z = c.slice(z, 2, 0, framing.points / 2 + 1);
  Value* const frames = c.squeeze(transformed(c, z, 2, framing.points, true, true), 3);
  return normalised(c, frames, framing.points, true, norm);
}

// The transforms of the frames, added where they overlap, divided by the sum of the squares of the windows there.
Result<Values> convert_istft(AtenNode& node) {
  Composer c(node);
  if (node.gives_complex()) return lacking("istft with return_complex=True.", "Use torch.fft.ifft and torch.fold.");
  if (!node.is_complex("self")) return broken_program("istft requires a complex-valued input tensor");
  const DType dtype = node.result_dtype().value_or(DType::f32);
  Value* z = c.cast(node.tensor("self"), dtype);
  TRY(const Framing framing, framing_of(node, c, dtype));
  const int rank = program_rank(node, "self");
  if (rank != 2 && rank != 3) return broken_program("expected a tensor with 2 or 3 dimensions");
  if (rank == 2) z = c.unsqueeze(z, 0);
  z = c.transpose(z, {0, 2, 1, 3});
  Value* frames = spectra_to_frames(node, c, z, framing);
  Value* window = framing.window;
  if (window == nullptr) {
    window = c.expand(c.number(1, dtype), {Dim(framing.points)});
  } else {
    frames = c.mul(frames, window);
  }
  const bool often = framing.points > most_shifts * framing.hop;
  if (often && framing.points > longest_overlapping)
    return lacking("istft with n_fft=" + std::to_string(framing.points) +
                       " and hop_length=" + std::to_string(framing.hop) + ": each place lies in more than 32 frames.",
                   "Use a hop_length of at least n_fft / 32, or n_fft up to 2048.");
  Value* sums = overlapped(c, node, frames, framing, framing.points <= longest_convolved || often);
  Value* const squares = c.expand(c.op("square", {window}), {Dim(1), c.size(frames, 1), Dim(framing.points)});
  Value* weights = overlapped(c, node, squares, framing, often);
  const Dim places = c.size(sums, 1);
  const Dim start(node.flag("center") ? framing.points / 2 : 0);
  const Dim end = node.has("length") ? start + node.integer("length") : places - start;
  const Dim count = min(end, places) - start;
  Value* y = c.div(c.slice(sums, 1, start, count), c.slice(weights, 1, start, count));
  if (node.has("length")) {
    y = c.pad(y, 1, 0, max(end - places, Dim(0)));
    y = c.slice(y, 1, 0, node.integer("length"));
  }
  return c.results({rank == 2 ? c.squeeze(y, 0) : y});
}

// alpha - beta·cos(2πi/N), N the length or, if not periodic, one less.
Result<Values> cosine_window(AtenNode& node, double alpha, double beta) {
  const std::int64_t length = node.integer("window_length");
  const bool periodic = !node.takes("periodic") || node.flag("periodic");
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (length < 0 || length > most) return broken_program("a window has a length that is not negative.");
  std::vector<double> values;
  const auto divisor = static_cast<double>(periodic ? length : length - 1);
  for (std::int64_t i = 0; i < length; ++i)
    values.push_back(length == 1 ? 1
                                 : alpha - beta * std::cos(2 * std::numbers::pi * static_cast<double>(i) / divisor));
  return Values{node.constant(Tensor::from_values(node.result_dtype().value_or(DType::f32), Integers{length}, values))};
}

Result<Values> convert_hann(AtenNode& node) { return cosine_window(node, 0.5, 0.5); }

Result<Values> convert_hamming(AtenNode& node) {
  return cosine_window(node, node.takes("alpha") ? node.real("alpha") : 0.54,
                       node.takes("beta") ? node.real("beta") : 0.46);
}

}  // namespace

std::vector<AtenEntry> aten_spectrogram_entries() {
  return {
      {"hamming_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       convert_hamming},
      {"hamming_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       convert_hamming},
      {"hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, ScalarType? dtype=None, "
       "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       convert_hamming},
      {"hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, ScalarType? "
       "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       convert_hamming},
      {"hann_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       convert_hann},
      {"hann_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       convert_hann},
      {"istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
       "center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> "
       "Tensor",
       convert_istft, false, convert_istft},
      {"stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
       "normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
       convert_stft, false, convert_stft},
      {"stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
       "center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? return_complex=None, "
       "bool? align_to_window=None) -> Tensor",
       convert_stft, false, convert_stft},
  };
}

}  // namespace polyphase

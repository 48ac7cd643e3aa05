// torch.fft: transforms over one axis or several, shifts, frequencies.
#include "import/torch/fourier.h"

#include <cmath>
#include <numeric>

#include "import/torch/complex_parts.h"

namespace polyphase {

Value* times_power(Composer& c, Value* value, const Dim& count, double power) {
  if (power == 0 || !c.ok()) return value;
  if (count.is_constant()) return c.mul(value, std::pow(static_cast<double>(count.value()), power));
  Value* factor = c.cast(c.dims({count}, true), DType::f64);
  if (power == 0.5 || power == -0.5) factor = c.op("sqrt", {factor});
  if (power < 0) factor = c.op("reciprocal", {factor});
  return c.mul(value, c.cast(factor, c.dtype(value)));
}

Value* transformed(Composer& c, Value* x, std::int64_t axis, const Dim& length, bool inverse, bool onesided) {
  return c.op("dft", {x},
              Attributes({{"axis", axis}, {"length", length}, {"inverse", inverse}, {"onesided", onesided}}));
}

Value* normalised(Composer& c, Value* x, const Dim& points, bool inverse, FourierNorm norm) {
  const double power = norm == FourierNorm::none ? 0 : norm == FourierNorm::by_root ? -0.5 : -1;
  return times_power(c, x, points, inverse ? power + 1 : power);
}

namespace {

using Integers = Composer::Integers;
using Sizes = Composer::Sizes;

// "fft_irfftn": back from half a spectrum to real numbers.
struct TransformKind {
  bool inverse = false;
  bool real = false;
};

TransformKind transform_kind(std::string_view overload) {
  overload.remove_prefix(std::string_view("fft_").size());
  TransformKind out;
  out.inverse = overload.front() == 'i';
  out.real = overload[out.inverse ? 1 : 0] == 'r';
  return out;
}

Result<FourierNorm> transform_norm(AtenNode& node, bool inverse) {
  const std::string word = node.has("norm") ? node.word("norm") : "backward";
  if (word == "ortho") return FourierNorm::by_root;
  if (word != "backward" && word != "forward") return broken_program("Invalid normalization mode: \"" + word + "\"");
  return (word == "backward") == inverse ? FourierNorm::by_size : FourierNorm::none;
}

struct Axes {
  Integers axes;
  Sizes lengths;  // -1: as the operand has them
};

// Arguments `n` or `s`, and `dim`, which may be left out.
Result<Axes> transform_axes(AtenNode& node, int rank) {
  Axes out;
  const char* const lengths = node.takes("n") ? "n" : "s";
  if (node.has(lengths)) out.lengths = node.sizes(lengths);
  if (node.has("dim")) {
    TRY(out.axes, node.axes("dim", rank));
  } else {
    const int count = node.has(lengths) ? static_cast<int>(out.lengths.size()) : rank;
    if (count > rank)
      return broken_program("got shape with " + std::to_string(count) + " values but input tensor only has " +
                            std::to_string(rank) + " dimensions");
    for (int axis = rank - count; axis < rank; ++axis) out.axes.push_back(axis);
  }
  if (out.lengths.empty()) out.lengths.resize(out.axes.size(), Dim(-1));
  if (out.lengths.size() != out.axes.size())
    return broken_program("When given, dim and shape arguments must have the same length");
  if (rank == 0 || out.axes.empty()) return lacking("a transform without axes.", "Leave it out: it changes nothing.");
  return out;
}

class Transforms {
 public:
  Transforms(AtenNode& node, Axes axes, FourierNorm norm) : c_(node), axes_(std::move(axes)), norm_(norm) {
    x_ = node.tensor("self");
    dtype_ = node.result_dtype().value_or(DType::f32);
    x_ = c_.cast(x_, dtype_);
    if (!node.is_complex("self")) x_ = c_.unsqueeze(x_, c_.rank(x_));  // a last axis of 1
  }

  Result<Values> complex_to_complex(bool inverse) {
    for (std::size_t i = 0; i < axes_.axes.size(); ++i) one(i, length(i), inverse, false);
    return c_.results({normalised(c_, x_, points_, inverse, norm_)});
  }

  // The last axis first, of which only half of the spectrum is kept.
  Result<Values> real_to_complex(bool onesided) {
    for (std::size_t i = axes_.axes.size(); i-- > 0;) one(i, length(i), false, onesided && i + 1 == axes_.axes.size());
    return c_.results({normalised(c_, x_, points_, false, norm_)});
  }

  Result<Values> complex_to_real() {
    const std::size_t last = axes_.axes.size() - 1;
    if (c_.ok() && c_.size(x_, -1) == 1) x_ = joined(c_, {c_.squeeze(x_, c_.rank(x_) - 1), zeros()});
    for (std::size_t i = 0; i < last; ++i) one(i, length(i), true, false);
    const Dim own = (c_.size(x_, static_cast<int>(axes_.axes[last])) - 1) * 2;
    one(last, axes_.lengths[last] == -1 ? own : axes_.lengths[last], true, true);
    return c_.results({normalised(c_, c_.squeeze(x_, c_.rank(x_) - 1), points_, true, norm_)});
  }

 private:
  Dim length(std::size_t i) const {
    return axes_.lengths[i] == -1 ? c_.size(x_, static_cast<int>(axes_.axes[i])) : axes_.lengths[i];
  }
  Value* zeros() { return nothing_like(c_, c_.squeeze(x_, c_.rank(x_) - 1)); }
  void one(std::size_t i, const Dim& length, bool inverse, bool onesided) {
    points_ *= length;
    x_ = transformed(c_, x_, axes_.axes[i], length, inverse, onesided);
  }

  Composer c_;
  Axes axes_;
  FourierNorm norm_;
  Value* x_ = nullptr;
  DType dtype_ = DType::f32;
  Dim points_ = 1;
};

Result<Values> convert_fft(AtenNode& node) {
  const TransformKind kind = transform_kind(node.overload());
  TRY(Axes axes, transform_axes(node, program_rank(node, "self")));
  TRY(const FourierNorm norm, transform_norm(node, kind.inverse));
  if (kind.real && !kind.inverse && node.is_complex("self"))
    return broken_program("rfft expects a real input tensor, but got a complex one");
  Transforms transforms(node, std::move(axes), norm);
  if (!kind.real) return transforms.complex_to_complex(kind.inverse);
  return kind.inverse ? transforms.complex_to_real() : transforms.real_to_complex(true);
}

// The forms that the functions above decompose to: `normalization` is an index of FourierNorm.
Result<Values> convert_spelled_out(AtenNode& node) {
  TRY(Integers axes, node.axes("dim", program_rank(node, "self")));
  const std::int64_t norm = node.integer("normalization");
  if (axes.empty() || norm < 0 || norm > 2) return broken_program("a transform needs axes and a known normalization.");
  Axes over{axes, Sizes(axes.size(), Dim(-1))};
  const bool to_real = node.takes("last_dim_size");
  if (to_real) over.lengths.back() = node.size("last_dim_size");
  Transforms transforms(node, std::move(over), static_cast<FourierNorm>(norm));
  if (to_real) return transforms.complex_to_real();
  if (node.takes("onesided")) return transforms.real_to_complex(node.flag("onesided"));
  return transforms.complex_to_complex(!node.flag("forward"));
}

// Half of each axis goes to its other end.
template <bool back>
Result<Values> convert_half_shift(AtenNode& node) {
  Composer c(node);
  Value* x = node.tensor("self");
  const int rank = program_rank(node, "self");
  Integers axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (node.has("dim")) {
    TRY(axes, node.axes("dim", rank));
  }
  if (rank == 0) return Values{x};
  for (const std::int64_t axis : axes) {
    const int at = static_cast<int>(axis);
    const Dim size = c.size(x, at);
    const Dim shift = floor_div(back ? size + 1 : size, Dim(2));
    x = c.concat({c.slice(x, at, size - shift, shift), c.slice(x, at, 0, size - shift)}, axis);
  }
  return c.results({x});
}

// 0, 1, …, -2, -1 or only those up to n/2, divided by n·d.
template <bool half>
Result<Values> convert_frequencies(AtenNode& node) {
  const std::int64_t n = node.integer("n");
  const double spacing = node.real("d");
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (n <= 0 || n > most) return broken_program("fftfreq needs a positive number of points.");
  std::vector<double> values;
  for (std::int64_t i = 0; i < (half ? n / 2 + 1 : n); ++i) {
    const std::int64_t step = !half && i >= (n + 1) / 2 ? i - n : i;
    values.push_back(static_cast<double>(step) / (static_cast<double>(n) * spacing));
  }
  const Integers sizes{static_cast<std::int64_t>(values.size())};
  return Values{node.constant(Tensor::from_values(node.result_dtype().value_or(DType::f32), sizes, values))};
}

}  // namespace

std::vector<AtenEntry> aten_fourier_entries() {
  const auto both = [](const char* schema, Result<Values> (*convert)(AtenNode&)) {
    return AtenEntry{schema, convert, false, convert};
  };
  return {
      both("_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor", convert_spelled_out),
      both("_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor", convert_spelled_out),
      both("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", convert_spelled_out),
      both("fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", convert_fft),
      both("fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor", convert_fft),
      {"fft_fftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       convert_frequencies<false>},
      both("fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", convert_fft),
      both("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", convert_half_shift<false>),
      both("fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", convert_fft),
      both("fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor", convert_fft),
      both("fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", convert_fft),
      both("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", convert_half_shift<true>),
      both("fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", convert_fft),
      both("fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor", convert_fft),
      both("fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", convert_fft),
      both("fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", convert_fft),
      both("fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor", convert_fft),
      {"fft_rfftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       convert_frequencies<true>},
      both("fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", convert_fft),
  };
}

}  // namespace polyphase

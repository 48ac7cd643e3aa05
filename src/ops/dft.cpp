// dft: the discrete Fourier transform along one axis.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/cut.h"
#include "ops/dense.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_dft(const InferContext& context) {
  TRY_VOID(expect_dtype(context, 0, DTypeSet::floats));
  const Shape& x = context.shape(0);
  TRY(const int axis, expect_axis(context, "axis", x.rank()));
  const Attributes& given = context.attributes();
  const Dim& length = given.get<Dim>("length");
  const Dim& parts = x[x.rank() - 1];
  const bool is_real = parts == 1;
  const bool is_complex = parts == 2;
  if (axis == x.rank() - 1 || !(is_real || is_complex)) {
    return refuse(
        context,
        "the last axis must hold 1 (real) or 2 (complex) numbers and not be the axis of the transform, found " +
            context.input(0).text() + ", axis=" + std::to_string(axis) + ".");
  }
  const bool halves = given.get<bool>("onesided");
  const bool inverse = given.get<bool>("inverse");
  TRY_VOID(context.require(1, DimCheck::Relation::less_equal, length,
                           "dft: attribute 'length' must be at least 1, found " + length.text() + "."));
  Shape y;
  for (int i = 0; i < x.rank(); ++i) {
    Dim size = x[i];
    if (i == axis) size = halves && !inverse ? floor_div(length, Dim(2)) + 1 : length;
    if (i == x.rank() - 1) size = halves && inverse ? Dim(1) : Dim(2);
    y.push_back(std::move(size));
  }
  return std::vector<Type>{{context.input(0).dtype, y}};
}

// Adds the terms of one bin's sum, exp(sign · 2πi · k · j / n) · x[j], j from 0. A half spectrum stands for a whole one
// whose other bins are the conjugates: they give the real part of bins 1 … (n - 1) / 2 once more.
struct Transform {
  std::int64_t length;
  std::int64_t given;  // operand places that count
  bool inverse;
  bool mirrored;
  bool is_complex;
  std::vector<double> cosine;
  std::vector<double> sine;

  void bin(std::int64_t k, const double* from, std::int64_t step, double* real, double* imaginary) const {
    *real = 0;
    *imaginary = 0;
    for (std::int64_t j = 0; j < given; ++j) {
      const auto turn = static_cast<std::size_t>(
          static_cast<std::int64_t>((static_cast<unsigned __int128>(j) * static_cast<unsigned __int128>(k)) %
                                    static_cast<unsigned __int128>(length)));
      const double c = cosine[turn];
      const double s = inverse ? sine[turn] : -sine[turn];
      const double a = from[j * step];
      const bool alone = mirrored && (j == 0 || 2 * j == length);
      const double b = is_complex && !alone ? from[j * step + 1] : 0;
      const double times = mirrored && !alone ? 2 : 1;
      *real += times * (a * c - b * s);
      if (!mirrored) *imaginary += a * s + b * c;
    }
    if (inverse) {
      *real /= static_cast<double>(length);
      *imaginary /= static_cast<double>(length);
    }
  }
};

Result<void> reference_dft(const ReferenceContext& context) {
  const TensorView& x = context.inputs[0];
  const TensorView& y = context.outputs[0];
  const auto axis = static_cast<std::size_t>(context.attributes.get<std::int64_t>("axis"));
  const auto last = static_cast<std::size_t>(x.rank - 1);
  Transform transform{};
  transform.length = integers_of({context.attributes.get<Dim>("length")})[0];
  transform.inverse = context.attributes.get<bool>("inverse");
  transform.mirrored = transform.inverse && context.attributes.get<bool>("onesided");
  transform.is_complex = x.sizes[last] == 2;
  const std::int64_t bins = transform.mirrored ? transform.length / 2 + 1 : transform.length;
  transform.given = std::min(x.sizes[axis], bins);
  for (std::int64_t i = 0; i < transform.length; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(transform.length);
    transform.cosine.push_back(std::cos(angle));
    transform.sine.push_back(std::sin(angle));
  }
  const std::vector<double> from = dense_values<double>(x);
  std::vector<double> to(static_cast<std::size_t>(y.element_count()));
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < last; ++i) inner *= x.sizes[i];
  const std::int64_t outer = static_cast<std::int64_t>(to.size()) / (y.sizes[axis] * inner * y.sizes[last]);
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const double* signal =  // of no places: nowhere
          transform.given == 0 ? nullptr : from.data() + (o * x.sizes[axis] * inner + i) * x.sizes[last];
      for (std::int64_t k = 0; k < y.sizes[axis]; ++k) {
        double number[2];
        transform.bin(k, signal, inner * x.sizes[last], &number[0], &number[1]);
        double* place = to.data() + ((o * y.sizes[axis] + k) * inner + i) * y.sizes[last];
        std::copy_n(number, y.sizes[last], place);
      }
    }
  }
  store_values(to, y);
  return {};
}

}  // namespace

std::vector<OpDef> dft_operators() {
  return {OpDef{
      .name = "dft",
      .doc = "The discrete Fourier transform along an axis, Y[k] = sum over j of x[j] * exp(-2 pi i j k / n); inverse: "
             "exp(+2 pi i j k / n), divided\n"
             "by n = `length`. The operand is cut to n places or counts as 0 behind its end. Complex numbers lie as "
             "(real, imaginary) on the last\n"
             "axis; one number there is real. onesided gives bins 0 … n/2; with inverse it reads them, as half of a "
             "spectrum whose other half are the\n"
             "conjugates, and gives real numbers.\n"
             "Source: ONNX operator DFT; numpy.fft.fft, ifft, rfft, irfft.",
      .inputs = {{"x", "(..., places, ..., 1 or 2), float"}},
      .outputs = {{"y", "(..., bins, ..., 2), or 1 with inverse and onesided; the dtype of x"}},
      .attributes = {{"axis", AttributeKind::integer, "which axis, from 0; not the last"},
                     {"length", AttributeKind::dim, "n, the number of points"},
                     {"inverse", AttributeKind::boolean, "from bins to places", Attribute(false)},
                     {"onesided", AttributeKind::boolean, "only bins 0 … n/2 are there", Attribute(false)}},
      .infer = infer_dft,
      .reference = reference_dft,
      .cut = cut_beside_axis,
      .layout = LayoutRule::row_major}};
}

}  // namespace polyphase

// DFT, STFT, the windows and MelWeightMatrix.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "import/compose/composer.h"
#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;
using Integers = Composer::Integers;

// A list of one number, or a scalar, as a size.
Result<Dim> one_size(NodeContext& node, std::size_t i, const std::string& role, DimRange range) {
  TRY(const Sizes found, node.sizes(i, range));
  if (found.size() != 1) return broken_rule(role + " must be one number, found " + node.type(i).text() + ".");
  return found[0];
}

constexpr DimRange positive{.low = 1};

Result<Values> convert_dft(NodeContext& node) {
  const bool inverse = node.flag("inverse", false);
  const bool onesided = node.flag("onesided", false);
  std::int64_t axis = node.version() < 20 ? node.integer("axis", 1) : -2;
  if (node.version() >= 20 && node.has(2)) {
    TRY(const auto given, node.fixed_integers(2, "axis"));
    if (given.size() != 1) return broken_rule("axis must be one number.");
    axis = given[0];
  }
  TRY(axis, node.axis(axis, node.rank(0)));
  const Dim given = node.shape(0)[static_cast<int>(axis)];
  Dim length = inverse && onesided ? (given - 1) * 2 : given;
  if (node.has(1)) {
    TRY(length, one_size(node, 1, "dft_length", positive));
  }
  Composer make(node);
  const DType own = node.type(0).dtype;
  Value* value =
      make.op("dft", {make.cast(node.input(0), computing_dtype(own))},
              Attributes({{"axis", axis}, {"length", length}, {"inverse", inverse}, {"onesided", onesided}}));
  return make.results({make.cast(value, own)});
}

// Frame f is the signal's places f·step … f·step + length - 1, times the window.
Result<Values> convert_stft(NodeContext& node) {
  const bool onesided = node.flag("onesided", true);
  if (node.rank(0) != 2 && node.rank(0) != 3)
    return broken_rule("the signal must be (B, places, 1 or 2), found " + node.type(0).text() + ".");
  TRY(const Dim step, one_size(node, 1, "frame_step", positive));
  Dim length(0);
  if (node.has(3)) {
    TRY(length, one_size(node, 3, "frame_length", positive));
  } else {
    if (!node.has(2)) return broken_rule("window or frame_length must be given.");
    length = node.shape(2)[0];
  }
  Composer make(node);
  const DType own = node.type(0).dtype;
  Value* signal = make.cast(node.input(0), computing_dtype(own));
  if (node.rank(0) == 2) signal = make.unsqueeze(signal, 2);
  const Dim frames = floor_div(node.shape(0)[1] - length, step) + 1;
  Value* starts = make.mul(make.counting(frames, DType::i64), make.dims({step}, true));
  Value* places = make.add(make.reshape(starts, {frames, Dim(1)}), make.counting(length, DType::i64));
  Value* framed = make.gather(signal, places, 1);
  if (node.has(2)) {
    if (node.rank(2) != 1) return broken_rule("the window must be a list, found " + node.type(2).text() + ".");
    make.require_equal(
        node.shape(2)[0], length,
        "STFT: the window must have frame_length (" + length.text() + ") entries, found " + node.type(2).text() + ".");
    framed = make.mul(framed, make.reshape(make.cast(node.input(2), make.dtype(framed)), {length, Dim(1)}));
  }
  Value* value =
      make.op("dft", {framed}, Attributes({{"axis", std::int64_t{2}}, {"length", length}, {"onesided", onesided}}));
  return make.results({make.cast(value, own)});
}

Result<DType> output_dtype(NodeContext& node) {
  const std::int64_t given = node.integer("output_datatype", 1);
  constexpr std::pair<int, DType> known[] = {{1, DType::f32},  {2, DType::u8},   {3, DType::i8},   {4, DType::u16},
                                             {5, DType::i16},  {6, DType::i32},  {7, DType::i64},  {10, DType::f16},
                                             {11, DType::f64}, {12, DType::u32}, {13, DType::u64}, {16, DType::bf16}};
  for (const auto& [number, dtype] : known) {
    if (number == given) return dtype;
  }
  return broken_rule("output_datatype is " + std::to_string(given) + "; it must be a numeric type.");
}

// a0 - a1·cos(2πi/N) + a2·cos(4πi/N), N the size or, if not periodic, one less.
Result<Values> convert_window(NodeContext& node) {
  TRY(const DType dtype, output_dtype(node));
  const bool periodic = node.flag("periodic", true);
  TRY(const Dim size, one_size(node, 0, "size", {.low = 0}));
  struct Window {
    std::string_view op_type;
    double a[3];
  };
  constexpr Window windows[] = {{"HannWindow", {0.5, 0.5, 0}},
                                {"HammingWindow", {25.0 / 46, 21.0 / 46, 0}},
                                {"BlackmanWindow", {0.42, 0.5, 0.08}}};
  const Window& window = *std::find_if(std::begin(windows), std::end(windows),
                                       [&](const Window& w) { return w.op_type == node.op_type(); });
  Composer make(node);
  Value* divisor = make.cast(make.dims({periodic ? size : size - 1}, true), DType::f64);
  Value* angle = make.div(make.mul(make.counting(size, DType::f64), 2 * std::numbers::pi), divisor);
  Value* sum = make.add(make.mul(make.op("cos", {angle}), -window.a[1]), window.a[0]);
  if (window.a[2] != 0) sum = make.add(sum, make.mul(make.op("cos", {make.mul(angle, 2)}), window.a[2]));
  return make.results({make.cast(sum, dtype)});
}

// Triangles over the bins of a spectrum, their corners evenly spaced by mel: 2595·log10(1 + f / 700).
Result<Values> convert_mel(NodeContext& node) {
  TRY(const DType dtype, output_dtype(node));
  TRY(const Dim filters, one_size(node, 0, "num_mel_bins", {.low = 0}));
  TRY(const Dim length, one_size(node, 1, "dft_length", {.low = 0}));
  Composer make(node);
  constexpr DType wide = DType::f64;
  const auto scalar = [&](std::size_t i) { return make.reshape(make.cast(node.input(i), wide), {}); };
  const auto mel_of = [&](Value* hertz) {
    return make.mul(make.op("log", {make.add(make.mul(hertz, 1.0 / 700), 1.0)}), 2595 / std::numbers::ln10);
  };
  Value* low = mel_of(scalar(3));
  Value* high = mel_of(scalar(4));
  Value* corners = make.cast(make.dims({filters + 2}, true), wide);
  Value* step = make.div(make.sub(high, low), corners);
  Value* mels = make.add(make.mul(make.counting(filters + 2, wide), step), low);
  Value* power = make.op("exp", {make.mul(mels, std::numbers::ln10 / 2595)});
  Value* hertz = make.mul(make.add(power, -1.0), 700);
  Value* scale = make.cast(make.dims({length + 1}, true), wide);
  Value* places = make.op("floor", {make.div(make.mul(hertz, scale), scalar(2))});
  Value* left = make.slice(places, 0, 0, filters);
  Value* centre = make.slice(places, 0, 1, filters);
  Value* right = make.slice(places, 0, 2, filters);
  const Dim bins = floor_div(length, Dim(2)) + 1;
  Value* bin = make.reshape(make.counting(bins, wide), {bins, Dim(1)});
  Value* zero = make.number(0, wide);
  Value* one = make.number(1, wide);
  const auto both = [&](const char* first, Value* a, const char* second, Value* b) {
    return make.op("and", {make.op(first, {bin, a}), make.op(second, {bin, b})});
  };
  const auto least_one = [&](Value* distance) { return make.op("max", {distance, one}); };
  Value* up = make.div(make.sub(bin, left), least_one(make.sub(centre, left)));
  Value* flat = make.op("equal", {left, centre});
  up = make.where(both("greater_equal", left, "less_equal", centre), make.where(flat, one, up), zero);
  Value* down = make.div(make.sub(right, bin), least_one(make.sub(right, centre)));
  Value* table = make.where(both("greater_equal", centre, "less", right), down, up);
  return make.results({make.cast(table, dtype)});
}

}  // namespace

std::vector<Converter> signal_converters() {
  return {
      {"BlackmanWindow", {17}, 1, 1, convert_window}, {"DFT", {17, 20}, 1, 3, convert_dft},
      {"HammingWindow", {17}, 1, 1, convert_window},  {"HannWindow", {17}, 1, 1, convert_window},
      {"MelWeightMatrix", {17}, 5, 5, convert_mel},   {"STFT", {17}, 2, 4, convert_stft},
  };
}

}  // namespace polyphase

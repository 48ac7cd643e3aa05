// Cutting a resampling: by its own coordinate rules, asked in the middle of a long axis.
#include <algorithm>
#include <cmath>

#include "ops/cut.h"
#include "ops/families.h"
#include "ops/resize_axis.h"

namespace polyphase {
namespace {

constexpr std::int64_t greatest_term = 64;  // of a ratio that is looked for

// A scale that is a ratio of small numbers, exactly.
std::optional<std::pair<std::int64_t, std::int64_t>> ratio_of(double scale) {
  for (std::int64_t parts = 1; parts <= greatest_term; ++parts) {
    const double times = scale * static_cast<double>(parts);
    if (times >= 1 && times <= greatest_term && times == std::floor(times) &&
        times / static_cast<double>(parts) == scale)
      return std::pair{static_cast<std::int64_t>(times), parts};
  }
  return std::nullopt;
}

// The least and the greatest place of the operand that a result place reads.
std::pair<std::int64_t, std::int64_t> reads(const Attributes& attributes, const ResizeAxis& axis, std::int64_t place) {
  const auto sources = resize_sources(attributes, axis, place);
  const auto [least, greatest] = std::minmax_element(sources.begin(), sources.end(),
                                                     [](const auto& a, const auto& b) { return a.place < b.place; });
  return {least->place, greatest->place};
}

}  // namespace

CutAnswer cut_resize(const CutContext& context) {
  const CutState& x = context.state(0);
  const Attributes& given = context.attributes();
  const auto& rule = given.get<std::string>("coordinate");
  const Dim& in = context.operand(0).shape[x.axis];
  const Dim& out = context.result().shape[x.axis];
  const auto& scales = given.get<std::vector<double>>("scales");
  const double scale = scales.empty() ? 0 : scales[static_cast<std::size_t>(x.axis)];
  if (in == out && (scale == 0 || scale == 1) && rule != "tf_crop_and_resize") return x;
  if (rule == "align_corners" || rule == "tf_crop_and_resize")
    return "maps " + axis_words(x) + " by its whole size (coordinates " + rule + ")";
  const auto slope = context.slope(out);
  const auto own = context.slope(in);
  if (!slope.has_value() || !own.has_value())
    return "resizes " + axis_words(x) + " from " + in.text() + " to " + out.text() + ", in no fixed ratio";
  const std::int64_t common = std::gcd(slope->first * own->second, slope->second * own->first);
  const std::int64_t times = slope->first * own->second / common;
  const std::int64_t parts = slope->second * own->first / common;
  const bool exact = out * Dim(parts) == in * Dim(times);
  const bool by_scale = scale != 0 && ratio_of(scale) == std::pair{times, parts} && rule != "half_pixel_symmetric";
  if (times > greatest_term || parts > greatest_term ||
      !(by_scale || (scale == 0 && exact) || (exact && ratio_of(scale) == std::pair{times, parts})))
    return "resizes " + axis_words(x) + " from " + in.text() + " to " + out.text() + ", in no fixed ratio";

  CutState y = scaled(x, times, parts);
  const std::int64_t reach = 8 * (parts + 4);  // beyond which no kernel reads
  // Of result places 0, 1, … the last that reads what is spoiled, plus 1. Not every one before it need: weights of 0
  // read nothing.
  const auto most_spoiled = [&](std::int64_t spoiled, const auto& reads_spoiled) {
    std::int64_t count = std::max<std::int64_t>(0, (spoiled - reach) * times / parts);
    for (std::int64_t t = count; t < (spoiled + reach) * times / parts; ++t) {
      if (reads_spoiled(t)) count = t + 1;
    }
    return count;
  };
  // A long axis whose middle no end reaches: result place 0 of the piece is `middle` there.
  const std::int64_t before = (x.low + x.high + 4 * reach) * parts;
  const std::int64_t middle = before * times / parts;
  ResizeAxis axis = resize_axis(given, static_cast<std::size_t>(x.axis), 2 * before, 2 * middle);
  y.low = most_spoiled(x.low, [&](std::int64_t t) { return reads(given, axis, middle + t).first < before + x.low; });
  y.high = most_spoiled(
      x.high, [&](std::int64_t t) { return reads(given, axis, middle - 1 - t).second > before - 1 - x.high; });
  context.need(in, 1 + std::max(x.low, x.high));           // the ends repeat their last places
  if (rule == "pytorch_half_pixel") context.need(out, 2);  // a single place maps otherwise
  return y;
}

}  // namespace polyphase

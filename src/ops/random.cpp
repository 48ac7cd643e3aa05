// random: seeded noise. The generator counts: Philox 4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2,
// 3", 2011) turns (seed, number of the element) into 128 bits, whatever was drawn before.
#include "ops/random.h"

#include <array>
#include <cmath>

#include "ops/elements.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

using Words = std::array<std::uint32_t, 4>;

Words philox(std::uint64_t seed, std::uint64_t counter) {
  Words x{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32U), 0, 0};
  auto key0 = static_cast<std::uint32_t>(seed);
  auto key1 = static_cast<std::uint32_t>(seed >> 32U);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * x[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * x[2];
    x = {static_cast<std::uint32_t>(b >> 32U) ^ x[1] ^ key0, static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32U) ^ x[3] ^ key1, static_cast<std::uint32_t>(a)};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return x;
}

// In [0, 1), on a grid of 2^-24, which f32 holds exactly.
double unit(std::uint32_t word) { return static_cast<double>(word >> 8U) * 0x1p-24; }

Result<std::vector<Type>> infer_random(const InferContext& context) {
  const DType dtype = context.attributes().get<DType>("dtype");
  if (!is_float(dtype)) return refuse(context, "the dtype must be a float, found " + std::string(name_of(dtype)) + ".");
  const auto& shape = context.attributes().get<std::vector<Dim>>("shape");
  for (const Dim& dim : shape) {
    TRY_VOID(context.require(0, DimCheck::Relation::less_equal, dim,
                             "random: sizes must not be negative, found " + dim.text() + "."));
  }
  return std::vector<Type>{{dtype, Shape(shape)}};
}

Result<void> reference_random(const ReferenceContext& context) {
  const TensorView& y = context.outputs[0];
  std::int64_t first = 0;
  for_each_block<1>(y.size_span(), {y.strides.data()}, RowOrder::logical,
                    [&](const auto& at, std::int64_t count, const auto& step) {
                      double numbers[block_elements];
                      draw(context.attributes, first, count, numbers);
                      write_block(element_at(y, at[0]), y.dtype, step[0], count, numbers);
                      first += count;
                    });
  return {};
}

}  // namespace

void draw(const Attributes& attributes, std::int64_t first, std::int64_t count, double* out) {
  const auto seed = static_cast<std::uint64_t>(attributes.get<std::int64_t>("key"));
  const double a = attributes.get<double>("a");
  const double b = attributes.get<double>("b");
  const bool normal = attributes.get<std::string>("distribution") == "normal";
  for (std::int64_t i = 0; i < count; ++i) {
    const Words words = philox(seed, static_cast<std::uint64_t>(first + i));
    if (normal) {  // Box and Muller's transform of two uniform numbers, the first in (0, 1]
      const double radius = std::sqrt(-2 * std::log((static_cast<double>(words[0]) + 1) * 0x1p-32));
      out[i] = a + b * radius * std::cos(6.283185307179586 * static_cast<double>(words[1]) * 0x1p-32);
    } else {
      out[i] = a + (b - a) * unit(words[0]);
    }
  }
}

std::vector<OpDef> random_operators() {
  return {OpDef{.name = "random",
                .doc = "Seeded noise: element i, in row-major order, follows from the seed and i alone, so every run, "
                       "thread count and machine draws the same numbers.\nThe generator is Philox 4x32-10.",
                .inputs = {},
                .outputs = {{"y", "the shape `shape`"}},
                .attributes = {{"shape", AttributeKind::dims, "the sizes of the result"},
                               {"dtype", AttributeKind::dtype, "a float dtype", Attribute(DType::f32)},
                               {"distribution",
                                AttributeKind::word,
                                "uniform from a to b, or normal of mean a and standard deviation b",
                                Attribute(std::string("uniform")),
                                {"uniform", "normal"}},
                               {"a", AttributeKind::real, "the low end, or the mean", Attribute(0.0)},
                               {"b", AttributeKind::real, "the high end, or the standard deviation", Attribute(1.0)},
                               {"key", AttributeKind::integer, "the seed: which sequence; all 64 bits count"}},
                .infer = infer_random,
                .reference = reference_random}};
}

}  // namespace polyphase

// Dim's algebra: normal forms, ranges, overflow, and random expressions held to plain integer arithmetic.
#include "base/dim.h"

#include <gtest/gtest.h>

#include <random>

namespace polyphase {
namespace {

const Dim H = Dim::symbol("H");
const Dim W = Dim::symbol("W");

std::string normal(std::string_view text) {
  const auto dim = parse_dim(text);
  return dim.ok() ? dim->text() : dim.error().text();
}

TEST(Dim, EqualSizesLookEqual) {
  EXPECT_EQ(normal("H + H"), "2*H");
  EXPECT_EQ(normal("2*(H + 1) - 2"), "2*H");
  EXPECT_EQ(normal("H*W - W*H"), "0");
  EXPECT_EQ(normal("(H + 1)*(H - 1)"), "H*H - 1");
  EXPECT_EQ(normal("1 + W + H"), "H + W + 1");
  EXPECT_EQ(normal("max(H, W) - max(W, H)"), "0");
  EXPECT_EQ(normal("min(H + 1, H)"), "H");
  EXPECT_EQ(normal("max(H, 0)"), "H");
}

TEST(Dim, FloorDivisionTakesOutWhatDivides) {
  EXPECT_EQ(normal("(2*H)//2"), "H");
  EXPECT_EQ(normal("(2*H + 1)//2"), "H");
  EXPECT_EQ(normal("(2*H + 3)//2"), "H + 1");
  EXPECT_EQ(normal("(4*H + 2)//4"), "H");
  EXPECT_EQ(normal("(3*H)//2"), "H + (H//2)");
  EXPECT_EQ(normal("(H//2)//3"), "H//6");
  EXPECT_EQ(normal("(6*H + 4)//4"), "H + (H//2) + 1");
  EXPECT_EQ(normal("H*W//H"), "W");
  EXPECT_EQ(normal("(H - 1)//2 + 1"), "(H + 1)//2");
  EXPECT_EQ(normal("-(H//2)"), "-(H//2)");
  EXPECT_EQ(normal("-H//2"), "-H + (H//2)");
  EXPECT_EQ(normal("3*(H//2)"), "3*(H//2)");
}

TEST(Dim, RemainderNeedsNoAtomOfItsOwn) {
  EXPECT_EQ(normal("H % 1"), "0");
  EXPECT_EQ(normal("(2*H) % 2"), "0");
  EXPECT_EQ(normal("7 % 3"), "1");
  EXPECT_EQ(normal("-7 % 3"), "2");
  EXPECT_TRUE(floor_mod(H, Dim(2)) == H - Dim(2) * floor_div(H, Dim(2)));
}

TEST(Dim, ConvolutionSizesUndoEachOther) {
  // A stride-2 convolution halves what a transposed one doubled.
  const Dim up = (H - 1) * 2 + 4 - 2;
  EXPECT_TRUE(up == Dim(2) * H);
  EXPECT_TRUE(floor_div(up + 2 - 4, Dim(2)) + 1 == H);
  EXPECT_TRUE(ceil_div(Dim(2) * H, Dim(2)) == H);
}

TEST(Dim, RangesProve) {
  const Dim small = Dim::symbol("S", {1, 16});
  EXPECT_EQ((small * 2 + 1).range(), (DimRange{3, 33}));
  EXPECT_EQ((small - small * 2).range(), (DimRange{-16, -1}));
  EXPECT_EQ(floor_div(small, Dim(4)).range(), (DimRange{0, 4}));
  EXPECT_EQ(floor_div(small, Dim(32)), Dim(0));
  EXPECT_EQ(min(small, Dim(5)).range(), (DimRange{1, 5}));
  EXPECT_EQ(max(small, Dim(5)).range(), (DimRange{5, 16}));
  EXPECT_TRUE(surely_less_equal(small, 16));
  EXPECT_FALSE(surely_less_equal(small, 15));
  EXPECT_TRUE(surely_different(small, 0));
  EXPECT_TRUE(surely_different(small, small + 1));
  EXPECT_FALSE(surely_different(H, W));
  EXPECT_EQ(H.range(), (DimRange{0, INT64_MAX}));
  EXPECT_EQ(Dim::symbol("one", {1, 1}), Dim(1));
}

TEST(Dim, OverflowPoisons) {
  EXPECT_TRUE((Dim(INT64_MAX) + 1).overflowed());
  EXPECT_TRUE((Dim(INT64_MAX) * 2).overflowed());
  EXPECT_TRUE((-Dim(INT64_MIN)).overflowed());
  EXPECT_TRUE(floor_div(H, Dim(0)).overflowed());
  EXPECT_TRUE(floor_div(Dim(INT64_MIN), Dim(-1)).overflowed());
  const Dim poisoned = H * INT64_MAX * 4;
  EXPECT_TRUE(poisoned.overflowed());
  EXPECT_TRUE((poisoned - poisoned).overflowed());
  EXPECT_FALSE(poisoned == poisoned);
  EXPECT_FALSE(poisoned.is_constant());
  EXPECT_EQ(poisoned.evaluate({{"H", 0}}), std::nullopt);
  EXPECT_EQ((H * INT64_MAX).evaluate({{"H", 2}}), std::nullopt);
}

// Sizes of a volume after several poolings, transposed convolutions and circular paddings.
TEST(Dim, CountsTheElementsOfDeepVolumes) {
  Dim count(4);
  std::int64_t value = 4;
  const DimBindings sizes = {{"A", 9}, {"B", 10}, {"C", 11}};
  for (const std::string name : {"A", "B", "C"}) {
    const Dim pooled = floor_div(Dim::symbol(name, {0, INT64_MAX}) + 1, Dim(2));
    const Dim enlarged = (floor_div(floor_div(pooled + 1, Dim(2)) + pooled, Dim(2)) + pooled) * 4;
    const Dim size = enlarged + max(0, enlarged - max(0, enlarged - 20) - 18) + max(0, min(1, enlarged - 18)) - 18;
    count *= size;
    value *= *size.evaluate(sizes);
  }
  EXPECT_EQ(count.evaluate(sizes), value);
}

TEST(Dim, EvaluatesOnlyWhatIsKnown) {
  EXPECT_EQ((H * 2 + W).evaluate({{"H", 3}, {"W", 4}}), 10);
  EXPECT_EQ((H + W).evaluate({{"H", 3}}), std::nullopt);
  EXPECT_EQ(floor_div(Dim(7), H).evaluate({{"H", 0}}), std::nullopt);
  EXPECT_EQ((H * 2 + W).substitute({{"W", H * 3}}).text(), "5*H");
  EXPECT_EQ(floor_div(H, Dim(2)).substitute({{"H", W * 4}}).text(), "2*W");
}

TEST(Dim, RefusesWhatItCannotRead) {
  EXPECT_EQ(normal("H +"),
            "size expression 'H +': expected a number, a name or '(' at character 4. Write integers, names, + - * // % "
            "( ), min(a, b) and max(a, b).");
  EXPECT_EQ(normal("9223372036854775807 + 1"),
            "size expression '9223372036854775807 + 1' leaves 64-bit arithmetic. Use smaller numbers.");
  EXPECT_EQ(normal("-9223372036854775808"), "-9223372036854775808");
  for (const char* bad : {"", "H W", "(H", "H)", "1.5", "H//", "min(H)", "99999999999999999999", "H^2", "H//0"}) {
    EXPECT_FALSE(parse_dim(bad).ok()) << bad;
  }
  EXPECT_FALSE(parse_dim(std::string(1000, '(') + "H" + std::string(1000, ')')).ok());
  EXPECT_FALSE(parse_dim(std::string(100000, '-') + "(" + std::string(100000, '(')).ok());
}

// A random expression as a Dim and as its value under random bindings.
struct Sample {
  Dim dim;
  std::optional<std::int64_t> value;
};

class Generator {
 public:
  Generator(std::uint64_t seed, DimBindings bindings) : random_(seed), bindings_(std::move(bindings)) {}

  Sample make(int depth) {
    const auto kind = depth == 0 ? random_() % 2 : random_() % 9;
    if (kind == 0) return constant(static_cast<std::int64_t>(random_() % 15) - 7);
    if (kind == 1) {
      const std::string name(1, static_cast<char>('A' + random_() % 3));
      return {Dim::symbol(name, {-5, 9}), bindings_.at(name)};
    }
    const Sample a = make(depth - 1);
    const Sample b = kind == 7 ? constant(1 + static_cast<std::int64_t>(random_() % 6)) : make(depth - 1);
    if (!a.value.has_value() || !b.value.has_value()) return {a.dim + b.dim, std::nullopt};
    switch (kind) {
      case 2:
        return {a.dim + b.dim, *a.value + *b.value};
      case 3:
        return {a.dim - b.dim, *a.value - *b.value};
      case 4:
        return {a.dim * b.dim, *a.value * *b.value};
      case 5:
        return {min(a.dim, b.dim), std::min(*a.value, *b.value)};
      case 6:
        return {max(a.dim, b.dim), std::max(*a.value, *b.value)};
      default: {
        if (*b.value == 0) return a;
        return {floor_div(a.dim, b.dim), floored(*a.value, *b.value)};
      }
    }
  }

 private:
  static Sample constant(std::int64_t value) { return {Dim(value), value}; }
  static std::int64_t floored(std::int64_t a, std::int64_t b) {
    const std::int64_t q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
  }
  std::mt19937_64 random_;
  DimBindings bindings_;
};

TEST(Dim, RandomExpressionsMeanWhatIntegersMean) {
  std::mt19937_64 random(11);
  int checked = 0;
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    DimBindings bindings;
    for (const char* name : {"A", "B", "C"}) bindings[name] = static_cast<std::int64_t>(random() % 15) - 5;
    const Sample sample = Generator(seed, bindings).make(4);
    if (sample.dim.overflowed() || !sample.value.has_value()) continue;
    const auto found = sample.dim.evaluate(bindings);
    if (!found.has_value()) continue;  // a division by 0 that the plain form never reaches
    ++checked;
    ASSERT_EQ(*found, *sample.value) << "seed " << seed << ": " << sample.dim.text();
    const DimRange range = sample.dim.range();
    ASSERT_LE(range.low, *found) << "seed " << seed << ": " << sample.dim.text();
    ASSERT_GE(range.high, *found) << "seed " << seed << ": " << sample.dim.text();

    const std::map<std::string, DimRange, std::less<>> symbols{{"A", {-5, 9}}, {"B", {-5, 9}}, {"C", {-5, 9}}};
    const auto again = parse_dim(sample.dim.text(), symbols);
    ASSERT_TRUE(again.ok()) << "seed " << seed << ": " << again.error().message;
    ASSERT_TRUE(*again == sample.dim) << "seed " << seed << ": '" << sample.dim.text() << "' read back as '"
                                      << again->text() << "'";
  }
  EXPECT_GT(checked, 15000);
}

}  // namespace
}  // namespace polyphase

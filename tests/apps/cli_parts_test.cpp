// The parts of the command line that need no engine: sizes, statistics, comparison, tables, the layered drawing.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "cli/differences.h"
#include "cli/layered.h"
#include "cli/sizes.h"
#include "cli/statistics.h"
#include "cli/table.h"
#include "cli/terminal.h"

namespace polyphase::cli {
namespace {

api::Tensor floats(std::vector<std::int64_t> sizes, const std::vector<float>& values) {
  api::Tensor tensor = api::Tensor::allocate(DType::f32, std::move(sizes)).value();
  std::memcpy(tensor.data(), values.data(), values.size() * sizeof(float));
  return tensor;
}

TEST(Compare, WithinTolerance) {
  const auto a = floats({2, 2}, {1, 2, 3, 1000});
  const auto b = floats({2, 2}, {1, 2.0005F, 3, 1000.5F});
  const Difference d = compare_tensors(a, b, 1e-3, 1e-5, 10);
  EXPECT_TRUE(d.equal());
  EXPECT_EQ(d.elements, 4);
  EXPECT_NEAR(d.largest_absolute, 0.5, 1e-6);
  EXPECT_TRUE(d.worst.empty());
}

TEST(Compare, WorstPlacesComeFirst) {
  const auto a = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto b = floats({2, 3}, {1, 2.1F, 3, 9, 5, 6.01F});
  const Difference d = compare_tensors(a, b, 1e-3, 0, 2);
  EXPECT_FALSE(d.equal());
  EXPECT_EQ(d.outside, 3);
  ASSERT_EQ(d.worst.size(), 2U);
  EXPECT_EQ(d.worst[0].index, (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(d.worst[0].found, 4);
  EXPECT_EQ(d.worst[0].expected, 9);
  EXPECT_EQ(d.worst[1].index, (std::vector<std::int64_t>{0, 1}));
}

TEST(Compare, NanAndInfinityEqualThemselvesOnly) {
  const float nan = NAN;
  const float inf = INFINITY;
  EXPECT_TRUE(compare_tensors(floats({3}, {nan, inf, -inf}), floats({3}, {nan, inf, -inf}), 0, 0, 10).equal());
  EXPECT_EQ(compare_tensors(floats({4}, {nan, 1, inf, inf}), floats({4}, {1, nan, -inf, 1}), 1e9, 1e9, 10).outside, 4);
  const Difference d = compare_tensors(floats({2}, {nan, 1}), floats({2}, {1, 1}), 0, 0, 10);
  EXPECT_EQ(d.found_nan, 1);
  EXPECT_EQ(d.expected_nan, 0);
}

TEST(Compare, IntegersMustBeEqualWhateverTheTolerance) {
  api::Tensor a = api::Tensor::allocate(DType::i64, {2}).value();
  api::Tensor b = api::Tensor::allocate(DType::i64, {2}).value();
  a.as<std::int64_t>()[1] = INT64_MAX;
  b.as<std::int64_t>()[1] = INT64_MAX - 1;  // the same as a double
  EXPECT_EQ(compare_tensors(a, b, 1, 1, 10).outside, 1);
}

TEST(Compare, ShapesAndTypesMustAgree) {
  EXPECT_EQ(compare_tensors(floats({2}, {1, 2}), floats({2, 1}, {1, 2}), 0, 0, 10).mismatch,
            "it is f32 2, expected f32 2x1");
  EXPECT_EQ(compare_tensors(floats({1}, {1}), api::Tensor::allocate(DType::i32, {1}).value(), 0, 0, 10).mismatch,
            "it is f32 1, expected i32 1");
  EXPECT_TRUE(compare_tensors(floats({1}, {0}), api::Tensor::allocate(DType::f64, {1}).value(), 0, 0, 10).equal());
}

TEST(Statistics, OfKnownNumbers) {
  const Statistics s = statistics_of({5, 1, 3, 2, 4});
  EXPECT_EQ(s.runs, 5U);
  EXPECT_EQ(s.median, 3);
  EXPECT_EQ(s.minimum, 1);
  EXPECT_EQ(s.p90, 5);
  EXPECT_FALSE(s.believable);
  EXPECT_EQ(percentile({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9), 9);
  EXPECT_EQ(percentile({1}, 0.99), 1);
}

TEST(Statistics, SteadyRunsAreBelievedDriftingOnesNot) {
  std::vector<double> steady;
  std::vector<double> drifting;
  for (int i = 0; i < 100; ++i) {
    steady.push_back(1.0 + 0.01 * (i % 3));
    drifting.push_back(i < 50 ? 1.0 : 1.3);
  }
  EXPECT_TRUE(statistics_of(steady).believable);
  EXPECT_EQ(statistics_of(drifting).reason, "the medians of batches of runs differ by 26 % (believable: up to 10 %)");
}

TEST(Sizes, RangesAreRead) {
  const auto range = [](const std::string& text) { return parse_range(text, "--dim H"); };
  EXPECT_EQ(range("64..1024")->low, 64);
  EXPECT_EQ(range("64..1024")->high, 1024);
  EXPECT_EQ(range("512")->low, 512);
  EXPECT_EQ(range("512")->high, 512);
  EXPECT_EQ(range("8..")->high, INT64_MAX);
  EXPECT_EQ(range("..9")->high, 9);
  for (const char* broken : {"", "..", "x", "1..x", "9..1", "-4", "1...2", "1-2"})
    EXPECT_FALSE(range(broken).ok()) << broken;
  EXPECT_EQ(
      range("9..1").error().text(),
      "--dim H has the range '9..1', expected a number or LOW..HIGH with LOW at most HIGH. For example 64..1024.");
}

TEST(Sizes, FlagsAreRead) {
  const auto flags = parse_size_flags({"x=1x3xHxW", "y=N"}, {"H=64..1024"}, {"x=1x3x512x512"});
  ASSERT_TRUE(flags.ok()) << flags.error().text();
  EXPECT_EQ(flags->shapes.at("x"), (std::vector<std::string>{"1", "3", "H", "W"}));
  EXPECT_EQ(flags->dims.at("H").low, 64);
  EXPECT_EQ(flags->tune_for.at("x"), (Sizes{1, 3, 512, 512}));
  EXPECT_FALSE(parse_size_flags({"1x3x4"}, {}, {}).ok());
  EXPECT_FALSE(parse_size_flags({"x="}, {}, {}).ok());
  EXPECT_FALSE(parse_size_flags({"x=1", "x=2"}, {}, {}).ok());
  EXPECT_FALSE(parse_size_flags({}, {}, {"x=1xH"}).ok());
}

TEST(Terminal, NamesCannotReachTheTerminalAsCommands) {
  EXPECT_EQ(plain("conv\x1b[2J\n"), "conv\\x1b[2J\\x0a");
  EXPECT_EQ(plain("größe"), "größe");
}

TEST(Terminal, NamesKeepTheirLettersAndLoseWhatIsNoText) {
  EXPECT_EQ(plain("caf\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x98\x80"), "caf\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x98\x80");
  EXPECT_EQ(plain("a\xff"
                  "b\xc3"),
            "a\\xffb\\xc3");
  EXPECT_EQ(plain("\xc2\x9b"
                  "31m"),
            "\\xc2\\x9b31m")
      << "U+009B begins a command on some terminals";
  EXPECT_EQ(plain("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a surrogate pair";
  EXPECT_EQ(character_bytes("\xc0\xaf"), 0U) << "overlong";
  EXPECT_EQ(character_bytes("\xf4\x90\x80\x80"), 0U) << "beyond U+10FFFF";
  EXPECT_EQ(character_bytes(""), 0U);
}

TEST(Terminal, SizesOfThings) {
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.50 KiB");
  EXPECT_EQ(human_bytes(std::uint64_t{5} << 30), "5.00 GiB");
  EXPECT_EQ(human_time(0.00123), "1.23 ms");
  EXPECT_EQ(shape_text(std::vector<std::string>{"1", "2*H + 1"}), "1x(2*H + 1)");
  EXPECT_EQ(shape_text(std::vector<std::int64_t>{}), "scalar");
}

TEST(Tables, ColumnsAlign) {
  Table table({{"name"}, {"ms", Table::Align::right}});
  table.add({"größe", "1"});
  table.add({"b", "100"});
  table.note("why");
  EXPECT_EQ(table.text(), "name    ms\ngröße    1\nb      100\n      why\n");
}

TEST(Layered, BoxesOfALayerKeepApartAndEdgesGoDown) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    const std::size_t count = 2 + random() % 40;
    std::vector<BoxSize> boxes;
    std::vector<std::pair<std::size_t, std::size_t>> edges;
    for (std::size_t i = 0; i < count; ++i) {
      boxes.push_back({20.0 + static_cast<double>(random() % 100), 30});
      for (std::size_t j = 0; j < i; ++j) {
        if (random() % 6 == 0) edges.emplace_back(j, i);
      }
    }
    const Drawing drawing = draw_layered(boxes, edges);
    ASSERT_EQ(drawing.centres.size(), count);
    ASSERT_EQ(drawing.edges.size(), edges.size());
    for (std::size_t i = 0; i < edges.size(); ++i) {
      EXPECT_LT(drawing.centres[edges[i].first].y, drawing.centres[edges[i].second].y);
      EXPECT_EQ(drawing.edges[i].front().x, drawing.centres[edges[i].first].x);
      EXPECT_EQ(drawing.edges[i].back().x, drawing.centres[edges[i].second].x);
    }
    for (std::size_t a = 0; a < count; ++a) {
      EXPECT_GE(drawing.centres[a].x - boxes[a].width / 2, 0);
      EXPECT_LE(drawing.centres[a].x + boxes[a].width / 2, drawing.width);
      for (std::size_t b = 0; b < a; ++b) {
        if (drawing.centres[a].y != drawing.centres[b].y) continue;
        EXPECT_GE(std::abs(drawing.centres[a].x - drawing.centres[b].x), (boxes[a].width + boxes[b].width) / 2)
            << a << " and " << b;
      }
    }
  }
}

}  // namespace
}  // namespace polyphase::cli

// The scanner of the text forms: tokens, numbers, strings, and errors that point at the place.
#include "base/scanner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace polyphase {
namespace {

TEST(Scanner, TakesTokensAndSkipsComments) {
  Scanner scanner("  add, # the rest is for people\n\t added");
  EXPECT_FALSE(scanner.take("ad"));
  EXPECT_TRUE(scanner.take("add"));
  EXPECT_TRUE(scanner.take(","));
  EXPECT_TRUE(scanner.next_is_word());
  EXPECT_EQ(scanner.word().value(), "added");
  EXPECT_TRUE(scanner.at_end());
}

TEST(Scanner, ReadsNumbers) {
  Scanner scanner("-9223372036854775808 18446744073709551615 -1.5e-3 inf -inf nan 7");
  EXPECT_EQ(scanner.integer().value(), INT64_MIN);
  EXPECT_EQ(scanner.natural().value(), UINT64_MAX);
  EXPECT_EQ(scanner.real().value(), -1.5e-3);
  EXPECT_EQ(scanner.real().value(), INFINITY);
  EXPECT_EQ(scanner.real().value(), -INFINITY);
  EXPECT_TRUE(std::isnan(scanner.real().value()));
  EXPECT_EQ(scanner.integer().value(), 7);
  EXPECT_FALSE(scanner.integer().ok());
  EXPECT_FALSE(Scanner("9223372036854775808").integer().ok());
  EXPECT_FALSE(Scanner("-1").natural().ok());
}

TEST(Scanner, PointsAtTheMistake) {
  Scanner scanner("first line\n  second )");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(scanner.word().ok());
  EXPECT_EQ(scanner.expect("(").error().message, "line 2, column 10: expected '(', found ')'.");
  Scanner end("x");
  ASSERT_TRUE(end.word().ok());
  EXPECT_EQ(end.expect("=").error().message, "line 1, column 2: expected '=', found the end.");
}

TEST(Scanner, QuotedTextSurvives) {
  std::string every;
  for (int c = 0; c < 256; ++c) every.push_back(static_cast<char>(c));
  for (const std::string& text :
       {every, std::string(), std::string("a\"b\\c\nd"), std::string("\\\""), std::string("\x01\x02")}) {
    const std::string quoted = quote(text);
    Scanner scanner(quoted);
    const auto again = scanner.quoted();
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_EQ(*again, text);
    EXPECT_TRUE(scanner.at_end());
  }
  for (const char* bad : {"\"open", "\"\\", "\"\\xzz\"", "plain"}) EXPECT_FALSE(Scanner(bad).quoted().ok()) << bad;
}

TEST(Scanner, UntilStopsOutsideBracketsAndQuotes) {
  Scanner scanner(R"(max(a, b), "x,\"," z)");
  EXPECT_EQ(scanner.until(","), "max(a, b)");
  EXPECT_TRUE(scanner.take(","));
  EXPECT_EQ(scanner.until(" "), R"("x,\",")");
  EXPECT_EQ(scanner.until(" "), "z");
  EXPECT_EQ(Scanner(R"("\\", y)").until(","), R"("\\")");
}

TEST(Scanner, ShortestReadsBackExactly) {
  for (const double value : {0.1, 1.0 / 3, 1e300, 5e-324, -0.0, 123456789.0, std::numeric_limits<double>::max()}) {
    EXPECT_EQ(Scanner(shortest(value)).real().value(), value);
  }
  EXPECT_EQ(shortest(0.1F), "0.1");
  EXPECT_EQ(shortest(-INFINITY), "-inf");
}

}  // namespace
}  // namespace polyphase

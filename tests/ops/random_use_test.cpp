// Random uses of every operator: whatever the operands and attributes, the shape rule answers or refuses, and what it
// takes the reference computes inside its memory. Nothing may abort, and sizes found with symbols must hold with
// numbers.
#include "ops/random_use.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "suite_size.h"

namespace polyphase {
namespace {

// POLYPHASE_FUZZ_USES sets how many uses of each operator are tried; POLYPHASE_FUZZ_SHOW prints each before it runs.
TEST(RandomUse, NothingAborts) {
  const Registry registry = Registry::built_in();
  const char* wished = std::getenv("POLYPHASE_FUZZ_USES");
  const std::uint64_t uses = wished != nullptr ? std::strtoull(wished, nullptr, 10) : 400;
  std::string never_legal;
  for (const auto& [name, op] : registry.all()) {
    std::uint64_t computed = 0;
    for (std::uint64_t seed = 0; seed < uses; ++seed) {
      SCOPED_TRACE(name + " seed " + std::to_string(seed));
      if (std::getenv("POLYPHASE_FUZZ_SHOW") != nullptr)
        std::fprintf(stderr, "%s seed %d\n", name.c_str(), static_cast<int>(seed));
      RandomUse use(*op, std::mt19937_64(seed));
      use.prepare();
      if (std::getenv("POLYPHASE_FUZZ_SHOW") != nullptr) std::fprintf(stderr, "  %s\n", use.text().c_str());
      use.run();
      ASSERT_EQ(use.fault(), "");
      computed += use.computed() ? 1U : 0U;
    }
    if (op->reference != nullptr && computed == 0) never_legal += " " + name;
  }
  EXPECT_EQ(never_legal, "");
}

TEST(RandomUse, OperandsOfOneDtypeAreThoseTheRuleWants) {
  const Registry registry = Registry::built_in();
  std::string never_compared;
  for (const auto& [name, op] : registry.all()) {
    bool compared = false;
    for (std::uint64_t seed = 0; seed < 3000; ++seed) {
      RandomUse use(*op, std::mt19937_64(seed));
      use.prepare();
      use.change_dtypes();
      ASSERT_EQ(use.fault(), "");
      compared = compared || use.dtypes_compared();
      if (seed > (test::sliced() ? 40U : 400U) && (compared || (op->one_dtype == 0 && test::sliced()))) break;
    }
    if (op->one_dtype != 0 && !compared) never_compared += " " + name;
  }
  EXPECT_EQ(never_compared, "");
}

}  // namespace
}  // namespace polyphase

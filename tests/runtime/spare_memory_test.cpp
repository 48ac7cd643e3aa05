// Spare memory: one block, of the size asked for, and only when nobody has it any more.
#include "runtime/spare_memory.h"

#include <gtest/gtest.h>

namespace polyphase {
namespace {

TEST(SpareMemory, HandsOnWhatNobodyHas) {
  const auto spare = std::make_shared<SpareMemory>();
  auto first = spare->take(1000).value();
  auto second = spare->take(1000).value();
  EXPECT_NE(first, second);
  const auto copy = first;
  const std::byte* const first_place = first.get();
  first.reset();
  EXPECT_NE(spare->take(1000).value().get(), first_place);  // the copy still has it
}

TEST(SpareMemory, KeepsOneBlockOfItsSize) {
  const auto spare = std::make_shared<SpareMemory>();
  auto first = spare->take(1 << 20).value();
  auto second = spare->take(1 << 20).value();
  const std::byte* const kept = first.get();
  first.reset();
  second.reset();  // one is kept already
  const auto other = spare->take(1 << 19).value();
  EXPECT_NE(other.get(), kept);
  EXPECT_EQ(spare->take(1 << 20).value().get(), kept);
}

TEST(SpareMemory, BlocksOutliveIt) {
  auto spare = std::make_shared<SpareMemory>();
  const auto block = spare->take(100).value();
  spare.reset();
  block.get()[99] = std::byte{1};
}

}  // namespace
}  // namespace polyphase

// Runs of a fused step's parts: their operands, their anchor, and the types between them.
#include "graph/part_run.h"

#include <gtest/gtest.h>

namespace polyphase {
namespace {

const Registry& operators() {
  static const Registry built_in = Registry::built_in();
  return built_in;
}

Part part(const char* op, std::vector<int> operands) {
  Part out;
  out.op = operators().find(op);
  EXPECT_NE(out.op, nullptr) << op;
  out.operands = std::move(operands);
  return out;
}

// %0 enters, %1 and %2 are read on the way; the last part reads %1 once more.
std::vector<Part> chain() {
  return {part("relu", {0}), part("add", {Part::running, 1}), part("mul", {2, Part::running}),
          part("sub", {Part::running, 1})};
}

using Operands = std::vector<int>;

TEST(PartRun, OfSeveralPartsHasEachOperandOnce) {
  const PartRun run = cut_parts(chain(), 1, 1, 4);
  EXPECT_EQ(run.operands, (Operands{Part::running, 1, 2}));
  EXPECT_EQ(run.anchor, 0U);
  ASSERT_EQ(run.parts.size(), 3U);
  EXPECT_EQ(run.parts[0].operands, (Operands{0, 1}));
  EXPECT_EQ(run.parts[1].operands, (Operands{2, Part::running}));
  EXPECT_EQ(run.parts[2].operands, (Operands{Part::running, 1}));
}

TEST(PartRun, KeepsTheAnchorThatItHolds) {
  EXPECT_EQ(cut_parts(chain(), 2, 1, 4).anchor, 1U);
  EXPECT_EQ(cut_parts(chain(), 2, 0, 2).anchor, 0U);
}

TEST(PartRun, OfOnePartHasItsOwnOperandsAlsoAbsentAndRepeatedOnes) {
  const std::vector<Part> parts = {part("relu", {0}), part("clip", {Part::running, Part::absent, 3}),
                                   part("mul", {1, 1})};
  const PartRun clip = cut_parts(parts, 0, 1, 2);
  EXPECT_EQ(clip.operands, (Operands{Part::running, Part::absent, 3}));
  EXPECT_EQ(clip.parts[0].operands, (Operands{0, Part::absent, 2}));
  const PartRun product = cut_parts(parts, 0, 2, 3);
  EXPECT_EQ(product.operands, (Operands{1, 1}));
  EXPECT_EQ(product.parts[0].operands, (Operands{0, 1}));
}

TEST(PartRun, KnowsTheTypesBetween) {
  const Type wide = {DType::f32, Shape{Dim(2), Dim(3)}};
  const Type row = {DType::f32, Shape{Dim(3)}};
  std::vector<OperandInfo> infos(3);
  infos[0].type = &row;
  infos[1].type = &wide;
  infos[2].type = &row;
  const auto types = types_of_parts(chain(), infos);
  ASSERT_TRUE(types.ok());
  ASSERT_EQ(types->size(), 4U);
  EXPECT_EQ((*types)[0].shape, row.shape);
  EXPECT_EQ((*types)[1].shape, wide.shape);
  EXPECT_EQ((*types)[3].shape, wide.shape);
  const Type other = {DType::f32, Shape{Dim(5)}};
  infos[2].type = &other;
  EXPECT_FALSE(types_of_parts(chain(), infos).ok());
}

}  // namespace
}  // namespace polyphase

// Engines that contradict themselves behind right checksums: each is refused with the reason, none runs.
#include "engine/check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "engine/file.h"
#include "engine/sample.h"

namespace polyphase {
namespace {

struct Forgery {
  const char* name;
  std::function<void(Engine&)> change;
  const char* message;  // behind "the program contradicts itself: "
};

Dim symbol(const char* name) { return Dim::symbol(name); }

std::vector<Forgery> forgeries() {
  const auto step = [](Engine& e, std::size_t i = 0) -> Step& { return e.blocks[0].steps[i]; };
  return {
      {"input port", [](Engine& e) { e.inputs[0].value = 99; }, "input 'x' names no value."},
      {"negative port", [](Engine& e) { e.outputs[0].value = -7; }, "output 'y' names no value."},
      {"input is a constant", [](Engine& e) { e.inputs[0].value = 1; },
       "input 'x' does not live in the caller's memory."},
      {"two ports, one name",
       [](Engine& e) {
         e.outputs.push_back({"y", 3});
       },
       "output 'y' has no name of its own."},
      {"two ports, one value",
       [](Engine& e) {
         e.outputs.push_back({"z", 2});
       },
       "output 'z' shares its value with another."},
      {"constant index", [](Engine& e) { e.values[1].constant = 2; }, "value 'w' names constant 2 of 2."},
      {"constant too short",
       [](Engine& e) {
         e.values[1].type.shape = Shape{2, 3, 2, 3};
       },
       "constant 'w' of type f32[2, 3, 2, 3] has 96 bytes."},
      {"constant of packed bytes", [](Engine& e) { e.values[1].constant = 1; }, "value 'w' is a packed constant."},
      {"constant of unknown size",
       [](Engine& e) {
         e.values[1].type.shape = Shape{2, 3, 2, Dim::symbol("H")};
       },
       "constant 'w' of type f32[2, 3, 2, H] has 96 bytes."},
      {"alias index", [](Engine& e) { e.values[3].alias.value = 5; }, "value 'upper' lies inside value 5 of 5."},
      {"alias of an alias", [](Engine& e) { e.values[3].alias.value = 4; },
       "value 'upper' lies inside 'lower', which is itself inside another."},
      {"alias of itself", [](Engine& e) { e.values[3].alias.value = 3; },
       "value 'upper' lies inside 'upper', which is itself inside another."},
      {"alias strides", [](Engine& e) { e.values[3].alias.strides.pop_back(); },
       "value 'upper' has 3 strides for 4 axes."},
      {"alias of wider elements", [](Engine& e) { e.values[3].type.dtype = DType::f64; },
       "value 'upper' and its base 'y' have elements of different size."},
      {"undeclared size",
       [](Engine& e) {
         e.values[2].type.shape = Shape{1, 3, symbol("Q"), 16};
       },
       "size 'Q' is not declared."},
      {"undeclared size in an attribute",
       [&](Engine& e) {
         e.blocks[0].steps[0].parts[0].attributes.set("pre", std::vector<Dim>{symbol("Q"), 0});
       },
       "size 'Q' is not declared."},
      {"empty range",
       [](Engine& e) {
         e.symbols["H"] = {5, 4};
       },
       "size 'H' has an empty range."},
      {"no blocks", [](Engine& e) { e.blocks.clear(); }, "it has no steps."},
      {"a block nobody runs", [](Engine& e) { e.blocks.emplace_back(); }, "no step runs block 1."},
      {"read before write",
       [=](Engine& e) {
         step(e).inputs[0] = 4;
         e.outputs.clear();
         e.blocks[0].outputs.clear();
       },
       "step 'up1' reads 'lower' before it is written."},
      {"written twice", [=](Engine& e) { step(e, 1).outputs[0] = 3; },
       "value 'upper' is written a second time, by step 'up2'."},
      {"writes an input", [=](Engine& e) { step(e).outputs[0] = 0; }, "step 'up1' writes 'x', which is an input."},
      {"writes a constant", [=](Engine& e) { step(e).outputs[0] = 1; }, "step 'up1' writes 'w', which is a constant."},
      {"writes into an input through a window",
       [](Engine& e) {
         e.values[3].alias = {0, 0, {0, 0, 0, 0}};
       },
       "step 'up1' writes 'upper', which is an input."},
      {"operand index", [=](Engine& e) { step(e).inputs[1] = 1000000; }, "step 'up1' reads value 1000000 of 5."},
      {"output index", [=](Engine& e) { step(e).outputs[0] = -3; }, "step 'up1' writes value -3 of 5."},
      {"anchor", [=](Engine& e) { step(e).anchor = 1; }, "step 'up1' has no anchor among its parts."},
      {"no parts", [=](Engine& e) { step(e).parts.clear(); }, "step 'up1' has no anchor among its parts."},
      {"part operand", [=](Engine& e) { step(e).parts[0].operands[1] = 2; }, "step 'up1' has a part with operand 2."},
      {"running value of nothing", [=](Engine& e) { step(e).parts[0].operands[0] = Part::running; },
       "step 'up1' has a part with operand -1."},
      {"absent data", [=](Engine& e) { step(e).inputs[0] = -1; }, "step 'up1' lacks its first operand."},
      {"no rows", [=](Engine& e) { step(e).rows.clear(); }, "step 'up1' names 0 kernels."},
      {"row in capitals", [=](Engine& e) { step(e).rows[0] = "Reference"; },
       "step 'up1' names a kernel that is no plain word."},
      {"row with a terminal escape", [=](Engine& e) { step(e).rows[0] = "\x1b[2J"; },
       "step 'up1' names a kernel that is no plain word."},
      {"packed index", [=](Engine& e) { step(e, 1).packed = 2; }, "step 'up2' names packed constant 2 of 2."},
      {"packed raw constant", [=](Engine& e) { step(e, 1).packed = 0; },
       "step 'up2' takes packed weights whose format is no plain word."},
      {"packed twice", [=](Engine& e) { step(e, 1).pack_at_run = true; }, "step 'up2' names packed constant 1 of 2."},
      {"blocks of a kernel", [=](Engine& e) { step(e).blocks = {0}; }, "step 'up1' runs 1 blocks, expected 0."},
      {"a block that runs itself",
       [=](Engine& e) {
         e.blocks.emplace_back();
         e.blocks[1].steps.emplace_back();
         Step& loop = e.blocks[1].steps[0];
         loop.kind = StepKind::loop;
         loop.name = "l";
         loop.blocks = {1};
         e.blocks[0].steps.push_back(loop);
       },
       "block 1 is run by two steps."},
      {"symbols of a kernel", [=](Engine& e) { step(e).symbols = {"H"}; },
       "step 'up1' binds sizes but is no bind step."},
      {"wrong result",
       [](Engine& e) {
         e.values[3].type.shape = Shape{1, 3, 8, 15};
       },
       "the result 'upper' of step 'up1' is stored as f32[1, 3, 8, 15] but its operator gives f32[1, 3, 2*H, 16]."},
      {"wrong dtype", [](Engine& e) { e.values[3].type.dtype = DType::i32; },
       "the result 'upper' of step 'up1' is stored as i32[1, 3, 2*H, 16] but its operator gives f32[1, 3, 2*H, 16]."},
  };
}

// The sample whose weights w follow from "up.weight" by a negation: constant 0 holds them, constant 2 a table.
Engine refittable_sample(const Registry& registry) {
  Engine e = sample_engine(registry);
  e.constants.push_back({"table", Buffer::allocate(8).value(), {}});
  e.values[1].recipe = 3;
  Recipes& recipes = e.recipes;
  recipes.refittable = true;
  recipes.weights = {{.names = {"up.weight", "tied"}, .sizes = {2, 3, 2, 2}, .fixed_because = {}, .kept = 0},
                     {.names = {"other"}, .sizes = {5}, .state = EngineWeight::State::unused, .fixed_because = {}}};
  recipes.tables = {{.dtype = DType::f32, .sizes = {2}, .constant = 2}};
  Part part;
  part.op = &registry.at("neg");
  part.operands = {0};
  recipes.nodes.push_back({part, {0}, {}});
  return e;
}

std::vector<Forgery> recipe_forgeries() {
  return {
      {"a nameless weight", [](Engine& e) { e.recipes.weights[0].names.clear(); }, "a weight has no name."},
      {"one name twice", [](Engine& e) { e.recipes.weights[1].names = {"tied"}; },
       "the weight 'tied' has no name of its own."},
      {"a size below zero", [](Engine& e) { e.recipes.weights[1].sizes = {-1}; },
       "weight 'other' has impossible sizes."},
      {"sizes beyond the address space",
       [](Engine& e) {
         e.recipes.weights[1].sizes = {INT64_MAX, INT64_MAX};
       },
       "weight 'other' has impossible sizes."},
      {"kept nowhere", [](Engine& e) { e.recipes.weights[0].kept = 3; }, "weight 'up.weight' names constant 3 of 3."},
      {"kept packed", [](Engine& e) { e.recipes.weights[0].kept = 1; },
       "weight 'up.weight' of type f32[2, 3, 2, 2] has 100 bytes."},
      {"kept too short", [](Engine& e) { e.recipes.weights[0].kept = 2; },
       "weight 'up.weight' of type f32[2, 3, 2, 2] has 8 bytes."},
      {"a table of nothing", [](Engine& e) { e.recipes.tables[0].constant = -1; },
       "a table of its recipes names constant -1 of 3."},
      {"an operand of later", [](Engine& e) { e.recipes.nodes[0].inputs = {3}; },
       "operator neg of a recipe has an operand that is not there before it."},
      {"an operand of nothing", [](Engine& e) { e.recipes.nodes[0].inputs.clear(); },
       "operator neg of a recipe has an operand that is not there before it."},
      {"a running value", [](Engine& e) { e.recipes.nodes[0].part.operands = {Part::running}; },
       "operator neg of a recipe has an operand that is not there before it."},
      {"another type", [](Engine& e) { e.recipes.nodes[0].inputs = {2}; },
       "value 'w' does not follow from its recipe."},
      {"a recipe of nothing", [](Engine& e) { e.values[1].recipe = 4; }, "value 'w' does not follow from its recipe."},
      {"a recipe of an input", [](Engine& e) { e.values[0].recipe = 0; }, "value 'x' does not follow from its recipe."},
      {"a recipe of an engine without", [](Engine& e) { e.recipes = {}; },
       "value 'w' does not follow from its recipe."},
  };
}

class EngineCheck : public testing::Test {
 protected:
  Registry registry_ = Registry::built_in();
};

TEST_F(EngineCheck, TheSampleIsSound) {
  Engine engine = sample_engine(registry_);
  const auto checked = check_engine(engine, registry_);
  EXPECT_TRUE(checked.ok()) << checked.error().text();
  EXPECT_TRUE(check_aliases(engine, {{"H", 4096}}).ok());
}

TEST_F(EngineCheck, ForgeriesAreRefusedBehindRightChecksums) {
  const std::string path = (std::filesystem::temp_directory_path() / ("forged_" + std::to_string(::getpid()))).string();
  for (const Forgery& forgery : forgeries()) {
    SCOPED_TRACE(forgery.name);
    Engine engine = sample_engine(registry_);
    forgery.change(engine);
    ASSERT_TRUE(write_engine(engine, path).ok());
    const auto read = read_engine(path, registry_);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().message, std::string("the program contradicts itself: ") + forgery.message);
    EXPECT_EQ(read.error().code, ErrorCode::corrupt);
  }
  std::filesystem::remove(path);
}

Result<Engine> read_back(const Engine& engine, const Registry& registry) {
  const std::vector<std::byte> bytes = engine_bytes(engine);
  const auto copy = Buffer::allocate(bytes.size()).value();
  std::copy(bytes.begin(), bytes.end(), copy->data());
  return read_engine_bytes(copy, "forged.ppe", registry);
}

TEST_F(EngineCheck, ForgedRecipesAreRefused) {
  const auto read = read_back(refittable_sample(registry_), registry_);
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->recipes.nodes[0].results, (std::vector<Type>{{DType::f32, Shape{2, 3, 2, 2}}}));
  EXPECT_EQ(read->recipes.weights[0].names, (std::vector<std::string>{"up.weight", "tied"}));
  for (const Forgery& forgery : recipe_forgeries()) {
    Engine engine = refittable_sample(registry_);
    forgery.change(engine);
    const auto refused = read_back(engine, registry_);
    ASSERT_FALSE(refused.ok()) << forgery.name;
    EXPECT_EQ(refused.error().code, ErrorCode::corrupt) << forgery.name;
    EXPECT_NE(refused.error().message.find(forgery.message), std::string::npos)
        << forgery.name << ": " << refused.error().message;
  }
}

TEST_F(EngineCheck, WindowsOutsideTheirBaseAreRefusedForTheSizesAtHand) {
  Engine engine = sample_engine(registry_);
  const Dim h = Dim::symbol("H", {1, 4096});
  engine.values[4].alias.offset = h * 32 + 1;
  EXPECT_TRUE(check_engine(engine, registry_).ok()) << "only the sizes of a run can tell";
  EXPECT_EQ(check_aliases(engine, {{"H", 3}}).error().message,
            "the program contradicts itself: value 'lower' does not lie inside 'y'.");
  engine.values[4].alias.offset = h * 32;
  EXPECT_TRUE(check_aliases(engine, {{"H", 3}}).ok());
  engine.values[4].alias.strides[2] = -16;
  EXPECT_TRUE(check_aliases(engine, {{"H", 2}}).ok()) << "a window may run backwards inside its base";
  engine.values[4].alias.offset = 0;
  EXPECT_FALSE(check_aliases(engine, {{"H", 2}}).ok());
  engine.values[4].alias.strides[1] = INT64_MAX / 2;
  EXPECT_FALSE(check_aliases(engine, {{"H", 2}}).ok()) << "no overflow";
}

TEST_F(EngineCheck, SizesBeyondTheAddressSpaceAreRefused) {
  Engine engine = sample_engine(registry_);
  engine.symbols["H"] = {0, INT64_MAX};
  EXPECT_EQ(check_aliases(engine, {{"H", std::int64_t{1} << 60}}).error().message,
            "the program contradicts itself: value 'x' would have the sizes [1, 2, 1152921504606846976, 8].");
  EXPECT_FALSE(check_aliases(engine, {{"H", -1}}).ok());
  EXPECT_TRUE(check_aliases(engine, {{"H", 0}}).ok());
}

TEST_F(EngineCheck, WhatIsNotProvedBecomesACheck) {
  Engine engine = sample_engine(registry_);
  engine.symbols["K"] = {1, 4096};
  const Dim k = Dim::symbol("K", {1, 4096});
  engine.values[3].type.shape = Shape{1, 3, k, 16};
  const std::size_t before = engine.checks.size();
  ASSERT_TRUE(check_engine(engine, registry_).ok());
  ASSERT_EQ(engine.checks.size(), before + 1);
  EXPECT_EQ(engine.checks.back().left, k);
  EXPECT_EQ(engine.checks.back().why, "axis 2 of the result 'upper' of step 'up1' (K) must be 2*H");
  ASSERT_TRUE(check_engine(engine, registry_).ok());
  EXPECT_EQ(engine.checks.size(), before + 1) << "found again, not added again";
}

TEST_F(EngineCheck, UnknownOperatorsAreNamed) {
  OpDef op = registry_.at("conv_transpose");
  op.name = "warp";
  Registry larger = Registry::built_in();
  ASSERT_TRUE(larger.add(std::make_shared<const OpDef>(op)).ok());
  Engine engine = sample_engine(registry_);
  for (Step& step : engine.blocks[0].steps) step.parts[0].op = larger.find("warp");
  const std::string path = (std::filesystem::temp_directory_path() / ("warp_" + std::to_string(::getpid()))).string();
  ASSERT_TRUE(write_engine(engine, path).ok());
  EXPECT_EQ(read_engine(path, registry_).error().message,
            "the engine uses operator 'warp', which this Polyphase does not have.");
  EXPECT_FALSE(check_engine(engine, registry_).ok());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace polyphase

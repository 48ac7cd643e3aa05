// The sample engine, built by hand as the compiler would.
#include "engine/sample.h"

#include <gtest/gtest.h>

namespace polyphase {
namespace {

std::shared_ptr<Buffer> bytes_of(std::size_t count, int seed) {
  auto buffer = Buffer::allocate(count).value();
  for (std::size_t i = 0; i < count; ++i)
    buffer->data()[i] = static_cast<std::byte>((i * 31 + static_cast<std::size_t>(seed)) & 255);
  return buffer;
}

EngineValue window(const std::string& name, const Dim& h, const Dim& offset) {
  EngineValue value;
  value.name = name;
  value.type = {DType::f32, Shape{1, 3, h * 2, 16}};
  value.layout = Layout::row_major(4);
  value.storage = Storage::alias;
  value.alias = {2, offset, {h * 192, h * 64, 16, 1}};
  return value;
}

Step deconvolution(const Registry& registry, const std::string& name, int output, bool packed) {
  Step step;
  step.name = name;
  Part part;
  part.op = &registry.at("conv_transpose");
  part.attributes = part.op
                        ->complete({{"stride", std::vector<std::int64_t>{2, 2}},
                                    {"dilation", std::vector<std::int64_t>{1, 1}},
                                    {"pre", std::vector<Dim>{0, 0}},
                                    {"post", std::vector<Dim>{0, 0}}})
                        .value();
  part.operands = {0, 1};
  step.parts = {part};
  step.inputs = {0, 1};
  step.outputs = {output};
  step.rows = {"reference"};
  if (packed) step.packed = 1;
  return step;
}

}  // namespace

Engine sample_engine(const Registry& registry) {
  const Dim h = Dim::symbol("H", {1, 4096});
  Engine engine;
  engine.model_name = "sample";
  engine.producer = "polyphase test";
  engine.cluster = "scalar";
  engine.symbols = {{"H", {1, 4096}}};
  engine.values.resize(3);
  engine.values[0].name = "x";
  engine.values[0].type = {DType::f32, Shape{1, 2, h, 8}};
  engine.values[0].storage = Storage::input;
  engine.values[1].name = "w";
  engine.values[1].type = {DType::f32, Shape{2, 3, 2, 2}};
  engine.values[1].storage = Storage::constant;
  engine.values[1].constant = 0;
  engine.values[2].name = "y";
  engine.values[2].type = {DType::f32, Shape{1, 3, h * 4, 16}};
  engine.values[2].storage = Storage::output;
  for (EngineValue& value : engine.values) value.layout = Layout::row_major(4);
  engine.values.push_back(window("upper", h, 0));
  engine.values.push_back(window("lower", h, h * 32));
  engine.inputs = {{"x", 0}};
  engine.outputs = {{"y", 2}};
  engine.constants = {{"w", bytes_of(96, 1), ""}, {"w packed", bytes_of(100, 2), "panels/1"}};
  engine.blocks.resize(1);
  engine.blocks[0].inputs = {0};
  engine.blocks[0].outputs = {2};
  engine.blocks[0].steps = {deconvolution(registry, "up1", 3, false), deconvolution(registry, "up2", 4, true)};
  engine.checks = {{h, DimCheck::Relation::less_equal, Dim(4096), "H is at most 4096"}};
  engine.remarks = {"up1: nothing fused"};
  return engine;
}

}  // namespace polyphase

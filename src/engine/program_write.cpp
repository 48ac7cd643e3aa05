// Engine → FlatBuffers. Everything is written in the engine's own order, so equal engines give equal bytes.
#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "engine/engine_generated.h"
#include "engine/program.h"
#include "ops/custom.h"

namespace polyphase {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using Text = Offset<flatbuffers::String>;
using Texts = Offset<flatbuffers::Vector<Text>>;
using Integers = Offset<flatbuffers::Vector<std::int32_t>>;

class ProgramWriter {
 public:
  std::vector<std::byte> write(const Engine& engine, std::span<const ConstantPlace> places) {
    std::vector<Offset<program::Symbol>> symbols;
    for (const auto& [name, range] : engine.symbols)
      symbols.push_back(program::CreateSymbol(out_, text(name), range.low, range.high));
    std::vector<Offset<program::Value>> values;
    for (const EngineValue& item : engine.values) values.push_back(value(item));
    std::vector<Offset<program::Constant>> constants;
    for (std::size_t i = 0; i < engine.constants.size(); ++i) {
      const EngineConstant& item = engine.constants[i];
      constants.push_back(
          program::CreateConstant(out_, text(item.name), text(item.format), places[i].offset, places[i].size_bytes));
    }
    std::vector<Offset<program::Block>> blocks;
    for (const Block& item : engine.blocks) blocks.push_back(block(item));
    std::vector<Offset<program::Check>> checks;
    for (const DimCheck& item : engine.checks) {
      checks.push_back(program::CreateCheck(out_, text(item.left.text()), static_cast<std::uint8_t>(item.relation),
                                            text(item.right.text()), text(item.why)));
    }
    const auto inputs = ports(engine.inputs);
    const auto outputs = ports(engine.outputs);
    std::vector<Offset<program::PluginUse>> plugins;
    for (const OpDef* op : plugin_operators(engine))
      plugins.push_back(program::CreatePluginUse(out_, text(op->name), op->custom->version()));
    const auto plugin_list =
        plugins.empty() ? Offset<flatbuffers::Vector<Offset<program::PluginUse>>>() : out_.CreateVector(plugins);
    const auto recipe_list = engine.recipes.refittable ? recipes(engine.recipes) : Offset<program::Recipes>();
    out_.Finish(program::CreateProgram(
        out_, text(engine.model_name), text(engine.producer), text(engine.cluster), out_.CreateVector(symbols), inputs,
        outputs, out_.CreateVector(values), out_.CreateVector(constants), out_.CreateVector(blocks),
        out_.CreateVector(checks), texts(engine.remarks), recipe_list, cuts(engine.cuts), plugin_list));
    std::vector<std::byte> bytes(out_.GetSize());
    std::memcpy(bytes.data(), out_.GetBufferPointer(), bytes.size());
    return bytes;
  }

 private:
  Text text(const std::string& words) { return out_.CreateString(words); }
  Texts texts(const std::vector<std::string>& words) { return out_.CreateVectorOfStrings(words); }
  Texts sizes(const std::vector<Dim>& dims) {
    std::vector<std::string> words;
    for (const Dim& dim : dims) words.push_back(dim.text());
    return texts(words);
  }
  Integers integers(const std::vector<int>& items) {
    return out_.CreateVector(std::vector<std::int32_t>(items.begin(), items.end()));
  }

  Offset<flatbuffers::Vector<Offset<program::Port>>> ports(const std::vector<EnginePort>& items) {
    std::vector<Offset<program::Port>> out;
    for (const EnginePort& port : items) out.push_back(program::CreatePort(out_, text(port.name), port.value));
    return out_.CreateVector(out);
  }

  Offset<program::Value> value(const EngineValue& item) {
    const auto name = text(item.name);
    const auto shape = sizes(item.type.shape.dims());
    const auto layout = out_.CreateVector(item.layout.order());
    const bool alias = item.storage == Storage::alias;
    const Text offset = alias ? text(item.alias.offset.text()) : Text();
    const Texts strides = alias ? sizes(item.alias.strides) : Texts();
    return program::CreateValue(out_, name, static_cast<std::uint8_t>(item.type.dtype), shape, layout,
                                static_cast<std::uint8_t>(item.storage), item.constant, item.alias.value, offset,
                                strides, item.recipe);
  }

  Offset<program::Recipes> recipes(const Recipes& from) {
    std::vector<Offset<program::Weight>> weights;
    for (const EngineWeight& item : from.weights) {
      weights.push_back(program::CreateWeight(out_, texts(item.names), static_cast<std::uint8_t>(item.dtype),
                                              out_.CreateVector(item.sizes), static_cast<std::uint8_t>(item.state),
                                              text(item.fixed_because), item.checksum, item.kept));
    }
    std::vector<Offset<program::RecipeTable>> tables;
    for (const RecipeTable& item : from.tables) {
      tables.push_back(program::CreateRecipeTable(out_, static_cast<std::uint8_t>(item.dtype),
                                                  out_.CreateVector(item.sizes), item.constant));
    }
    std::vector<Offset<program::RecipeNode>> nodes;
    for (const RecipeNode& item : from.nodes)
      nodes.push_back(program::CreateRecipeNode(out_, part(item.part), integers(item.inputs)));
    return program::CreateRecipes(out_, out_.CreateVector(weights), out_.CreateVector(tables),
                                  out_.CreateVector(nodes));
  }

  Offset<flatbuffers::Vector<Offset<program::CutState>>> cut_states(const std::vector<CutState>& items) {
    std::vector<Offset<program::CutState>> out;
    for (const CutState& item : items)
      out.push_back(program::CreateCutState(out_, item.axis, item.up, item.down, item.low, item.high));
    return out_.CreateVector(out);
  }

  Offset<flatbuffers::Vector<Offset<program::Cut>>> cuts(const std::vector<EngineCut>& items) {
    std::vector<Offset<program::Cut>> out;
    for (const EngineCut& item : items) {
      std::vector<Offset<program::CutNeed>> needs;
      for (const CutNeed& need : item.needs)
        needs.push_back(program::CreateCutNeed(out_, text(need.size.text()), need.least, need.up, need.down));
      const auto symbol = text(item.symbol);
      const auto node = text(item.node);
      const auto refusal = text(item.refusal);
      const auto inputs = cut_states(item.inputs);
      const auto outputs = cut_states(item.outputs);
      out.push_back(
          program::CreateCut(out_, symbol, node, refusal, item.step, inputs, outputs, out_.CreateVector(needs)));
    }
    return out_.CreateVector(out);
  }

  Offset<program::Part> part(const Part& item) {
    return program::CreatePart(out_, text(item.op->name), text(print_attributes(item.attributes, &item.op->attributes)),
                               integers(item.operands));
  }

  Offset<program::Step> step(const Step& item) {
    std::vector<Offset<program::Part>> parts;
    for (const Part& one : item.parts) parts.push_back(part(one));
    const auto name = text(item.name);
    const auto part_list = out_.CreateVector(parts);
    const auto inputs = integers(item.inputs);
    const auto outputs = integers(item.outputs);
    const auto rows = texts(item.rows);
    const auto symbols = texts(item.symbols);
    const auto blocks = integers(item.blocks);
    return program::CreateStep(out_, static_cast<std::uint8_t>(item.kind), name, part_list,
                               static_cast<std::uint32_t>(item.anchor), inputs, outputs, rows, item.packed,
                               item.pack_at_run, symbols, blocks, item.measured);
  }

  Offset<program::Block> block(const Block& item) {
    std::vector<Offset<program::Step>> steps;
    for (const Step& one : item.steps) steps.push_back(step(one));
    const auto inputs = integers(item.inputs);
    const auto outputs = integers(item.outputs);
    return program::CreateBlock(out_, inputs, outputs, out_.CreateVector(steps));
  }

  FlatBufferBuilder out_{1 << 16};
};

}  // namespace

std::vector<const OpDef*> plugin_operators(const Engine& engine) {
  std::map<std::string_view, const OpDef*> found;
  const auto meet = [&](const Part& part) {
    if (part.op->custom != nullptr) found[part.op->name] = part.op;
  };
  for (const Block& block : engine.blocks) {
    for (const Step& step : block.steps) std::for_each(step.parts.begin(), step.parts.end(), meet);
  }
  for (const RecipeNode& node : engine.recipes.nodes) meet(node.part);
  std::vector<const OpDef*> out;
  for (const auto& [name, op] : found) out.push_back(op);
  return out;
}

std::vector<std::byte> write_program(const Engine& engine, std::span<const ConstantPlace> places) {
  return ProgramWriter().write(engine, places);
}

}  // namespace polyphase

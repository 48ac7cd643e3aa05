// Engines as lines.
#include "lower/program_text.h"

namespace polyphase {
namespace {

std::string value_text(const Engine& engine, int index) {
  if (index < 0) return "-";
  const EngineValue& value = engine.values[static_cast<std::size_t>(index)];
  switch (value.storage) {
    case Storage::input:
    case Storage::output:
      return "!" + value.name;
    case Storage::constant:
      return value.name + (value.constant < 0 ? "=packed" : "=constant");
    case Storage::arena:
      return value.name;
    case Storage::alias:
      break;
  }
  const std::string offset = value.alias.offset == 0 ? "" : "+" + value.alias.offset.text();
  return value.name + "@" + value_text(engine, value.alias.value) + offset;
}

void append_block(const Engine& engine, std::size_t block, const std::string& indent, std::string& out) {
  constexpr std::string_view kinds[] = {"", "copy ", "bind ", "branch ", "loop "};
  for (const Step& step : engine.blocks[block].steps) {
    out += indent + std::string(kinds[static_cast<std::size_t>(step.kind)]);
    for (const Part& part : step.parts) out += (&part == &step.parts.front() ? "" : " + ") + part.op->name;
    for (const std::string& row : step.rows) out += " [" + row + "]";
    if (step.pack_at_run) out += " packs";
    out += " (";
    for (std::size_t i = 0; i < step.inputs.size(); ++i)
      out += (i == 0 ? "" : ", ") + value_text(engine, step.inputs[i]);
    out += ") ->";
    for (const int output : step.outputs) out += " " + value_text(engine, output);
    out += "\n";
    for (const int nested : step.blocks) {
      out += indent + "  block\n";
      append_block(engine, static_cast<std::size_t>(nested), indent + "    ", out);
    }
  }
}

}  // namespace

std::string program_text(const Engine& engine) {
  std::string out;
  append_block(engine, 0, "", out);
  return out;
}

}  // namespace polyphase

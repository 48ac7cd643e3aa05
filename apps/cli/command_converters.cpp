// polyphase converters: the operators of PyTorch that a program of torch.export may use.
#include <fmt/format.h>

#include <CLI/App.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "polyphase/diagnose.h"

namespace polyphase::cli {
namespace {

constexpr const char* converters_examples = R"(
Examples:
  polyphase converters
  polyphase converters conv_transpose
  polyphase converters --json)";

int list_converters(const std::string& part, bool json) {
  Json list = Json::array();
  std::size_t shown = 0;
  for (const api::ConverterInfo& converter : api::converters()) {
    if (converter.name.find(part) == std::string::npos) continue;
    ++shown;
    if (json) {
      list.push_back(
          {{"name", converter.name}, {"declaration", converter.declaration}, {"in_place", converter.in_place}});
    } else if (converter.in_place) {
      put(fmt::format("{}\n    {}, written into self\n", converter.name, converter.declaration));
    } else {
      put(fmt::format("{}\n    {}\n", converter.name, converter.declaration));
    }
  }
  if (json) {
    Json out = json_result("converters");
    out["converters"] = std::move(list);
    put_json(out);
    return exit_ok;
  }
  put(fmt::format("{} overloads\n", shown));
  return exit_ok;
}

}  // namespace

void add_converters(CLI::App& app, Run& run) {
  CLI::App* command =
      app.add_subcommand("converters", "List the operators of PyTorch programs (.pt2) that can be taken");
  const auto part = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  command->add_option("PART", *part, "Only those with this in their name");
  command->add_flag("--json", *json, "Report as JSON on stdout");
  command->footer(converters_examples);
  command->callback([part, json, &run] { run = [part, json] { return list_converters(*part, *json); }; });
}

}  // namespace polyphase::cli

// polyphase devices: what can run engines here.
#include <fmt/format.h>
#include <CLI/App.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"

namespace polyphase::cli {
namespace {

constexpr const char* devices_examples = R"(
Examples:
  polyphase devices
  polyphase devices --json)";

int list_devices(bool json) {
  const std::vector<api::DeviceInfo> devices = api::devices();
  if (json) {
    Json out = json_result("devices");
    out["devices"] = Json::array();
    for (const api::DeviceInfo& device : devices) {
      out["devices"].push_back({{"name", device.name},
                                {"target", device.cluster},
                                {"features", device.features},
                                {"cores", device.cores},
                                {"memory_bytes", device.memory_bytes}});
    }
    put_json(out);
    return exit_ok;
  }
  for (const api::DeviceInfo& device : devices) {
    put(fmt::format("{}\n  native target  {}\n  cores          {}\n  memory         {}\n  features       {}\n",
                    plain(device.name), device.cluster, device.cores, human_bytes(device.memory_bytes),
                    join(device.features, " ")));
  }
  return exit_ok;
}

}  // namespace

void add_devices(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("devices", "List what can run engines here");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Report as JSON on stdout");
  command->footer(devices_examples);
  command->callback([json, &run] { run = [json] { return list_devices(*json); }; });
}

}  // namespace polyphase::cli

// Puts the page together: its files, and the data between them.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "cli/page_data.h"
#include "cli/page_files.h"
#include "cli/terminal.h"
#include "io/whole_file.h"

namespace polyphase::cli {
namespace {

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32] = "";
  if (gmtime_r(&now, &parts) != nullptr) std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &parts);
  return text;
}

Json ports_json(const std::vector<api::Port>& ports, const std::vector<std::optional<Sizes>>& sizes) {
  Json out = Json::array();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    Json one = {{"name", shown_text(ports[i].name)}, {"dtype", name_of(ports[i].dtype)}, {"sizes", ports[i].sizes}};
    one["run_sizes"] = i < sizes.size() && sizes[i].has_value() ? Json(*sizes[i]) : Json(nullptr);
    out.push_back(std::move(one));
  }
  return out;
}

Json device_json() {
  const api::DeviceInfo device = api::devices().front();
  return {{"name", device.name},
          {"cluster", device.cluster},
          {"cores", device.cores},
          {"memory_bytes", device.memory_bytes}};
}

Json timing_json(const Inspected& all) {
  Json out = {{"threads", all.threads}, {"error", shown_text(all.timing_error, 1000)}, {"run_seconds", 0}};
  if (all.times.has_value()) {
    out["run_seconds"] = all.times->run_seconds;
    out["fastest_seconds"] = all.times->fastest_seconds;
    out["steps_seconds"] = all.times->steps_seconds;
    out["runs"] = all.times->run_count;
    out["noise"] = all.times->noise;
  }
  out["peak_flops"] = all.roof.peak_flops;
  out["bandwidths"] = all.roof.bandwidths;
  return out;
}

Json page_json(const Inspected& all) {
  Json out;
  out["version"] = api::version();
  out["written"] = now_text();
  out["file"] = shown_text(std::filesystem::path(all.path).filename().string());
  out["model_name"] = shown_text(all.info.model_name);
  out["producer"] = shown_text(all.info.producer);
  out["target"] = all.info.cluster;
  out["is_engine"] = all.was_engine;
  out["open_seconds"] = all.open_seconds;
  out["device"] = device_json();
  out["inputs"] = ports_json(all.inputs, {all.sizes.inputs.begin(), all.sizes.inputs.end()});
  out["outputs"] = ports_json(all.outputs, all.output_sizes);
  out["dims"] = Json::array();
  for (const auto& [name, range] : all.info.dims) {
    out["dims"].push_back({{"name", shown_text(name)},
                           {"low", range.low},
                           {"high", range.high == INT64_MAX ? Json(nullptr) : Json(range.high)}});
  }
  out["chosen"] = all.sizes.chosen;
  out["remarks"] = Json::array();
  for (const std::string& remark : all.info.remarks) {
    if (out["remarks"].size() == max_listed_changes) break;
    out["remarks"].push_back(shown_text(remark));
  }
  out["timing"] = timing_json(all);
  out["passes"] = all.passes.has_value() ? page_passes(*all.passes) : Json(nullptr);
  out["memory"] = page_memory(all);
  out["steps"] = page_steps(all);
  out["steps_left_out"] = all.report.steps.size() - out["steps"].size();
  out["steps_count"] = all.info.steps.size();
  out["weights"] = page_weights(all.info);
  out["weights_count"] = all.info.constants.size();
  out["weights_left_out"] = all.info.constants.size() - out["weights"].size();
  return out;
}

// JSON inside a script element: no '<' stays, so that nothing in it can end the element or begin a comment.
std::string script_safe(const std::string& json) {
  std::string out;
  out.reserve(json.size() + json.size() / 16);
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

Result<void> write_page(const std::string& path, const Inspected& all) {
  const std::string data = script_safe(page_json(all).dump(-1, ' ', false, Json::error_handler_t::replace));
  std::string script;
  for (const std::string_view file : page_scripts) script += file;
  std::string page;
  std::string_view rest = page_html;
  const std::pair<std::string_view, std::string_view> parts[] = {
      {"@style@", page_style}, {"@data@", data}, {"@script@", script}};
  for (const auto& [mark, text] : parts) {
    const std::size_t at = rest.find(mark);
    page += rest.substr(0, at);
    page += text;
    rest.remove_prefix(at + mark.size());
  }
  return io::write_whole_file(path, {page, rest});
}

}  // namespace polyphase::cli

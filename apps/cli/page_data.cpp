// Memory, steps and weights for the page.
#include "cli/page_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "cli/terminal.h"

namespace polyphase::cli {
namespace {

const api::ValueInfo& value_info(const api::EngineInfo& info, int index) {
  return info.values[static_cast<std::size_t>(index)];
}

// The `most` items for which `of` is largest, in their own order.
template <typename T, typename F>
std::vector<std::size_t> largest(const std::vector<T>& items, std::size_t most, F&& of) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() <= most) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return of(items[a]) > of(items[b]); });
  order.resize(most);
  std::sort(order.begin(), order.end());
  return order;
}

Json block_json(const api::EngineInfo& info, const api::PlacedValue& place) {
  Json out;
  if (place.value < 0) {
    const api::StepInfo& step = info.steps[static_cast<std::size_t>(place.first_step)];
    out = {{"name", shown_text("workspace of " + step.node)}, {"dtype", "bytes"}, {"workspace", true}};
  } else {
    const api::ValueInfo& value = value_info(info, place.value);
    out = {{"name", shown_text(value.name)}, {"dtype", name_of(value.dtype)}, {"workspace", false}};
  }
  out["sizes"] = place.sizes;
  out["bytes"] = place.size_bytes;
  out["offset"] = place.offset_bytes;
  out["first"] = place.first_step;
  out["last"] = place.last_step;
  out["arena"] = place.arena;
  return out;
}

// Where each step stands among the steps that run others, and as what: "then", "else", "body".
struct Nesting {
  std::vector<int> depth;
  std::vector<const char*> label;

  explicit Nesting(const std::vector<api::StepInfo>& steps) : depth(steps.size()), label(steps.size(), "") {
    std::map<int, std::pair<int, const char*>> blocks = {{0, {0, ""}}};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto here = blocks.find(steps[i].block);
      depth[i] = here == blocks.end() ? 0 : here->second.first;
      label[i] = here == blocks.end() ? "" : here->second.second;
      for (std::size_t b = 0; b < steps[i].blocks.size(); ++b)
        blocks[steps[i].blocks[b]] = {depth[i] + 1, steps[i].kind == "loop" ? "body" : b == 0 ? "then" : "else"};
    }
  }
};

Json candidates_json(const api::StepReport& step) {
  Json out = Json::array();
  for (const api::RowReport& row : step.rows) {
    out.push_back({{"row", row.row},
                   {"refusal", shown_text(row.refusal, 400)},
                   {"cost", row.cost_seconds},
                   {"measured", row.measured},
                   {"taken", row.taken}});
  }
  return out;
}

// Bytes of a value whose sizes are numbers; 0: they are not.
std::uint64_t bytes_of(const api::ValueInfo& value) {
  std::uint64_t bytes = size_bytes(value.dtype);
  for (const std::string& size : value.sizes) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), number);
    if (error != std::errc() || end != size.data() + size.size()) return 0;
    bytes *= number;
  }
  return bytes;
}

// The largest of the values that share the bytes tells what they are.
Json weight_json(const api::EngineInfo& info, const api::ConstantInfo& constant) {
  const api::ValueInfo* shown = nullptr;
  std::uint64_t original = 0;
  for (const int index : constant.values) {
    const api::ValueInfo& value = value_info(info, index);
    if (shown == nullptr || bytes_of(value) > bytes_of(*shown)) shown = &value;
    original = constant.format.empty() ? std::max(original, bytes_of(value)) : original;
  }
  if (shown != nullptr && !constant.format.empty()) original = bytes_of(*shown);
  return {{"name", shown_text(shown == nullptr ? constant.name : shown->name)},
          {"dtype", shown == nullptr ? "" : std::string(name_of(shown->dtype))},
          {"shape", shown == nullptr ? "" : shape_text(shown->sizes)},
          {"original_bytes", original},
          {"bytes", constant.size_bytes},
          {"format", constant.format},
          {"steps", constant.steps}};
}

}  // namespace

std::string shown_text(const std::string& text, std::size_t longest) {
  if (text.size() <= longest) return text;
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "…";
}

Json page_memory(const Inspected& all) {
  const api::Report& report = all.report;
  Json out = {{"arena_bytes", report.arena_bytes},
              {"lower_bound_bytes", report.lower_bound_bytes},
              {"scratch_bytes", report.scratch_bytes},
              {"constant_bytes", all.info.constant_bytes},
              {"blocks", Json::array()}};
  std::vector<api::PlacedValue> blocks = report.placed;
  blocks.insert(blocks.end(), report.workspaces.begin(), report.workspaces.end());
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const auto& a, const auto& b) { return a.first_step < b.first_step; });
  const auto kept = largest(blocks, max_listed_blocks, [](const api::PlacedValue& place) { return place.size_bytes; });
  for (const std::size_t i : kept) out["blocks"].push_back(block_json(all.info, blocks[i]));
  out["blocks_left_out"] = blocks.size() - kept.size();
  return out;
}

Json page_steps(const Inspected& all) {
  const std::vector<api::StepInfo>& steps = all.info.steps;
  const Nesting nesting(steps);
  const bool timed = all.times.has_value();
  const auto kept = largest(all.report.steps, max_listed_steps, [&](const api::StepReport& step) {
    return timed ? all.times->seconds[static_cast<std::size_t>(step.step)] : step.bytes;
  });
  Json out = Json::array();
  for (const std::size_t i : kept) {
    const api::StepReport& step = all.report.steps[i];
    const auto at = static_cast<std::size_t>(step.step);
    const api::StepInfo& info = steps[at];
    Json one = {{"index", step.step},
                {"kind", info.kind},
                {"op", shown_text(info.operation.empty() ? info.kind : info.operation)},
                {"node", shown_text(info.node)},
                {"depth", nesting.depth[at]},
                {"label", nesting.label[at]},
                {"kernel", step.row},
                {"reference", step.reference},
                {"unknown", step.sizes_unknown},
                {"flops", step.flops},
                {"bytes", step.bytes},
                {"seconds", timed ? all.times->seconds[at] : 0.0},
                {"runs", timed ? all.times->runs[at] : 1}};
    std::string result;
    if (!info.outputs.empty() && info.outputs.front() >= 0) {
      const api::ValueInfo& value = value_info(all.info, info.outputs.front());
      result = std::string(name_of(value.dtype)) + " " + shape_text(value.sizes);
    }
    one["result"] = shown_text(result);
    one["candidates"] = candidates_json(step);
    out.push_back(std::move(one));
  }
  return out;
}

Json page_weights(const api::EngineInfo& info) {
  Json out = Json::array();
  for (const std::size_t i : largest(info.constants, max_listed_weights,
                                     [](const api::ConstantInfo& constant) { return constant.size_bytes; })) {
    out.push_back(weight_json(info, info.constants[i]));
  }
  return out;
}

}  // namespace polyphase::cli

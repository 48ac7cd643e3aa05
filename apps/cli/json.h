// JSON results: keys in the order they were set.
#pragma once

#include <cmath>

#include <nlohmann/json.hpp>

#include "cli/terminal.h"
#include "polyphase/polyphase.h"

namespace polyphase::cli {

using Json = nlohmann::ordered_json;

// Raised when a key changes its meaning or goes; new keys may come at any time.
inline constexpr int json_schema = 1;

// Begins a result: {"schema": 1, "command": …}.
inline Json json_result(const char* command) { return {{"schema", json_schema}, {"command", command}}; }

// Names come from models and need not be UTF-8: what is not becomes U+FFFD.
inline void put_json(const Json& json) { put(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"); }

// NaN and infinities have no numbers in JSON.
inline Json json_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

inline Json json_ports(const std::vector<api::Port>& ports) {
  Json out = Json::array();
  for (const api::Port& port : ports)
    out.push_back({{"name", port.name}, {"dtype", name_of(port.dtype)}, {"sizes", port.sizes}});
  return out;
}

}  // namespace polyphase::cli

// The page's data as JSON, part by part. Bounded: of what there is too much of, the most important stays, and the page
// says so.
#pragma once

#include "cli/inspected.h"
#include "cli/json.h"

namespace polyphase::cli {

// Graphs of more nodes are told as lists of changes, not drawn.
inline constexpr std::size_t max_drawn_nodes = 1500;
inline constexpr std::size_t max_listed_changes = 200;  // of each kind and pass
inline constexpr std::size_t max_listed_steps = 5000;
inline constexpr std::size_t max_listed_blocks = 5000;
inline constexpr std::size_t max_listed_weights = 2000;

// Names and lines as long as a page can show; cut between characters.
std::string shown_text(const std::string& text, std::size_t longest = 240);

Json page_passes(const api::PassHistory& history);
Json page_memory(const Inspected& all);
Json page_steps(const Inspected& all);
Json page_weights(const api::EngineInfo& info);

}  // namespace polyphase::cli

// The memory plan: sizes, lifetimes and aliases to offsets in one arena. A pure function; nothing here knows of graphs
// or devices.
//
//   bytes ▲   ┌────────┐                  a block lives from its first step to its last, both included;
//         │   │   b    ├──────┐           two blocks that live at the same step never overlap
//         │ ┌─┴──┬─────┤  d   │
//         │ │ a  │  c  │      │
//         └─┴────┴─────┴──────┴──▶ steps
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace polyphase {

struct Lifetime {
  std::size_t size_bytes = 0;
  std::int32_t first_step = 0;
  std::int32_t last_step = 0;  // >= first_step
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // by block; multiples of 64; 0 for empty blocks
  std::size_t arena_bytes = 0;
  // Largest sum of (64-byte rounded) blocks alive at one step: no plan is smaller.
  std::size_t lower_bound_bytes = 0;
};

// Offsets for all blocks. Deterministic; O(n log n) to O(n²) in the number of blocks; tries several orders and keeps
// the smallest arena.
MemoryPlan plan_memory(std::span<const Lifetime> blocks);

}  // namespace polyphase

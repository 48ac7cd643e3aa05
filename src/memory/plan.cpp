// Greedy placement: blocks in several orders, each block into a gap between the placed blocks that live at the same
// time.
//
// An order that misses the lower bound is repaired: the blocks that touch the arena's end move to its front, and it
// runs again.
#include "memory/plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace polyphase {
namespace {

constexpr std::size_t alignment_bytes = 64;
constexpr std::size_t unplaceable = std::numeric_limits<std::size_t>::max();
// Repairs stop when this many blocks were compared with each other in all.
constexpr std::size_t comparison_budget = 8'000'000;
constexpr int max_repairs = 12;

enum class Fit : std::uint8_t { first, best };

std::size_t saturating_add(std::size_t a, std::size_t b) { return a > unplaceable - b ? unplaceable : a + b; }

std::size_t rounded(std::size_t size_bytes) {
  const std::size_t up = saturating_add(size_bytes, alignment_bytes - 1);
  return up == unplaceable ? unplaceable - alignment_bytes + 1 : up / alignment_bytes * alignment_bytes;
}

struct Block {
  std::size_t size_bytes = 0;  // rounded
  std::int32_t first_step = 0;
  std::int32_t last_step = 0;
  std::int64_t steps() const { return static_cast<std::int64_t>(last_step) - first_step + 1; }
};

struct Placed {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::int32_t first_step = 0;
  std::int32_t last_step = 0;
};

using Order = std::vector<std::size_t>;

// The largest sum of blocks alive at one step, by sweeping over starts and ends.
std::size_t largest_live_sum(const std::vector<Block>& blocks) {
  struct Event {
    std::int64_t step;
    bool start;
    std::size_t size_bytes;
  };
  std::vector<Event> events;
  for (const Block& block : blocks) {
    events.push_back({block.first_step, true, block.size_bytes});
    events.push_back({static_cast<std::int64_t>(block.last_step) + 1, false, block.size_bytes});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.step != b.step ? a.step < b.step : a.start < b.start; });
  std::size_t live = 0;
  std::size_t largest = 0;
  for (const Event& event : events) {
    if (event.start) {
      live = saturating_add(live, event.size_bytes);
      if (live == unplaceable) return unplaceable;
      largest = std::max(largest, live);
    } else {
      live -= event.size_bytes;
    }
  }
  return largest;
}

class Placer {
 public:
  explicit Placer(const std::vector<Block>& blocks) : blocks_(blocks), offsets_(blocks.size()) {}

  // Places all blocks in this order and returns the arena's size.
  std::size_t place(const Order& order, Fit fit) {
    placed_.clear();
    std::size_t arena = 0;
    for (const std::size_t i : order) {
      const std::size_t begin = gap_for(blocks_[i], fit);
      const Placed entry{begin, saturating_add(begin, blocks_[i].size_bytes), blocks_[i].first_step,
                         blocks_[i].last_step};
      placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), entry,
                                      [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
                     entry);
      offsets_[i] = begin;
      arena = std::max(arena, entry.end);
    }
    return arena;
  }

  const std::vector<std::size_t>& offsets() const { return offsets_; }
  std::size_t comparisons() const { return comparisons_; }

 private:
  std::size_t gap_for(const Block& block, Fit fit) {
    comparisons_ += placed_.size();
    std::size_t free_from = 0;
    std::size_t best_begin = unplaceable;
    std::size_t best_gap = unplaceable;
    for (const Placed& other : placed_) {
      if (other.last_step < block.first_step || other.first_step > block.last_step) continue;
      if (other.begin > free_from) {
        const std::size_t gap = other.begin - free_from;
        if (gap >= block.size_bytes && gap < best_gap) {
          best_begin = free_from;
          best_gap = gap;
          if (fit == Fit::first) return best_begin;
        }
      }
      free_from = std::max(free_from, other.end);
    }
    return best_begin == unplaceable ? free_from : best_begin;
  }

  const std::vector<Block>& blocks_;
  std::vector<std::size_t> offsets_;
  std::vector<Placed> placed_;  // by begin
  std::size_t comparisons_ = 0;
};

template <typename Before>
Order sorted_by(const std::vector<Block>& blocks, Before&& before) {
  Order order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return before(blocks[a], blocks[b]); });
  return order;
}

// Ties go to the earlier index: the sort is stable.
std::vector<Order> orders_to_try(const std::vector<Block>& blocks) {
  return {
      sorted_by(blocks, [](const Block& a, const Block& b) { return a.size_bytes > b.size_bytes; }),
      // Skip connections of a U-Net live long: below everything else they leave a clean top.
      sorted_by(blocks,
                [](const Block& a, const Block& b) {
                  return a.steps() != b.steps() ? a.steps() > b.steps() : a.size_bytes > b.size_bytes;
                }),
      sorted_by(blocks,
                [](const Block& a, const Block& b) {
                  return static_cast<double>(a.size_bytes) * static_cast<double>(a.steps()) >
                         static_cast<double>(b.size_bytes) * static_cast<double>(b.steps());
                }),
      sorted_by(blocks,
                [](const Block& a, const Block& b) {
                  return a.first_step != b.first_step ? a.first_step < b.first_step : a.last_step > b.last_step;
                }),
      sorted_by(blocks,
                [](const Block& a, const Block& b) {
                  return a.last_step != b.last_step ? a.last_step > b.last_step : a.first_step < b.first_step;
                }),
  };
}

// Moves the blocks that touch the arena's end, and are not yet there, to the front. False: nothing to move.
bool repair(Order& order, const std::vector<Block>& blocks, const std::vector<std::size_t>& offsets,
            std::size_t arena) {
  const auto is_high = [&](std::size_t i) { return saturating_add(offsets[i], blocks[i].size_bytes) == arena; };
  const auto middle = std::stable_partition(order.begin(), order.end(), is_high);
  return middle != order.begin() && middle != order.end();
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes) {
  std::vector<Block> blocks;
  std::vector<std::size_t> index;  // into lifetimes; empty blocks need no place
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    if (lifetimes[i].size_bytes == 0) continue;
    blocks.push_back({rounded(lifetimes[i].size_bytes), lifetimes[i].first_step, lifetimes[i].last_step});
    index.push_back(i);
  }
  MemoryPlan plan;
  plan.offsets.assign(lifetimes.size(), 0);
  plan.lower_bound_bytes = largest_live_sum(blocks);
  if (blocks.empty()) return plan;

  Placer placer(blocks);
  std::size_t smallest = unplaceable;
  std::vector<std::size_t> offsets(blocks.size(), 0);
  const auto keep_if_smaller = [&](std::size_t arena) {
    if (arena >= smallest) return;
    smallest = arena;
    offsets = placer.offsets();
  };
  std::vector<Order> orders = orders_to_try(blocks);
  for (const Fit fit : {Fit::best, Fit::first}) {
    for (const Order& order : orders) {
      if (smallest > plan.lower_bound_bytes) keep_if_smaller(placer.place(order, fit));
    }
  }
  for (Order& order : orders) {
    std::size_t arena = placer.place(order, Fit::best);
    for (int round = 0;
         round < max_repairs && smallest > plan.lower_bound_bytes && placer.comparisons() < comparison_budget;
         ++round) {
      if (!repair(order, blocks, placer.offsets(), arena)) break;
      arena = placer.place(order, Fit::best);
      keep_if_smaller(arena);
    }
    if (smallest <= plan.lower_bound_bytes) break;
  }
  plan.arena_bytes = smallest;
  for (std::size_t i = 0; i < blocks.size(); ++i) plan.offsets[index[i]] = offsets[i];
  return plan;
}

}  // namespace polyphase

// PlanCache: the plans of the sizes seen lately, least recently used out first. Safe from many threads.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/level_plan.h"

namespace polyphase {

class PlanCache {
 public:
  explicit PlanCache(std::size_t capacity) : capacity_(capacity) {}

  // Null: not here.
  std::shared_ptr<const LevelPlan> find(int level, const std::vector<std::int64_t>& sizes) {
    const std::lock_guard lock(mutex_);
    for (auto place = plans_.begin(); place != plans_.end(); ++place) {
      if ((*place)->level != level || (*place)->sizes != sizes) continue;
      plans_.splice(plans_.begin(), plans_, place);
      return plans_.front();
    }
    return nullptr;
  }

  void add(std::shared_ptr<const LevelPlan> plan) {
    const std::lock_guard lock(mutex_);
    plans_.push_front(std::move(plan));
    if (plans_.size() > capacity_) plans_.pop_back();
  }

 private:
  std::size_t capacity_;
  std::mutex mutex_;
  std::list<std::shared_ptr<const LevelPlan>> plans_;  // last used first
};

}  // namespace polyphase

// OperatorSurvey: which operators a model uses, how often, and what stands in the way of each. An import that is given
// one does not end at the first node that cannot be converted: it notes why, takes its results for unknown, and goes
// on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace polyphase {

struct OperatorProblem {
  Error error;             // of the first node that has it
  std::int64_t nodes = 0;  // that have it, word for word
};

struct OperatorUse {
  std::int64_t opset = 0;    // of the node's domain
  int version = 0;           // of the operator, as the converters know it; 0: none
  bool is_function = false;  // the model brings it along
  bool is_missing = false;   // Polyphase does not have it at all
  std::int64_t nodes = 0;
  std::int64_t nodes_refused = 0;
  std::string first_node;
  std::vector<OperatorProblem> problems;  // the first few kinds
  std::string advice;                     // what to use instead, of a missing one
};

class OperatorSurvey {
 public:
  using Key = std::pair<std::string, std::string>;  // domain, operator

  void meet(std::string_view domain, std::string_view op_type, std::int64_t opset, std::string_view node) {
    OperatorUse& use = uses_[Key(domain, op_type)];
    if (use.nodes++ == 0) {
      use.opset = opset;
      use.first_node = node;
    }
  }
  OperatorUse& use(std::string_view domain, std::string_view op_type) { return uses_[Key(domain, op_type)]; }
  void refuse(std::string_view domain, std::string_view op_type, Error error) {
    constexpr std::size_t kept = 4;
    OperatorUse& refused = use(domain, op_type);
    ++refused.nodes_refused;
    for (OperatorProblem& known : refused.problems) {
      if (known.error.message != error.message) continue;
      ++known.nodes;
      return;
    }
    if (refused.problems.size() < kept) refused.problems.push_back({std::move(error), 1});
  }
  const std::map<Key, OperatorUse>& uses() const { return uses_; }
  // Whether nothing stood in the way.
  bool complete() const {
    return std::all_of(uses_.begin(), uses_.end(),
                       [](const auto& entry) { return !entry.second.is_missing && entry.second.nodes_refused == 0; });
  }

 private:
  std::map<Key, OperatorUse> uses_;
};

}  // namespace polyphase

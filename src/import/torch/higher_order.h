// What nodes that own graphs are made of while they are translated.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "import/torch/importer.h"

namespace polyphase {

struct ProgramCall {
  bool missing = false;
  Value* condition = nullptr;  // of cond
  std::vector<std::shared_ptr<const ProgramGraph>> graphs;
  std::vector<ProgramMeanings> lists;  // operands behind the graphs; single ones make one list
  ProgramMeanings all() const {
    ProgramMeanings out;
    for (const auto& list : lists) out.insert(out.end(), list.begin(), list.end());
    return out;
  }
};

// A loop whose body takes {carried values, entries of what is sliced along axis 0, what stays} and gives
// {whether to go on, the carried values, rows to stack}.
struct ProgramLoop {
  Value* trips = nullptr;      // null: only the condition ends it
  Value* condition = nullptr;  // null: only the trips end it
  ProgramMeanings carried;
  ProgramMeanings sliced;
  ProgramMeanings fixed;
  std::int64_t nodes = 0;  // of the body
  std::function<Result<ProgramMeanings>(Graph&, const ProgramMeanings&)> body;
};

inline constexpr const char* flatten_advice = "Flatten the module, or pass tensors only.";

bool is_missing(const ProgramMeanings& results);
ProgramMeaning meaning_of(Value* value);

}  // namespace polyphase

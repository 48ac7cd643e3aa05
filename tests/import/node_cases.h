// ONNX's own node tests as files, and the list of those that we refuse or answer otherwise. The files are written by
// tests/python/onnx_node_cases.py; the environment's POLYPHASE_NODE_CASES names their folder.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"

namespace polyphase::test {

struct NodeCase {
  std::filesystem::path model;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
};

// What was computed for a case, or the refusal.
using RunNodeCase = std::function<Result<std::vector<Tensor>>(const NodeCase&)>;

// Of the cases, for who has not the time for all of them.
enum class Quarter { all, first, second, third };

// Runs every case in both forms, weights as inputs and as initialisers, and compares under the tolerance of ONNX's own
// runner. Every case whose operators the importer has must pass, but for those listed in node_cases_expected.txt with
// the reason. `way` is who computes: a line of the list may be for one way alone. Failures are gtest's; returns how
// many cases passed, were refused, differ or lack an operator.
std::map<std::string, int> check_node_cases(const std::string& way, const RunNodeCase& run,
                                            Quarter quarter = Quarter::all);

}  // namespace polyphase::test

// nest_concats: pieces that were joined before are not joined anew, so that each lies in one place.
//
//   %a = concat(%x, %u) axis=1              %a = concat(%x, %u) axis=1
//   %v = conv(%a, ...)                  →   %v = conv(%a, ...)
//   %b = concat(%x, %u, %v) axis=1          %b = concat(%a, %v) axis=1
//
// A value can lie in one larger value only (lower/place.cpp); in a second one it is copied. Dense blocks (Huang et al.
// 2017; RDN, ESRGAN), written as lists of all images so far, hold each image once then, and their convolutions read the
// beginning of one tensor. Condition: an earlier concat along the same axis has a run of two or more of the pieces.
#include <algorithm>
#include <map>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

// A concat with its pieces as they were written, before some of them became another concat.
struct JoinedPieces {
  const Node* node;
  std::vector<Value*> pieces;
};

using Joined = std::multimap<const Value*, JoinedPieces>;  // by the first piece

bool begins_at(const std::vector<Value*>& pieces, std::size_t first, const std::vector<Value*>& run) {
  return first + run.size() <= pieces.size() &&
         std::equal(run.begin(), run.end(), pieces.begin() + static_cast<std::ptrdiff_t>(first));
}

// The longest that begins at that piece and is not all of them; else null.
const JoinedPieces* longest_run(const Joined& joined, const Node& node, const std::vector<Value*>& pieces,
                                std::size_t first) {
  const JoinedPieces* longest = nullptr;
  const auto [begin, end] = joined.equal_range(pieces[first]);
  for (auto it = begin; it != end; ++it) {
    const JoinedPieces& run = it->second;
    const bool fits = run.pieces.size() > 1 && run.pieces.size() < pieces.size() &&
                      begins_at(pieces, first, run.pieces) && run.node->attributes() == node.attributes();
    if (fits && (longest == nullptr || run.pieces.size() > longest->pieces.size())) longest = &run;
  }
  return longest;
}

bool nest(Graph& graph) {
  bool changed = false;
  Joined joined;
  for (Node* node : graph.node_list()) {
    if (!node->is("concat") || node->inputs().empty()) continue;
    const std::vector<Value*> pieces = node->inputs();
    std::vector<Value*> nested;
    for (std::size_t i = 0; i < pieces.size();) {
      const JoinedPieces* run = longest_run(joined, *node, pieces, i);
      nested.push_back(run == nullptr ? pieces[i] : run->node->output());
      i += run == nullptr ? 1 : run->pieces.size();
    }
    if (nested.size() < pieces.size()) {
      Rewrite rewrite(graph, node);
      Value* result = rewrite.add("concat", node->attributes(), std::move(nested));
      if (!rewrite.ok() || !rewrite.commit(node->output(), result)) continue;
      node = result->producer;
      changed = true;
    }
    joined.emplace(pieces.front(), JoinedPieces{node, pieces});
  }
  return changed;
}

}  // namespace

bool nest_concats(Graph& graph, const Target&) { return in_every_graph(graph, nest); }

}  // namespace polyphase

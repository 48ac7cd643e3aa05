// Graphs as lists of nodes that they share: a pass that changes one node of a thousand adds one node and a list.
#include "api/pass_history.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace polyphase::api {
namespace {

class Recorder {
 public:
  explicit Recorder(PassHistory& history) : history_(history) {
    history_ = {};
    for (const Pass& pass : pass_table()) {
      PassRun& run = history_.passes.emplace_back();
      run.name = pass.name;
      run.why_here = pass.why_here;
    }
  }

  void see(const Graph& graph) {
    GraphState& state = history_.graphs.emplace_back();
    constants_.clear();
    add(graph, 0, 0, state.nodes);
    for (const polyphase::Value* value : graph.outputs()) state.outputs.push_back(value->name);
  }

  void see(const PassReport& report, const Graph& graph) {
    PassRun& run = history_.passes[report.position];
    run.ran = true;
    run.changed = report.changed;
    run.seconds = report.seconds;
    if (report.changed) see(graph);
    // Passes that do not run leave what was there, too.
    for (std::size_t i = report.position; i < history_.passes.size(); ++i)
      history_.passes[i].graph = static_cast<int>(history_.graphs.size()) - 1;
  }

 private:
  void add(const Graph& graph, int depth, int region, std::vector<int>& to) {
    for (const auto& node : graph.nodes()) {
      const bool is_constant = computes_constants(*node);
      if (is_constant) constants_.insert(node.get());
      to.push_back(number(*node, depth, region, is_constant));
      int inner = 0;
      for (const auto& owned : node->regions()) add(*owned, depth + 1, inner++, to);
    }
  }

  bool computes_constants(const Node& node) const {
    if (node.constant() != nullptr) return true;
    const auto is_known = [&](const polyphase::Value* value) {
      return value == nullptr || (value->producer != nullptr && constants_.count(value->producer) != 0);
    };
    return !node.inputs().empty() && node.regions().empty() &&
           std::all_of(node.inputs().begin(), node.inputs().end(), is_known);
  }

  // The line holds all that is compared but the node's place among regions, and elements that it leaves out.
  int number(const Node& node, int depth, int region, bool is_constant) {
    GraphNode out;
    out.text = print_node(node, {.max_constant_elements = 16});
    std::string key = (is_constant ? "c" : "n") + std::to_string(depth) + " " + std::to_string(region) + " " + out.text;
    const auto [found, is_new] = numbers_.emplace(std::move(key), static_cast<int>(history_.nodes.size()));
    if (!is_new) return found->second;
    out.name = node.name();
    for (const Part& part : node.parts()) out.operation += (out.operation.empty() ? "" : " + ") + part.op->name;
    for (const polyphase::Value* value : node.inputs()) out.reads.push_back(value == nullptr ? "" : value->name);
    for (const auto& value : node.outputs()) {
      out.writes.push_back(value->name);
      out.types.push_back(value->type.text());
    }
    out.is_constant = is_constant;
    out.depth = depth;
    out.region = region;
    history_.nodes.push_back(std::move(out));
    return found->second;
  }

  PassHistory& history_;
  std::unordered_map<std::string, int> numbers_;
  std::unordered_set<const Node*> constants_;  // of the graph being seen
};

}  // namespace

void record_passes(const Graph& graph, PassHistory& history, PassOptions& options) {
  const auto recorder = std::make_shared<Recorder>(history);
  recorder->see(graph);
  options.watch = [recorder](const PassReport& report, const Graph& after) { recorder->see(report, after); };
}

}  // namespace polyphase::api

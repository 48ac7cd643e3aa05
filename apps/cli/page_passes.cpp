// The passes for the page: graphs that share their nodes, and what each pass took away, added and altered.
#include <algorithm>
#include <map>

#include "cli/page_data.h"

namespace polyphase::cli {
namespace {

// All graphs together; beyond it only changes are told.
constexpr std::size_t max_text_bytes = 4U << 20;

struct Changes {
  std::vector<int> removed;
  std::vector<int> added;
  std::vector<std::pair<int, int>> altered;
};

class PassesJson {
 public:
  explicit PassesJson(const api::PassHistory& history) : history_(history) {}

  Json json() {
    choose_graphs();
    Json out;
    out["table"] = Json::array();
    int before = 0;
    for (const api::PassRun& pass : history_.passes) {
      Json one = {{"name", pass.name}, {"why", pass.why_here}, {"ran", pass.ran}, {"changed", pass.changed}};
      one["seconds"] = pass.seconds;
      put_changes(before, pass.changed ? pass.graph : before, one);
      before = pass.changed ? pass.graph : before;
      out["table"].push_back(std::move(one));
    }
    out["all"] = Json::object();
    put_changes(0, static_cast<int>(history_.graphs.size()) - 1, out["all"]);
    out["graphs"] = Json::array();
    for (const api::GraphState& graph : history_.graphs) out["graphs"].push_back(graph_json(graph));
    out["nodes"] = std::move(nodes_);  // last: the others number them
    return out;
  }

 private:
  const api::GraphNode& node_at(int index) const { return history_.nodes[static_cast<std::size_t>(index)]; }
  const api::GraphState& graph_at(int index) const { return history_.graphs[static_cast<std::size_t>(index)]; }

  std::size_t node_count(const api::GraphState& graph) const {
    return static_cast<std::size_t>(
        std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](int n) { return !node_at(n).is_constant; }));
  }

  void choose_graphs() {
    std::size_t bytes = 0;
    for (const api::GraphNode& node : history_.nodes) bytes += 160 + 2 * std::min<std::size_t>(node.text.size(), 400);
    draws_ = bytes <= max_text_bytes;
  }

  // The page's number of a node.
  int number(int index) {
    const auto [found, is_new] = numbers_.emplace(index, static_cast<int>(nodes_.size()));
    if (!is_new) return found->second;
    const api::GraphNode& node = node_at(index);
    Json one = {{"name", shown_text(node.name)},
                {"op", shown_text(node.operation)},
                {"text", shown_text(node.text, 400)},
                {"constant", node.is_constant},
                {"depth", node.depth},
                {"region", node.region}};
    for (const auto& [key, words] :
         {std::pair{"reads", &node.reads}, std::pair{"writes", &node.writes}, std::pair{"types", &node.types}}) {
      one[key] = Json::array();
      for (const std::string& word : *words) one[key].push_back(shown_text(word));
    }
    nodes_.push_back(std::move(one));
    return found->second;
  }

  Json graph_json(const api::GraphState& graph) {
    if (!draws_ || node_count(graph) > max_drawn_nodes || graph.nodes.size() > 4 * max_drawn_nodes) return nullptr;
    Json out = {{"nodes", Json::array()}, {"outputs", Json::array()}};
    for (const int node : graph.nodes) out["nodes"].push_back(number(node));
    for (const std::string& output : graph.outputs) out["outputs"].push_back(shown_text(output));
    return out;
  }

  // By name: of the value a node writes first, or else its own.
  Changes changes(const api::GraphState& before, const api::GraphState& after) const {
    std::map<int, int> balance;
    for (const int node : before.nodes) --balance[node];
    for (const int node : after.nodes) ++balance[node];
    Changes out;
    for (const int node : before.nodes) {
      if (balance[node] < 0 && ++balance[node] <= 0) out.removed.push_back(node);
    }
    for (const int node : after.nodes) {
      if (balance[node] > 0 && --balance[node] >= 0) out.added.push_back(node);
    }
    for (const bool by_value : {true, false}) pair_up(by_value, out);
    return out;
  }

  void pair_up(bool by_value, Changes& changes) const {
    const auto key = [&](int index) {
      const api::GraphNode& node = node_at(index);
      const std::string& name = by_value && !node.writes.empty() ? node.writes.front() : node.name;
      return std::to_string(node.depth) + (node.is_constant ? "c " : " ") + name;
    };
    std::map<std::string, int> gone;
    for (const int node : changes.removed) gone.emplace(key(node), node);
    std::vector<int> added;
    std::map<int, bool> paired;
    for (const int node : changes.added) {
      const auto found = gone.find(key(node));
      if (found == gone.end()) {
        added.push_back(node);
        continue;
      }
      changes.altered.emplace_back(found->second, node);
      paired[found->second] = true;
      gone.erase(found);
    }
    changes.added = std::move(added);
    changes.removed.erase(std::remove_if(changes.removed.begin(), changes.removed.end(),
                                         [&](int node) { return paired.count(node) != 0; }),
                          changes.removed.end());
  }

  void put_changes(int from, int to, Json& out) {
    const api::GraphState& before = graph_at(from);
    const api::GraphState& after = graph_at(to);
    out["from"] = from;
    out["to"] = to;
    out["before"] = node_count(before);
    out["after"] = node_count(after);
    const Changes found = changes(before, after);
    // Nodes before constants: the list is cut at its end.
    const auto listed = [&](std::vector<int> nodes) {
      std::stable_partition(nodes.begin(), nodes.end(), [&](int node) { return !node_at(node).is_constant; });
      Json list = Json::array();
      for (const int node : nodes) {
        if (list.size() == max_listed_changes) break;
        list.push_back(number(node));
      }
      return list;
    };
    out["removed"] = listed(found.removed);
    out["added"] = listed(found.added);
    out["altered"] = Json::array();
    for (const auto& [a, b] : found.altered) {
      if (out["altered"].size() == max_listed_changes) break;
      out["altered"].push_back({number(a), number(b)});
    }
    out["removed_count"] = found.removed.size();
    out["added_count"] = found.added.size();
    out["altered_count"] = found.altered.size();
  }

  const api::PassHistory& history_;
  bool draws_ = true;
  std::map<int, int> numbers_;
  Json nodes_ = Json::array();
};

}  // namespace

Json page_passes(const api::PassHistory& history) { return PassesJson(history).json(); }

}  // namespace polyphase::cli

// Attempt: one call of the builder. Unless it succeeds, its layer's name is free again and the nodes that it has added
// are gone; constants stay, since somebody may hold them.
#pragma once

#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "import/network/builder.h"

namespace polyphase {

class NetworkBuilder::Attempt {
 public:
  // `with_bodies`: functions of the caller's will write more layers, whose names are free again too.
  Attempt(NetworkBuilder& builder, std::string layer, bool with_bodies = false)
      : builder_(builder),
        graph_(builder.here()),
        layer_(std::move(layer)),
        nodes_(graph_.nodes().size()),
        entries_(builder.entries_.size()),
        checks_(graph_.checks()) {
    if (with_bodies) names_.emplace(builder.layers_, builder.tensors_);
  }
  ~Attempt() {
    if (succeeded_) return;
    auto at = graph_.nodes().end();  // memory may be what there is none of: nothing is allocated here
    for (std::size_t left = graph_.nodes().size() - nodes_; left > 0; --left) {
      Node* node = std::prev(at)->get();
      if (node->constant() != nullptr && builder_.constants_.count(node->name()) != 0) {
        --at;
        continue;
      }
      forget(*node);
      graph_.erase(node);
    }
    graph_.checks() = std::move(checks_);
    if (names_.has_value()) {
      builder_.forget_bodies(entries_);
      std::tie(builder_.layers_, builder_.tensors_) = std::move(*names_);
    }
    builder_.layers_.erase(layer_);
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  void succeed() { succeeded_ = true; }

 private:
  // What was captured of outer bodies may be asked for again.
  void forget(const Node& node) {
    auto& inside = builder_.bodies_.back().inside;
    for (auto it = inside.begin(); it != inside.end();)
      it = it->second->producer == &node ? inside.erase(it) : std::next(it);
  }

  NetworkBuilder& builder_;
  Graph& graph_;
  std::string layer_;
  std::size_t nodes_;
  std::size_t entries_;
  std::vector<DimCheck> checks_;
  std::optional<std::pair<decltype(NetworkBuilder::layers_), decltype(NetworkBuilder::tensors_)>> names_;
  bool succeeded_ = false;
};

}  // namespace polyphase

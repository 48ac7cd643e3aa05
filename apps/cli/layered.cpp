// Layers, bends, order, places.
#include "cli/layered.h"

#include <algorithm>
#include <numeric>

namespace polyphase::cli {
namespace {

constexpr double box_gap = 24;
constexpr double layer_gap = 40;
constexpr double bend_width = 8;
constexpr double margin = 20;
constexpr int order_sweeps = 8;
constexpr int place_sweeps = 12;
// Beyond this many bends long edges are drawn straight.
constexpr std::size_t max_bends = 200'000;

struct Vertex {
  std::size_t layer = 0;
  BoxSize size;
  std::vector<std::size_t> above;
  std::vector<std::size_t> below;
  double x = 0;
  double order = 0;
};

class Layering {
 public:
  Layering(const std::vector<BoxSize>& boxes, const std::vector<std::pair<std::size_t, std::size_t>>& edges)
      : edges_(edges) {
    vertices_.resize(boxes.size());
    for (std::size_t i = 0; i < boxes.size(); ++i) vertices_[i].size = boxes[i];
    // Edges by their source: then every source's layer is final when it is read.
    std::vector<std::size_t> by_source(edges.size());
    std::iota(by_source.begin(), by_source.end(), std::size_t{0});
    std::stable_sort(by_source.begin(), by_source.end(),
                     [&](std::size_t a, std::size_t b) { return edges[a].first < edges[b].first; });
    for (const std::size_t i : by_source) {
      const auto [from, to] = edges[i];
      vertices_[to].layer = std::max(vertices_[to].layer, vertices_[from].layer + 1);
    }
    chains_.resize(edges.size());
    for (std::size_t i = 0; i < edges.size(); ++i) add_bends(i);
    for (std::size_t i = 0; i < vertices_.size(); ++i) {
      if (vertices_[i].layer >= layers_.size()) layers_.resize(vertices_[i].layer + 1);
      layers_[vertices_[i].layer].push_back(i);
    }
  }

  Drawing draw(std::size_t box_count) {
    for (int sweep = 0; sweep < order_sweeps; ++sweep) order(sweep % 2 == 0);
    for (auto& layer : layers_) pack(layer);
    for (int sweep = 0; sweep < place_sweeps; ++sweep) place(sweep % 2 == 0);
    return finish(box_count);
  }

 private:
  void add_bends(std::size_t edge) {
    const auto [from, to] = edges_[edge];
    std::vector<std::size_t>& chain = chains_[edge];
    chain.push_back(from);
    for (std::size_t layer = vertices_[from].layer + 1; layer < vertices_[to].layer && bends_ < max_bends; ++layer) {
      ++bends_;
      vertices_.push_back({layer, {bend_width, 0}, {}, {}, 0, 0});
      chain.push_back(vertices_.size() - 1);
    }
    chain.push_back(to);
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
      vertices_[chain[i]].below.push_back(chain[i + 1]);
      vertices_[chain[i + 1]].above.push_back(chain[i]);
    }
  }

  const std::vector<std::size_t>& neighbours(std::size_t vertex, bool above) const {
    return above ? vertices_[vertex].above : vertices_[vertex].below;
  }

  template <typename F>
  void for_each_layer(bool downwards, F&& f) {
    for (std::size_t i = 0; i < layers_.size(); ++i) f(layers_[downwards ? i : layers_.size() - 1 - i]);
  }

  // Each layer by the mean place of its neighbours in the layer before.
  void order(bool downwards) {
    for (auto& layer : layers_) {
      for (std::size_t i = 0; i < layer.size(); ++i) vertices_[layer[i]].order = static_cast<double>(i);
    }
    for_each_layer(downwards, [&](std::vector<std::size_t>& layer) {
      std::vector<std::pair<double, std::size_t>> wishes;
      for (const std::size_t vertex : layer) {
        const auto& near = neighbours(vertex, downwards);
        double sum = 0;
        for (const std::size_t other : near) sum += vertices_[other].order;
        wishes.emplace_back(near.empty() ? vertices_[vertex].order : sum / static_cast<double>(near.size()), vertex);
      }
      std::stable_sort(wishes.begin(), wishes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (std::size_t i = 0; i < layer.size(); ++i) {
        layer[i] = wishes[i].second;
        vertices_[layer[i]].order = static_cast<double>(i);
      }
    });
  }

  double distance(std::size_t left, std::size_t right) const {
    return (vertices_[left].size.width + vertices_[right].size.width) / 2 + box_gap;
  }

  void pack(const std::vector<std::size_t>& layer) {
    double x = 0;
    for (std::size_t i = 0; i < layer.size(); ++i) {
      if (i > 0) x += distance(layer[i - 1], layer[i]);
      vertices_[layer[i]].x = x;
    }
    for (const std::size_t vertex : layer) vertices_[vertex].x -= x / 2;
  }

  // Moves each layer towards its neighbours: from the left and from the right as far as the order lets, then the mean
  // of both.
  void place(bool downwards) {
    for_each_layer(downwards, [&](std::vector<std::size_t>& layer) {
      std::vector<double> left(layer.size());
      std::vector<double> right(layer.size());
      for (std::size_t i = 0; i < layer.size(); ++i) {
        const auto& near = neighbours(layer[i], downwards);
        double sum = 0;
        for (const std::size_t other : near) sum += vertices_[other].x;
        left[i] = right[i] = near.empty() ? vertices_[layer[i]].x : sum / static_cast<double>(near.size());
      }
      for (std::size_t i = 1; i < layer.size(); ++i)
        left[i] = std::max(left[i], left[i - 1] + distance(layer[i - 1], layer[i]));
      for (std::size_t i = layer.size(); i-- > 1;)
        right[i - 1] = std::min(right[i - 1], right[i] - distance(layer[i - 1], layer[i]));
      for (std::size_t i = 0; i < layer.size(); ++i) vertices_[layer[i]].x = (left[i] + right[i]) / 2;
    });
  }

  Drawing finish(std::size_t box_count) const {
    Drawing out;
    double leftmost = 0;
    double rightmost = 0;
    for (const Vertex& vertex : vertices_) {
      leftmost = std::min(leftmost, vertex.x - vertex.size.width / 2);
      rightmost = std::max(rightmost, vertex.x + vertex.size.width / 2);
    }
    std::vector<double> middle(layers_.size());
    double y = margin;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      double height = 0;
      for (const std::size_t vertex : layers_[i]) height = std::max(height, vertices_[vertex].size.height);
      middle[i] = y + height / 2;
      y += height + layer_gap;
    }
    const auto centre = [&](std::size_t i) {
      return Point{vertices_[i].x - leftmost + margin, middle[vertices_[i].layer]};
    };
    for (std::size_t i = 0; i < box_count; ++i) out.centres.push_back(centre(i));
    for (const auto& chain : chains_) {
      std::vector<Point> points;
      for (const std::size_t vertex : chain) points.push_back(centre(vertex));
      points.front().y += vertices_[chain.front()].size.height / 2;
      points.back().y -= vertices_[chain.back()].size.height / 2;
      out.edges.push_back(std::move(points));
    }
    out.width = rightmost - leftmost + 2 * margin;
    out.height = y - layer_gap + margin;
    return out;
  }

  const std::vector<std::pair<std::size_t, std::size_t>>& edges_;
  std::vector<Vertex> vertices_;                  // boxes, then bends
  std::vector<std::vector<std::size_t>> chains_;  // by edge: box, bends, box
  std::vector<std::vector<std::size_t>> layers_;
  std::size_t bends_ = 0;
};

}  // namespace

Drawing draw_layered(const std::vector<BoxSize>& boxes, const std::vector<std::pair<std::size_t, std::size_t>>& edges) {
  return Layering(boxes, edges).draw(boxes.size());
}

}  // namespace polyphase::cli

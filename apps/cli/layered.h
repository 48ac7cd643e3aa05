// Layered drawing of a directed acyclic graph: where boxes and edges go. (Sugiyama, Tagawa, Toda 1981: layers by
// longest path, bends on the layers an edge crosses, order by barycentres.)
//
//   layer 0     [ in ]
//                 │ ╲
//   layer 1    [ a ]  ·     a bend of the long edge in → b
//                 │  ╱
//   layer 2     [ b ]
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace polyphase::cli {

struct BoxSize {
  double width = 0;
  double height = 0;
};

struct Point {
  double x = 0;
  double y = 0;
};

struct Drawing {
  std::vector<Point> centres;             // by box
  std::vector<std::vector<Point>> edges;  // by edge: from the lower side of one box to the upper side of the other
  double width = 0;
  double height = 0;
};

// Every edge goes from a smaller to a larger index.
Drawing draw_layered(const std::vector<BoxSize>& boxes, const std::vector<std::pair<std::size_t, std::size_t>>& edges);

}  // namespace polyphase::cli

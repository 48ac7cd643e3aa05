// Boxes from steps, edges from who writes what is read; the picture as SVG text.
#include "cli/graph_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/layered.h"
#include "cli/terminal.h"

namespace polyphase::cli {
namespace {

constexpr double letter_width = 7.0;
constexpr double line_height = 16;
constexpr double box_padding = 10;
constexpr std::size_t max_line = 48;

struct Box {
  std::vector<std::string> lines;  // the first in bold; cut where they are long
  std::string title;               // what a pointer resting on the box shows: the whole name
  const char* fill = "#ffffff";
};

struct Edge {
  std::size_t from;
  std::size_t to;
  std::string label;
};

struct Picture {
  std::vector<Box> boxes;
  std::vector<Edge> edges;
};

std::string shortened(std::string text) {
  text = plain(text);
  if (text.size() <= max_line) return text;
  std::size_t end = 0;
  for (;;) {  // not inside a character
    const std::size_t next = end + character_bytes(std::string_view(text).substr(end));
    if (next > max_line - 3) break;
    end = next;
  }
  return text.substr(0, end) + "...";
}

// For XML; `text` is plain.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

class Builder {
 public:
  explicit Builder(const api::Engine& engine) : engine_(engine), info_(engine.info()) {
    for (std::size_t i = 0; i < info_.values.size(); ++i) root_.push_back(root_of(static_cast<int>(i)));
  }

  Picture build() {
    for (std::size_t i = 0; i < info_.values.size(); ++i) {
      if (info_.values[i].storage == "input") add_input(static_cast<int>(i));
    }
    for (const api::StepInfo& step : info_.steps) add_step(step);
    for (const api::Port& port : engine_.outputs()) add_output(port);
    return std::move(picture_);
  }

 private:
  int root_of(int value) const {
    int root = value;
    for (int base = root; base >= 0; base = info_.values[static_cast<std::size_t>(root)].alias_of) root = base;
    return root;
  }

  std::string type_of(int value) const {
    const api::ValueInfo& item = info_.values[static_cast<std::size_t>(value)];
    return std::string(name_of(item.dtype)) + " " + shape_text(item.sizes);
  }

  void add_input(int value) {
    const std::string& name = info_.values[static_cast<std::size_t>(value)].name;
    picture_.boxes.push_back({{shortened(name), shortened(type_of(value))}, plain(name), "#d9ead3"});
    writers_[value].push_back(picture_.boxes.size() - 1);
  }

  // Edges from all that wrote the value; of a window that nobody wrote, and of a base written through its windows, from
  // all that wrote there.
  void connect(int value, std::size_t to) {
    const int root = root_[static_cast<std::size_t>(value)];
    const auto written = writers_.find(value);
    const auto there = root_writers_.find(root);
    const auto input = writers_.find(root);
    const std::vector<std::size_t>* sources = written != writers_.end()      ? &written->second
                                              : there != root_writers_.end() ? &there->second
                                              : input != writers_.end()      ? &input->second
                                                                             : nullptr;
    if (sources == nullptr) return;  // a constant
    for (const std::size_t from : *sources) {
      if (from >= to || !drawn_.emplace(from, to).second) continue;
      picture_.edges.push_back({from, to, shape_text(info_.values[static_cast<std::size_t>(value)].sizes)});
    }
  }

  void add_step(const api::StepInfo& step) {
    Box box;
    box.lines = {shortened(step.operation.empty() ? step.kind : step.operation), shortened(step.node)};
    box.title = plain(step.node);
    if (!step.rows.empty()) box.lines.push_back(shortened(step.rows.front()));
    if (!step.outputs.empty() && step.outputs.front() >= 0)
      box.lines.push_back(shortened(type_of(step.outputs.front())));
    box.fill = step.reference          ? "#f4cccc"
               : step.kind == "copy"   ? "#eeeeee"
               : step.kind == "kernel" ? "#cfe2f3"
                                       : "#fff2cc";
    picture_.boxes.push_back(std::move(box));
    const std::size_t at = picture_.boxes.size() - 1;
    for (const int value : step.inputs) {
      if (value >= 0) connect(value, at);
    }
    for (const int value : step.outputs) {
      if (value < 0) continue;
      writers_[value] = {at};
      root_writers_[root_[static_cast<std::size_t>(value)]].push_back(at);
    }
  }

  void add_output(const api::Port& port) {
    std::vector<std::string> lines = {shortened(port.name),
                                      shortened(std::string(name_of(port.dtype)) + " " + shape_text(port.sizes))};
    picture_.boxes.push_back({std::move(lines), plain(port.name), "#ead1dc"});
    connect(port.value, picture_.boxes.size() - 1);
  }

  const api::Engine& engine_;
  api::EngineInfo info_;
  std::vector<int> root_;
  std::map<int, std::vector<std::size_t>> writers_;       // value → boxes
  std::map<int, std::vector<std::size_t>> root_writers_;  // base → boxes that wrote any window of it
  std::set<std::pair<std::size_t, std::size_t>> drawn_;
  Picture picture_;
};

BoxSize size_of(const Box& box) {
  std::size_t longest = 0;
  for (const std::string& line : box.lines) longest = std::max(longest, line.size());
  return {static_cast<double>(longest) * letter_width + 2 * box_padding,
          static_cast<double>(box.lines.size()) * line_height + box_padding};
}

// Vertical at every bend, so that the pieces meet smoothly.
std::string path_of(const std::vector<Point>& points) {
  std::string out = fmt::format("M{:.1f},{:.1f}", points[0].x, points[0].y);
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Point& a = points[i - 1];
    const Point& b = points[i];
    const double middle = (a.y + b.y) / 2;
    out += fmt::format("C{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}", a.x, middle, b.x, middle, b.x, b.y);
  }
  return out;
}

std::string box_svg(const Box& box, const BoxSize& size, const Point& centre) {
  std::string out = fmt::format(
      "<g><title>{}</title>\n<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"5\" fill=\"{}\" "
      "stroke=\"#555\"/>\n",
      escaped(box.title), centre.x - size.width / 2, centre.y - size.height / 2, size.width, size.height, box.fill);
  double y = centre.y - size.height / 2 + line_height;
  for (std::size_t i = 0; i < box.lines.size(); ++i, y += line_height) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", centre.x, y,
                       i == 0 ? " font-weight=\"bold\"" : "", escaped(box.lines[i]));
  }
  return out + "</g>\n";
}

}  // namespace

std::string graph_svg(const api::Engine& engine) {
  const Picture picture = Builder(engine).build();
  std::vector<BoxSize> sizes;
  for (const Box& box : picture.boxes) sizes.push_back(size_of(box));
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (const Edge& edge : picture.edges) edges.emplace_back(edge.from, edge.to);
  const Drawing drawing = draw_layered(sizes, edges);
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
      "markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto\"><path d=\"M0,0L8,4L0,8z\" fill=\"#555\"/></marker></defs>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<g fill=\"none\" stroke=\"#555\">\n",
      drawing.width, drawing.height);
  for (std::size_t i = 0; i < drawing.edges.size(); ++i) {
    out += fmt::format("<path marker-end=\"url(#tip)\" d=\"{}\"><title>{}</title></path>\n", path_of(drawing.edges[i]),
                       escaped(picture.edges[i].label));
  }
  out += "</g>\n<g font-family=\"monospace\" font-size=\"11\" text-anchor=\"middle\">\n";
  for (std::size_t i = 0; i < picture.boxes.size(); ++i) out += box_svg(picture.boxes[i], sizes[i], drawing.centres[i]);
  return out + "</g>\n</svg>\n";
}

}  // namespace polyphase::cli

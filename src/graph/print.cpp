// Prints a graph as text. parse.cpp reads it back; the grammar stands there.
#include "base/scanner.h"
#include "graph/graph.h"

#include <algorithm>
#include <cctype>

namespace polyphase {
namespace {

bool is_plain(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  });
}

std::string reference(const Value* value) {
  if (value == nullptr) return "none";
  return "%" + (is_plain(value->name) ? value->name : quote(value->name));
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  std::string run(const Graph& graph) {
    print_symbols(graph);
    print_graph(graph, 0);
    return std::move(out_);
  }

  std::string run(const Node& node) {
    print_line(node);
    return std::move(out_);
  }

 private:
  void indent(int depth) { out_.append(static_cast<std::size_t>(depth) * 2, ' '); }

  void print_symbols(const Graph& graph) {
    std::map<std::string, DimRange, std::less<>> symbols;
    graph.collect_symbols(symbols);
    for (const auto& [name, range] : symbols) {
      if (range == DimRange{}) continue;
      out_ += "symbol " + name + " = " + std::to_string(range.low) + ".." + std::to_string(range.high) + "\n";
    }
  }

  void print_typed(const Value& value) {
    out_ += value.type.text();
    if (options_.layouts && value.layout.is_set() && !value.layout.is_row_major())
      out_ += " layout " + value.layout.text();
  }

  void print_part(const Node& node, const Part& part, bool marked) {
    out_ += part.op->name;
    if (marked) out_ += "!";
    out_ += "(";
    for (std::size_t i = 0; i < part.operands.size(); ++i) {
      if (i > 0) out_ += ", ";
      const int operand = part.operands[i];
      if (operand == Part::running) {
        out_ += "_";
      } else if (operand == Part::absent) {
        out_ += "none";
      } else {
        out_ += reference(node.inputs()[static_cast<std::size_t>(operand)]);
      }
    }
    out_ += ")";
    const std::string text = print_part_attributes(part);
    if (!text.empty()) out_ += " " + text;
  }

  std::string print_part_attributes(const Part& part) const {
    for (const auto& [name, value] : part.attributes.values()) {
      const auto* tensor = std::get_if<Tensor>(&value);
      if (tensor != nullptr && tensor->valid() && tensor->view().element_count() > options_.max_constant_elements) {
        return name + "=elided";
      }
    }
    return print_attributes(part.attributes, &part.op->attributes);
  }

  void print_line(const Node& node) {
    for (std::size_t i = 0; i < node.outputs().size(); ++i) out_ += (i == 0 ? "" : ", ") + reference(node.output(i));
    if (!node.outputs().empty()) out_ += " = ";
    for (std::size_t i = 0; i < node.parts().size(); ++i) {
      if (i > 0) out_ += " then ";
      print_part(node, node.parts()[i], i == node.anchor() && i > 0);
    }
    const bool named_after_node = !node.outputs().empty() && node.output()->name == node.name();
    if (!named_after_node && !node.name().empty()) out_ += " node " + quote(node.name());
    for (std::size_t i = 0; i < node.outputs().size(); ++i) {
      out_ += i == 0 ? " -> " : ", ";
      print_typed(*node.output(i));
    }
  }

  void print_node(const Node& node, int depth) {
    indent(depth);
    print_line(node);
    out_ += "\n";
    for (const auto& region : node.regions()) print_graph(*region, depth + 1);
  }

  void print_graph(const Graph& graph, int depth) {
    indent(depth);
    out_ += "graph " + quote(graph.name) + " (";
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      out_ += (i == 0 ? "" : ", ") + reference(graph.inputs()[i].get()) + ": ";
      print_typed(*graph.inputs()[i]);
    }
    out_ += ") {\n";
    for (const auto& node : graph.nodes()) print_node(*node, depth + 1);
    for (const DimCheck& check : graph.checks()) {
      indent(depth + 1);
      out_ += "check " + quote(check.left.text()) + " " + std::string(name_of(check.relation)) + " " +
              quote(check.right.text()) + " " + quote(check.why) + "\n";
    }
    indent(depth + 1);
    out_ += "return ";
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      out_ += (i == 0 ? "" : ", ") + reference(graph.outputs()[i]);
      if (graph.output_names()[i] != graph.outputs()[i]->name) out_ += " as " + quote(graph.output_names()[i]);
    }
    out_ += "\n";
    indent(depth);
    out_ += "}\n";
  }

  const PrintOptions& options_;
  std::string out_;
};

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) { return Printer(options).run(graph); }

std::string print_node(const Node& node, const PrintOptions& options) { return Printer(options).run(node); }

}  // namespace polyphase

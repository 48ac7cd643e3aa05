// Reads the text form of a graph.
//
//   file   := { "symbol" NAME "=" INT ".." INT } graph
//   graph  := "graph" STRING "(" [ VALUE ":" type { "," … } ] ")" "{" { node | check } "return" [ VALUE [ "as" STRING ]
//   { "," … } ] "}" node   := [ VALUE { "," VALUE } "=" ] part { "then" part } [ "node" STRING ] [ "->" type { "," type
//   } ] { graph } part   := OP ["!"] "(" [ operand { "," operand } ] ")" { NAME "=" attribute }       "!" marks the
//   anchor when it is not the first part operand:= VALUE | "_" (the part before) | "none" (absent) type   := DTYPE "["
//   [ dim { "," dim } ] "]" [ "layout" AXIS { "," AXIS } ] check  := "check" STRING ("==" | "<=" | "broadcasts with")
//   STRING STRING
#include <algorithm>

#include "base/check.h"
#include "base/scanner.h"
#include "graph/graph.h"

namespace polyphase {
namespace {

using Symbols = std::map<std::string, DimRange, std::less<>>;

struct ParsedType {
  Type type;
  Layout layout;
};

struct ParsedNode {
  std::vector<std::string> results;
  std::vector<Part> parts;
  std::size_t anchor = 0;
  std::vector<Value*> inputs;
  std::string name;
  std::vector<ParsedType> types;
};

class Parser {
 public:
  Parser(std::string_view text, const Registry& registry) : scanner_(text), registry_(registry) {}

  Result<std::unique_ptr<Graph>> parse() {
    while (scanner_.take("symbol")) TRY_VOID(symbol());
    TRY(std::unique_ptr<Graph> graph, parse_graph(0));
    if (!scanner_.at_end()) return scanner_.refuse("the end");
    TRY_VOID(verify(*graph));  // what the text alone cannot show, such as two outputs of one name
    return graph;
  }

 private:
  static constexpr int max_depth = 64;
  using Names = std::map<std::string, Value*, std::less<>>;

  Result<void> symbol() {
    TRY(const std::string name, scanner_.word());
    TRY_VOID(scanner_.expect("="));
    TRY(const std::int64_t low, scanner_.integer());
    TRY_VOID(scanner_.expect(".."));
    TRY(const std::int64_t high, scanner_.integer());
    if (low > high) return scanner_.refuse("a range from low to high");
    symbols_[name] = {low, high};
    return {};
  }

  Result<std::string> value_name() {
    TRY_VOID(scanner_.expect("%"));
    if (scanner_.peek("\"")) return scanner_.quoted();
    if (scanner_.next_is_word()) return scanner_.word();
    std::string name;  // names may begin with a digit
    TRY(const std::int64_t number, scanner_.integer());
    name = std::to_string(number);
    if (scanner_.next_is_word()) {
      TRY(const std::string rest, scanner_.word());
      name += rest;
    }
    return name;
  }

  Result<ParsedType> type() {
    TRY(const std::string word, scanner_.word());
    const auto dtype = dtype_from_name(word);
    if (!dtype.has_value()) return scanner_.refuse("a dtype before this");
    TRY_VOID(scanner_.expect("["));
    std::vector<Dim> dims;
    while (!scanner_.take("]")) {
      if (!dims.empty()) TRY_VOID(scanner_.expect(","));
      TRY(Dim dim, parse_dim(scanner_.until(",]"), symbols_));
      dims.push_back(std::move(dim));
      if (dims.size() > max_rank) return scanner_.refuse("at most 8 axes");
    }
    ParsedType out{{*dtype, Shape(std::move(dims))}, {}};
    if (scanner_.take("layout")) {
      std::string axes;
      do {
        TRY(const std::int64_t axis, scanner_.integer());
        axes += (axes.empty() ? "" : ",") + std::to_string(axis);
      } while (scanner_.take(","));
      const auto layout = Layout::from_text(axes);
      if (!layout.has_value() || layout->rank() != out.type.shape.rank())
        return scanner_.refuse("a permutation of the axes before this");
      out.layout = *layout;
    }
    return out;
  }

  Result<Value*> find(const Names& names, const std::string& name) {
    const auto found = names.find(name);
    if (found == names.end()) return scanner_.refuse("a value defined before its use instead of '%" + name + "'");
    return found->second;
  }

  Result<std::unique_ptr<Graph>> parse_graph(int depth) {
    if (depth > max_depth) return scanner_.refuse("at most 64 nested graphs");
    auto graph = std::make_unique<Graph>(registry_);
    Names names;
    TRY_VOID(scanner_.expect("graph"));
    TRY(graph->name, scanner_.quoted());
    TRY_VOID(scanner_.expect("("));
    while (!scanner_.take(")")) {
      if (!names.empty()) TRY_VOID(scanner_.expect(","));
      TRY(const std::string name, value_name());
      TRY_VOID(scanner_.expect(":"));
      TRY(ParsedType parsed, type());
      if (names.count(name) != 0) return scanner_.refuse("each name once, not '" + name + "' again");
      Value* value = graph->add_input(name, parsed.type);
      value->layout = parsed.layout;
      names[name] = value;
    }
    TRY_VOID(scanner_.expect("{"));
    std::vector<DimCheck> checks;
    while (!scanner_.take("return")) {
      if (scanner_.take("check")) {
        TRY(DimCheck check, parse_check());
        checks.push_back(std::move(check));
      } else {
        TRY_VOID(parse_node(*graph, names, depth));
      }
    }
    for (DimCheck& check : checks) {
      if (std::find(graph->checks().begin(), graph->checks().end(), check) == graph->checks().end())
        graph->checks().push_back(std::move(check));
    }
    TRY_VOID(parse_return(*graph, names));
    TRY_VOID(scanner_.expect("}"));
    return graph;
  }

  Result<void> parse_return(Graph& graph, const Names& names) {
    if (scanner_.peek("}")) return {};
    do {
      TRY(const std::string name, value_name());
      TRY(Value * value, find(names, name));
      std::string output_name = value->name;
      if (scanner_.take("as")) {
        TRY(output_name, scanner_.quoted());
      }
      graph.add_output(value, output_name);
    } while (scanner_.take(","));
    return {};
  }

  Result<DimCheck> parse_check() {
    DimCheck check;
    TRY(const std::string left, scanner_.quoted());
    TRY(check.left, parse_dim(left, symbols_));
    if (scanner_.take("==")) {
      check.relation = DimCheck::Relation::equal;
    } else if (scanner_.take("<=")) {
      check.relation = DimCheck::Relation::less_equal;
    } else if (scanner_.take("broadcasts with")) {
      check.relation = DimCheck::Relation::broadcast;
    } else {
      return scanner_.refuse("==, <= or 'broadcasts with'");
    }
    TRY(const std::string right, scanner_.quoted());
    TRY(check.right, parse_dim(right, symbols_));
    TRY(check.why, scanner_.quoted());
    return check;
  }

  Result<Part> parse_part(ParsedNode& node, const Names& names, bool& marked) {
    TRY(const std::string op_name, scanner_.word());
    Part part;
    part.op = registry_.find(op_name);
    if (part.op == nullptr) return scanner_.refuse("a known operator instead of '" + op_name + "'");
    marked = scanner_.take("!");
    TRY_VOID(scanner_.expect("("));
    bool first = true;
    while (!scanner_.take(")")) {
      if (!first) TRY_VOID(scanner_.expect(","));
      first = false;
      TRY(const int operand, parse_operand(node, names));
      part.operands.push_back(operand);
    }
    if (node.parts.empty() &&
        std::find(part.operands.begin(), part.operands.end(), Part::running) != part.operands.end()) {
      return scanner_.refuse("a value: '_' needs a part before it");
    }
    TRY(part.attributes, parse_part_attributes(*part.op));
    return part;
  }

  Result<int> parse_operand(ParsedNode& node, const Names& names) {
    if (scanner_.take("_")) return static_cast<int>(Part::running);
    if (scanner_.take("none")) return static_cast<int>(Part::absent);
    TRY(const std::string name, value_name());
    TRY(Value * value, find(names, name));
    node.inputs.push_back(value);
    return static_cast<int>(node.inputs.size()) - 1;
  }

  // Attributes run up to the next keyword; each `NAME = value` is cut out and given to the operator's own reader.
  Result<Attributes> parse_part_attributes(const OpDef& op) {
    std::string text;
    while (scanner_.next_is_word() && !scanner_.peek("then") && !scanner_.peek("node") && !scanner_.peek("graph") &&
           !scanner_.peek("return") && !scanner_.peek("check")) {
      TRY(const std::string name, scanner_.word());
      TRY_VOID(scanner_.expect("="));
      text += name + "=" + std::string(scanner_.until(" \n\r\t}")) + " ";
    }
    TRY(Attributes given, parse_attributes(text, op.attributes, symbols_));
    return op.complete(std::move(given));
  }

  Result<void> parse_node(Graph& graph, Names& names, int depth) {
    ParsedNode parsed;
    while (scanner_.peek("%")) {
      TRY(std::string name, value_name());
      parsed.results.push_back(std::move(name));
      if (!scanner_.take(",")) break;
    }
    if (!parsed.results.empty()) TRY_VOID(scanner_.expect("="));
    do {
      bool marked = false;
      TRY(Part part, parse_part(parsed, names, marked));
      if (marked) parsed.anchor = parsed.parts.size();
      parsed.parts.push_back(std::move(part));
    } while (scanner_.take("then"));
    if (!parsed.results.empty()) parsed.name = parsed.results.front();
    if (scanner_.take("node")) {
      TRY(parsed.name, scanner_.quoted());
    }
    if (scanner_.take("->")) {
      do {
        TRY(ParsedType parsed_type, type());
        parsed.types.push_back(std::move(parsed_type));
      } while (scanner_.take(","));
    }
    std::vector<std::unique_ptr<Graph>> regions;
    while (scanner_.peek("graph")) {
      TRY(std::unique_ptr<Graph> region, parse_graph(depth + 1));
      regions.push_back(std::move(region));
    }
    return add_node(graph, names, parsed, std::move(regions));
  }

  Result<void> add_node(Graph& graph, Names& names, const ParsedNode& parsed,
                        std::vector<std::unique_ptr<Graph>> regions) {
    TRY(Node * node,
        graph.add_parts(parsed.parts, parsed.anchor, parsed.inputs, parsed.name, nullptr, std::move(regions)));
    if (node->outputs().size() != parsed.results.size()) {
      return scanner_.refuse(std::to_string(node->outputs().size()) + " results of '" + parsed.name + "'");
    }
    for (std::size_t i = 0; i < parsed.results.size(); ++i) {
      if (names.count(parsed.results[i]) != 0)
        return scanner_.refuse("each name once, not '" + parsed.results[i] + "' again");
      graph.rename(node->output(i), parsed.results[i]);
      names[parsed.results[i]] = node->output(i);
      if (i >= parsed.types.size()) continue;
      if (!(parsed.types[i].type == node->output(i)->type)) {
        return scanner_.refuse("the type " + node->output(i)->type.text() + " of '%" + parsed.results[i] +
                               "', which its operands give, not " + parsed.types[i].type.text());
      }
      node->output(i)->layout = parsed.types[i].layout;
    }
    return {};
  }

  Scanner scanner_;
  const Registry& registry_;
  Symbols symbols_;
};

}  // namespace

Result<std::unique_ptr<Graph>> parse_graph(std::string_view text, const Registry& registry) {
  return Parser(text, registry).parse();
}

}  // namespace polyphase

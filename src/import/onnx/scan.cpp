// Scan: a `loop` over the entries of its scanned operands, whose number is the trip count.
#include <algorithm>

#include "import/onnx/importer.h"
#include "import/onnx/node_context.h"
#include "import/onnx/subgraph.h"

namespace polyphase {
namespace {

struct ScanSettings {
  std::int64_t scanned = 0;
  std::vector<std::int64_t> input_directions, output_directions, input_axes, output_axes;
};

Result<ScanSettings> settings_of(const onnx::NodeProto& node) {
  ScanSettings out;
  for (const auto& attribute : node.attribute()) {
    const std::string& name = attribute.name();
    std::vector<std::int64_t> list(attribute.ints().begin(), attribute.ints().end());
    if (name == "num_scan_inputs") {
      out.scanned = attribute.i();
    } else if (name == "scan_input_directions" || name == "directions") {
      out.input_directions = std::move(list);
    } else if (name == "scan_output_directions") {
      out.output_directions = std::move(list);
    } else if (name == "scan_input_axes") {
      out.input_axes = std::move(list);
    } else if (name == "scan_output_axes") {
      out.output_axes = std::move(list);
    } else if (name != "body") {
      return broken_rule("attribute '" + name.substr(0, 60) + "' does not belong to Scan.");
    }
  }
  return out;
}

std::int64_t entry(const std::vector<std::int64_t>& list, std::size_t i) { return i < list.size() ? list[i] : 0; }

// axis in [-rank, rank) → [0, rank).
Result<std::int64_t> normal_axis(std::int64_t axis, int rank, const std::string& role) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  return broken_rule(role + " is " + std::to_string(axis) + "; the tensor has the rank " + std::to_string(rank) + ".");
}

// A stacked result in the order and at the axis that the node wants.
Result<Value*> arrange(Graph& graph, Value* stacked, bool reversed, std::int64_t axis, const std::string& name) {
  const int rank = stacked->type.shape.rank();
  if (reversed) {
    std::vector<Dim> start(static_cast<std::size_t>(rank), Dim(0));
    start[0] = stacked->type.shape[0] - 1;
    std::vector<std::int64_t> step(static_cast<std::size_t>(rank), 1);
    step[0] = -1;
    TRY(Node * turned,
        graph.add("slice", Attributes({{"start", start}, {"step", step}, {"size", stacked->type.shape.dims()}}),
                  {stacked}, name + "/reverse"));
    stacked = turned->output();
  }
  TRY(axis, normal_axis(axis, rank, "an entry of scan_output_axes"));
  if (axis == 0) return stacked;
  std::vector<std::int64_t> order;
  for (std::int64_t i = 1; i < rank; ++i) order.push_back(i);
  order.insert(order.begin() + axis, 0);
  TRY(Node * moved, graph.add("transpose", Attributes({{"order", order}}), {stacked}, name + "/axis"));
  return moved->output();
}

}  // namespace

Result<void> Importer::scan(onnx::NodeProto& node, const std::string& name, int version, Scope& scope) {
  onnx::GraphProto* body = subgraph_of(node, "body");
  if (body == nullptr) return broken_rule("the attribute body (a graph) is missing.");
  TRY(const ScanSettings settings, settings_of(node));
  const int skipped = version < 9 ? 1 : 0;  // sequence_lens
  const std::int64_t states = node.input_size() - skipped - settings.scanned;
  if (settings.scanned < 1 || states < 0 || body->input_size() != node.input_size() - skipped ||
      body->output_size() < std::max<std::int64_t>(states, node.output_size())) {
    return broken_rule("num_scan_inputs is " + std::to_string(settings.scanned) + "; the node has " +
                       std::to_string(node.input_size()) + " operands, its body takes " +
                       std::to_string(body->input_size()) + " values and gives " + std::to_string(body->output_size()) +
                       ".");
  }
  bool missing = false;
  Values operands;
  for (const std::string& input : node.input()) {
    TRY(Value * operand, value_of(input, scope, missing));
    operands.push_back(operand);
  }
  if (missing) {
    note_missing_below(*body, *scope.body);
    return define_missing(node, scope);
  }
  Graph& graph = *scope.graph;
  if (version < 9) {
    if (operands[0] != nullptr) {
      return lacking("Scan of opset 8 with sequence_lens is not supported.", "Export with opset 9 or later.");
    }
    operands.erase(operands.begin());
    for (Value*& operand : operands) {
      if (operand == nullptr || operand->type.shape.rank() < 1 || !(operand->type.shape[0] == 1))
        return lacking("Scan of opset 8 with a batch other than 1 is not supported.", "Export with opset 9 or later.");
      std::vector<Dim> shape(operand->type.shape.dims().begin() + 1, operand->type.shape.dims().end());
      TRY(Node * one, graph.add("reshape", Attributes({{"shape", std::move(shape)}}), {operand}, name + "/batch"));
      operand = one->output();
    }
  }
  LoopParts parts;
  parts.body = body;
  parts.carried.assign(operands.begin(), operands.begin() + states);
  for (std::size_t i = 0; i < static_cast<std::size_t>(settings.scanned); ++i) {
    Value* scanned = operands[static_cast<std::size_t>(states) + i];
    if (scanned == nullptr || std::find(operands.begin(), operands.end(), nullptr) != operands.end())
      return broken_rule("an operand of Scan has no name.");
    TRY(const std::int64_t axis,
        normal_axis(entry(settings.input_axes, i), scanned->type.shape.rank(), "an entry of scan_input_axes"));
    parts.slices.push_back({scanned, axis, entry(settings.input_directions, i) != 0});
    const auto& first = parts.slices.front();
    const std::string words = "the scanned operands must have one length, found " + first.of->type.text() + " and " +
                              scanned->type.text() + ".";
    TRY_VOID(DimDemands(graph.checks())
                 .require(first.of->type.shape[static_cast<int>(first.axis)], DimCheck::Relation::equal,
                          scanned->type.shape[static_cast<int>(axis)], name + ": " + words));
  }
  const auto& first = parts.slices.front();
  parts.trips = graph.must_add(
      "dims",
      Attributes({{"values", std::vector<Dim>{first.of->type.shape[static_cast<int>(first.axis)]}}, {"scalar", true}}),
      {}, name + "/trips");
  ++depth_;
  TRY(Node * made, make_loop(std::move(parts), name, scope, missing));
  --depth_;
  if (missing) return define_missing(node, scope);
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    Meaning meaning;
    meaning.value = made->output(static_cast<std::size_t>(i));
    if (i >= states) {
      const auto stacked = static_cast<std::size_t>(i - states);
      TRY(meaning.value, arrange(graph, meaning.value, entry(settings.output_directions, stacked) != 0,
                                 entry(settings.output_axes, stacked), name));
    }
    if (version < 9) {
      std::vector<Dim> shape = meaning.value->type.shape.dims();
      shape.insert(shape.begin(), Dim(1));
      TRY(Node * one,
          graph.add("reshape", Attributes({{"shape", std::move(shape)}}), {meaning.value}, name + "/batch"));
      meaning.value = one->output();
    }
    TRY_VOID(define(node.output(i), std::move(meaning), scope));
  }
  return {};
}

}  // namespace polyphase

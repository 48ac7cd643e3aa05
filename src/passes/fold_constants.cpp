// fold_constants: what follows from constants alone is computed now, by the reference loops.
//
//   %a = constant() value={1, 2}
//   %b = constant() value={3, 4}        %c = constant() value={4, 6}
//   %c = add(%a, %b)            →
//
// And a small integer tensor whose elements are known as sizes becomes those sizes: `constant` where all are numbers,
// `dims` (i64) where some are expressions.
//
// Condition: the results are not much larger than what they replace, so that a filled tensor of a gigabyte stays one
// node, and the arithmetic stays within a bound.
#include <algorithm>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

constexpr std::int64_t free_bytes = 1 << 20;       // results up to this size are always folded
constexpr double most_operations = 4e9;            // for one graph: some seconds of reference loops
constexpr std::int64_t most_growth = 256LL << 20;  // bytes by which one graph may grow

double operations_of(const Node& node) {
  const auto count = [](const Value* value) {
    return value == nullptr ? 0.0 : static_cast<double>(value->type.shape.element_count().constant().value_or(0));
  };
  double all = 0;
  for (const auto& output : node.outputs()) all += count(output.get());
  for (const Value* input : node.inputs()) all += count(input);
  const std::string& op = node.op().name;
  if (op == "conv" || op == "conv_transpose") {
    const Value* weight = node.anchor_input(1);
    const Value* driver = op == "conv" ? node.output() : node.anchor_input(0);
    if (weight == nullptr || driver == nullptr) return most_operations;
    return all + count(driver) * count(weight) /
                     std::max(1.0, static_cast<double>(weight->type.shape[0].constant().value_or(1)));
  }
  if (op == "matmul") {
    const Value* left = node.anchor_input(0);
    if (left == nullptr) return most_operations;
    const Shape& shape = left->type.shape;
    return all + count(node.output()) *
                     static_cast<double>(shape.rank() == 0 ? 1 : shape[shape.rank() - 1].constant().value_or(1));
  }
  return all;
}

std::int64_t bytes_of(const Type& type) {
  return type.shape.element_count().constant().value_or(INT64_MAX / 64) *
         static_cast<std::int64_t>(size_bytes(type.dtype));
}

class Folder {
 public:
  explicit Folder(Graph& graph) : graph_(graph) {}

  bool run() {
    bool changed = false;
    for (Node* node : graph_.node_list()) {
      if (!node->regions().empty() || node->is("constant") || node->is("dims") || node->anchors("bind")) continue;
      changed = fold_contents(node) || fold_values(node) || changed;
    }
    return changed;
  }

 private:
  // A result whose elements are known as sizes.
  bool fold_contents(Node* node) {
    if (node->outputs().size() != 1 || !node->output()->contents.has_value()) return false;
    Value* result = node->output();
    const std::vector<Dim> contents = *result->contents;
    Rewrite rewrite(graph_, node);
    const bool numbers =
        std::all_of(contents.begin(), contents.end(), [](const Dim& dim) { return dim.is_constant(); });
    if (numbers) {
      const auto sizes = result->type.shape.evaluate({});
      if (!sizes.has_value()) return false;
      return rewrite.commit(result,
                            rewrite.constant(Tensor::from_integers(result->type.dtype, *sizes, integers_of(contents))));
    }
    if (result->type.dtype != DType::i64 || result->type.shape.rank() > 1) return false;
    return rewrite.commit(
        result,
        rewrite.add("dims", Attributes({{"values", contents}, {"scalar", result->type.shape.rank() == 0}}), {}));
  }

  bool fold_values(Node* node) {
    std::int64_t operand_bytes = 0;
    for (const Value* input : node->inputs()) {
      if (input == nullptr) continue;
      if (constant_of(input) == nullptr) return false;
      operand_bytes += bytes_of(input->type);
    }
    if (node->inputs().empty()) return false;
    std::int64_t result_bytes = 0;
    for (const auto& output : node->outputs()) result_bytes += bytes_of(output->type);
    const double operations = operations_of(*node);
    const std::int64_t growth = result_bytes - operand_bytes;
    if (result_bytes > free_bytes && growth > operand_bytes) return false;
    if (operations_ + operations > most_operations || growth_ + growth > most_growth) return false;
    const auto results = evaluate(*node);
    if (!results.has_value()) return false;
    operations_ += operations;
    growth_ += growth;
    for (std::size_t i = 0; i < results->size(); ++i) {
      if (!(node->output(i)->type == (*results)[i].type())) return false;
    }
    for (std::size_t i = 0; i < results->size(); ++i) {
      const std::string name = node->output(i)->name;
      Value* value = graph_.add_constant((*results)[i], node->name(), node);
      if (!value->contents.has_value()) value->contents = node->output(i)->contents;
      graph_.replace_uses(node->output(i), value);
      graph_.rename(node->output(i), name + ".folded");
      graph_.rename(value, name);
    }
    erase_unused(graph_, node);
    return true;
  }

  // Nothing where the data breaks a rule (an index out of range): that is said when the model runs, if it ever does.
  static std::optional<std::vector<Tensor>> evaluate(const Node& node) {
    std::vector<Tensor> running;
    for (const Part& part : node.parts()) {
      const auto attributes = part.attributes.evaluate({});
      if (!attributes.has_value() || part.op->reference == nullptr) return std::nullopt;
      std::vector<Tensor> operands;
      for (const int operand : part.operands) {
        if (operand == Part::absent) {
          operands.emplace_back();
        } else {
          operands.push_back(operand == Part::running ? running.at(0)
                                                      : *constant_of(node.input(static_cast<std::size_t>(operand))));
        }
      }
      auto results = evaluate_reference(*part.op, *attributes, operands);
      if (!results.ok()) return std::nullopt;
      running = std::move(results).value();
    }
    return running;
  }

  Graph& graph_;
  double operations_ = 0;
  std::int64_t growth_ = 0;
};

}  // namespace

bool fold_constants(Graph& graph, const Target&) {
  return in_every_graph(graph, [](Graph& each) { return Folder(each).run(); });
}

}  // namespace polyphase

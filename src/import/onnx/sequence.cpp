// Sequences and optionals: what the importer knows of them is a list of values, so that nothing of them is left in the
// graph.
//
// A list's length, and each place in it, must be known at import: exporters write lists for torch.split, chunk, unbind
// and lists built up in loops that are unrolled.
#include "import/onnx/sequence.h"

#include <algorithm>

#include "base/lasting.h"
#include "import/compose/composer.h"
#include "import/onnx/importer.h"
#include "import/onnx/node_context.h"
#include "onnx/onnx.pb.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

constexpr std::int64_t most_entries = 4096;          // of one list
constexpr std::int64_t most_entries_held = 1 << 20;  // of all lists together: each insertion makes a new one

Meaning listed(Values values) {
  Meaning out;
  out.sequence = std::make_shared<const Values>(std::move(values));
  return out;
}

Meaning of_value(Value* value) {
  Meaning out;
  out.value = value;
  return out;
}

struct SequenceNode {
  NodeContext& context;
  std::vector<Meaning> operands;

  bool has(std::size_t i) const { return i < operands.size() && operands[i].is_there(); }
  const Values& list(std::size_t i) const { return *operands[i].sequence; }

  Result<void> expect_list(std::size_t i) const {
    if (i < operands.size() && operands[i].sequence != nullptr) return {};
    return broken_rule("operand " + std::to_string(i) + " must be a sequence.");
  }

  Result<void> expect_tensor(std::size_t i) const {
    if (i < operands.size() && operands[i].value != nullptr) return {};
    return broken_rule("operand " + std::to_string(i) + " must be a tensor.");
  }

  // Operand i as a place in a list of `length`, counted from the end where it is negative.
  Result<std::size_t> place(std::size_t i, std::size_t length) const {
    TRY_VOID(expect_tensor(i));
    TRY(const auto given, context.fixed_integers(i, "the position"));
    if (given.size() != 1) return broken_rule("the position must be one number.");
    const auto size = static_cast<std::int64_t>(length);
    if (given[0] < -size || given[0] >= size) {
      return broken_rule("the position is " + std::to_string(given[0]) + "; it must lie in [-" + std::to_string(size) +
                         ", " + std::to_string(size) + ").");
    }
    return static_cast<std::size_t>(given[0] < 0 ? given[0] + size : given[0]);
  }
};

Result<Meaning> sequence_construct(SequenceNode& node) {
  Values values;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    TRY_VOID(node.expect_tensor(i));
    values.push_back(node.operands[i].value);
  }
  return listed(std::move(values));
}

Result<Meaning> sequence_empty(SequenceNode& node) {
  node.context.ignore("dtype");
  return listed({});
}

Result<Meaning> sequence_at(SequenceNode& node) {
  TRY_VOID(node.expect_list(0));
  TRY(const std::size_t at, node.place(1, node.list(0).size()));
  return of_value(node.list(0)[at]);
}

Result<Meaning> sequence_length(SequenceNode& node) {
  TRY_VOID(node.expect_list(0));
  const std::int64_t length[] = {static_cast<std::int64_t>(node.list(0).size())};
  return of_value(node.context.constant(Tensor::from_integers(DType::i64, std::vector<std::int64_t>{}, length)));
}

Result<Meaning> sequence_insert(SequenceNode& node) {
  TRY_VOID(node.expect_list(0));
  TRY_VOID(node.expect_tensor(1));
  Values values = node.list(0);
  std::size_t at = values.size();
  if (node.has(2)) {
    // One place more than there are entries: behind the last.
    TRY(const auto given, node.context.fixed_integers(2, "the position"));
    const bool is_end = given.size() == 1 && given[0] == static_cast<std::int64_t>(values.size());
    if (!is_end) {
      TRY(at, node.place(2, values.size()));
    }
  }
  values.insert(values.begin() + static_cast<std::ptrdiff_t>(at), node.operands[1].value);
  return listed(std::move(values));
}

Result<Meaning> sequence_erase(SequenceNode& node) {
  TRY_VOID(node.expect_list(0));
  Values values = node.list(0);
  if (values.empty()) return broken_rule("the sequence is empty.");
  std::size_t at = values.size() - 1;
  if (node.has(1)) {
    TRY(at, node.place(1, values.size()));
  }
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(at));
  return listed(std::move(values));
}

Error too_many_parts(const std::string& count) {
  return lacking(
      "the sequence would have " + count + " entries; at most " + std::to_string(most_entries) + " are taken.",
      "Split into fewer parts.");
}

// Parts of `size` of an axis, the last of them smaller; without a size, parts of one.
Result<std::vector<Dim>> equal_parts(const Dim& extent, std::int64_t size, int axis) {
  if (size < 1) return broken_rule("split is " + std::to_string(size) + "; it must be at least 1.");
  if (!extent.is_constant()) {
    return lacking("how many parts there are depends on axis " + std::to_string(axis) + ", " + extent.text() +
                       ", which is known only when the model runs.",
                   "Fix that size (--dim NAME=NUMBER), or split into a fixed number of parts (Split).");
  }
  const std::int64_t whole = extent.value() / size;
  if (whole >= most_entries) return too_many_parts(std::to_string(whole));
  std::vector<Dim> parts(static_cast<std::size_t>(whole), Dim(size));
  if (extent.value() % size != 0) parts.emplace_back(extent.value() % size);
  return parts;
}

// ONNX's text has keepdims count only where `split` is absent. PyTorch's exporter writes unbind with a split of 1 and
// keepdims=0, and ONNX Runtime takes it so.
Result<Meaning> split_to_sequence(SequenceNode& node) {
  TRY_VOID(node.expect_tensor(0));
  NodeContext& context = node.context;
  TRY(const std::int64_t given_axis, context.axis(context.integer("axis", 0), context.rank(0)));
  const auto axis = static_cast<int>(given_axis);
  bool keep = context.flag("keepdims", true);
  const Dim extent = context.shape(0)[axis];
  std::vector<Dim> parts;
  if (!node.has(1)) {
    TRY(parts, equal_parts(extent, 1, axis));
  } else if (context.rank(1) == 0) {
    TRY(const auto size, context.fixed_integers(1, "split"));
    TRY(parts, equal_parts(extent, size[0], axis));
    keep = keep || size[0] != 1;
  } else {
    TRY(parts, context.sizes(1));
    keep = true;
    if (parts.size() > most_entries) return too_many_parts(std::to_string(parts.size()));
  }
  Composer make(context);
  Dim total(0);
  for (const Dim& part : parts) total += part;
  make.require_equal(total, extent,
                     "SplitToSequence: the parts must add up to axis " + std::to_string(axis) + ", " + extent.text() +
                         ", found " + total.text() + ".");
  Dim at(0);
  Values values;
  for (const Dim& part : parts) {
    Value* value = make.slice(context.input(0), axis, at, part);
    std::vector<Dim> shape = make.sizes(value);
    if (!keep && make.ok()) {
      shape.erase(shape.begin() + axis);
      value = make.reshape(value, std::move(shape));
    }
    values.push_back(value);
    at += part;
  }
  TRY(Values made, make.results(std::move(values)));
  return listed(std::move(made));
}

Result<Meaning> concat_from_sequence(SequenceNode& node) {
  TRY_VOID(node.expect_list(0));
  Values values = node.list(0);
  if (values.empty()) return broken_rule("the sequence is empty.");
  NodeContext& context = node.context;
  if (!context.has_attribute("axis")) return broken_rule("attribute 'axis' is missing.");
  const bool stacks = context.flag("new_axis", false);
  const std::int64_t rank = values.front()->type.shape.rank() + (stacks ? 1 : 0);
  TRY(const std::int64_t axis, context.axis(context.integer("axis", 0), rank));
  Composer make(context);
  for (Value*& value : values) {
    if (stacks && value->type.shape.rank() != rank - 1)
      return broken_rule("the entries of the sequence differ in rank, found " + values.front()->type.text() + " and " +
                         value->type.text() + ".");
    if (stacks) value = make.unsqueeze(value, static_cast<int>(axis));
  }
  TRY(Value * made, make.result(values.size() == 1 ? values.front() : make.concat(values, axis)));
  return of_value(made);
}

Result<Meaning> optional(SequenceNode& node) {
  node.context.ignore("type");
  if (node.has(0)) return node.operands[0];
  Meaning out;
  out.is_empty_optional = true;
  return out;
}

Result<Meaning> optional_has_element(SequenceNode& node) {
  const std::int64_t has[] = {node.has(0) ? 1 : 0};
  return of_value(node.context.constant(Tensor::from_integers(DType::boolean, std::vector<std::int64_t>{}, has)));
}

Result<Meaning> optional_get_element(SequenceNode& node) {
  if (!node.has(0)) return broken_rule("the optional holds nothing, but its element is taken.");
  return node.operands[0];
}

Result<Meaning> identity(SequenceNode& node) { return node.operands.at(0); }

struct SequenceOperator {
  Converter converter;
  Result<Meaning> (*make)(SequenceNode&);
};

const std::vector<SequenceOperator>& sequence_operators() {
  static const std::vector<SequenceOperator>& all = lasting<std::vector<SequenceOperator>>({
      {{"ConcatFromSequence", {11}, 1, 1}, concat_from_sequence},
      {{"Identity", {1, 13, 14, 16, 19, 21, 23, 24, 25}, 1, 1}, identity},
      {{"Optional", {15, 28}, 0, 1}, optional},
      {{"OptionalGetElement", {15, 18, 28}, 1, 1}, optional_get_element},
      {{"OptionalHasElement", {15, 18, 28}, 0, 1}, optional_has_element},
      {{"SequenceAt", {11}, 2, 2}, sequence_at},
      {{"SequenceConstruct", {11}, 1, any_number}, sequence_construct},
      {{"SequenceEmpty", {11}, 0, 0}, sequence_empty},
      {{"SequenceErase", {11}, 1, 2}, sequence_erase},
      {{"SequenceInsert", {11}, 2, 3}, sequence_insert},
      {{"SequenceLength", {11}, 1, 1}, sequence_length},
      {{"SplitToSequence", {11, 24}, 1, 2}, split_to_sequence},
  });
  return all;
}

const SequenceOperator* find_operator(std::string_view op_type) {
  const auto& all = sequence_operators();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const SequenceOperator& one) { return one.converter.op_type == op_type; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

const Converter* sequence_converter(std::string_view op_type) {
  const SequenceOperator* const found = find_operator(op_type);
  return found == nullptr ? nullptr : &found->converter;
}

Result<Meaning> Importer::meaning_of(std::string_view name, Scope& scope, bool& missing) {
  if (name.empty()) return Meaning();
  TRY(Meaning * meaning, look_up(name, scope));
  if (meaning->sequence == nullptr && !meaning->is_empty_optional) {
    TRY(Value * value, value_of(name, scope, missing));
    Meaning out = *meaning;
    out.value = value;
    return out;
  }
  return *meaning;
}

bool Importer::is_of_sequences(const onnx::NodeProto& node, Scope& scope) {
  if (sequence_converter(node.op_type()) == nullptr) return false;
  if (node.op_type() != "Identity") return true;
  if (node.input_size() != 1) return false;
  const auto given = look_up(node.input(0), scope);
  return given.ok() && ((*given)->sequence != nullptr || (*given)->is_empty_optional);
}

Result<void> Importer::sequence(onnx::NodeProto& node, const Converter& converter, int version, const std::string& name,
                                Scope& scope) {
  bool missing = false;
  std::vector<Meaning> operands;
  Values tensors;
  std::vector<bool> present;
  for (const std::string& operand : node.input()) {
    TRY(Meaning meaning, meaning_of(operand, scope, missing));
    tensors.push_back(meaning.value);
    present.push_back(meaning.is_there() || meaning.is_empty_optional);
    operands.push_back(std::move(meaning));
  }
  if (missing) return define_missing(node, scope);
  while (!present.empty() && !present.back()) present.pop_back();
  TRY_VOID(check_operands(converter, present));
  TRY(std::vector<NamedAttribute> attributes, attributes_of(node, scope));
  NodeContext context(*this, *scope.graph, converter, version, name, std::move(tensors),
                      static_cast<std::size_t>(node.output_size()), std::move(attributes));
  SequenceNode given{context, std::move(operands)};
  auto made = find_operator(converter.op_type)->make(given);
  if (!made.ok()) return std::move(made).error();
  TRY_VOID(context.finish());
  if (made->sequence != nullptr) {
    held_in_sequences_ += static_cast<std::int64_t>(made->sequence->size());
    if (made->sequence->size() > most_entries) return too_many_parts(std::to_string(made->sequence->size()));
    if (held_in_sequences_ > most_entries_held)
      return lacking(
          "the sequences of the model have more than " + std::to_string(most_entries_held) + " entries in all.",
          "Build lists with SequenceConstruct or Concat at once.");
  }
  if (node.output_size() == 0 || node.output(0).empty()) return {};
  return define(node.output(0), std::move(made).value(), scope);
}

}  // namespace polyphase

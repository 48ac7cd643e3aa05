// Opset by opset: what one node becomes is asked again at the next version, until the wanted one.
#include "export/convert_opset.h"

#include <charconv>

#include "export/describe_node.h"
#include "export/opset_history.h"
#include "export/opset_step.h"
#include "export/replacement.h"
#include "export/rewrite_model.h"
#include "wire/dtype_map.h"
#include "wire/external_data.h"
#include "wire/onnx_model.h"

namespace polyphase::legal {
namespace {

const OperatorVersion* find_version(std::string_view op_type, std::int64_t version) {
  for (const OperatorVersion& row : operator_versions()) {
    if (row.version == version && row.op_type == op_type) return &row;
  }
  return nullptr;
}

bool takes(std::uint32_t types, DType dtype) {
  return (types >> static_cast<unsigned>(wire::onnx_from_dtype(dtype)) & 1U) != 0;
}

// Whether an attribute has the default that `text` writes.
bool is_default(const onnx::AttributeProto& attribute, std::string_view text) {
  switch (attribute.type()) {
    case onnx::AttributeProto::INT:
      return std::to_string(attribute.i()) == text;
    case onnx::AttributeProto::STRING:
      return attribute.s() == text;
    case onnx::AttributeProto::INTS:
      return text == "1s" &&
             std::all_of(attribute.ints().begin(), attribute.ints().end(), [](auto one) { return one == 1; });
    case onnx::AttributeProto::FLOAT: {
      double value = 0;
      const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
      return problem == std::errc() && end == text.data() + text.size() && static_cast<float>(value) == attribute.f();
    }
    default:
      return false;
  }
}

class OpsetRules : public NodeRules {
 public:
  OpsetRules(std::int64_t from, std::int64_t to) : from_(from), to_(to) {}

  std::optional<std::int64_t> new_opset() const override { return to_; }
  bool repeatable() const override { return false; }

  Result<bool> touches(const onnx::NodeProto& node, const ModelFacts&) const override {
    if (!is_own_domain(node.domain())) return false;
    for (std::int64_t version = std::min(from_, to_) + 1; version <= std::max(from_, to_); ++version) {
      if (find_version(node.op_type(), version) != nullptr ||
          find_opset_step(node.op_type(), static_cast<int>(version)) != nullptr)
        return true;
    }
    return false;
  }

  Result<void> settle(const onnx::NodeProto& node, ModelFacts& facts, Settled& out) const override {
    out.nodes = {node};
    const bool up = to_ > from_;
    for (std::int64_t at = from_; at != to_; at += up ? 1 : -1) {
      facts.set_opset(up ? at + 1 : at - 1);
      std::vector<onnx::NodeProto> next;
      for (const onnx::NodeProto& one : out.nodes)
        TRY_VOID(cross(one, node, static_cast<int>(up ? at + 1 : at), facts, out, next));
      out.nodes = std::move(next);
    }
    return {};
  }

 private:
  // `version` is the later of the two opsets.
  Result<void> cross(const onnx::NodeProto& node, const onnx::NodeProto& origin, int version, ModelFacts& facts,
                     Settled& out, std::vector<onnx::NodeProto>& next) const {
    const OperatorVersion* const row = find_version(node.op_type(), version);
    const OpsetStep* const step = find_opset_step(node.op_type(), version);
    const bool up = to_ > from_;
    if (!is_own_domain(node.domain()) || (row == nullptr && step == nullptr)) {
      next.push_back(node);
      return {};
    }
    Replacement replacement(node, facts);
    auto crossed = row == nullptr ? Result<void>{} : check_types(node, *row, facts);
    const CrossVersion by_hand = step == nullptr ? nullptr : up ? step->up : step->down;
    if (crossed.ok())
      crossed = by_hand != nullptr ? by_hand(node, replacement)
                : row == nullptr   ? Result<void>{}
                : up               ? by_form_up(*row)
                                   : by_form_down(node, *row, replacement);
    if (!crossed.ok()) return refusal(origin, node, version, std::move(crossed).error());
    if (replacement.nodes().empty()) {
      next.push_back(node);
      return {};
    }
    ExportChange change;
    change.node = name_of(origin);
    change.rule = node.op_type() + "-" + std::to_string(version);
    change.why = step != nullptr && by_hand != nullptr
                     ? "from opset " + std::to_string(version) + " on, " + std::string(step->doc)
                     : "from opset " + std::to_string(version) + " on there are " + std::string(row->new_attributes);
    change.before = describe(node);
    for (const onnx::NodeProto& made : replacement.nodes())
      change.after += (change.after.empty() ? "" : ", ") + describe(made);
    change.tolerance = by_hand != nullptr && !up ? step->tolerance : 0;
    out.changes.push_back(std::move(change));
    for (onnx::TensorProto& tensor : replacement.tensors()) out.tensors.push_back(std::move(tensor));
    for (onnx::NodeProto& made : replacement.nodes()) next.push_back(std::move(made));
    return {};
  }

  // The reason alone becomes a message that names the operator and what to do.
  Result<void> refusal(const onnx::NodeProto& origin, const onnx::NodeProto& node, int version, Error why) const {
    const bool up = to_ > from_;
    const std::string kept = up ? std::to_string(version - 1) + " or earlier" : std::to_string(version) + " or later";
    why.message = node.op_type() + " cannot be said in opset " + std::to_string(to_) + ": " + why.message +
                  "; it needs opset " + kept + ".";
    return std::move(why).at_node(name_of(origin));
  }

  Result<void> check_types(const onnx::NodeProto& node, const OperatorVersion& row, const ModelFacts& facts) const {
    const bool up = to_ > from_;
    const std::uint32_t missing = up ? row.old_types : row.new_types;
    if (missing == 0) return {};
    const auto check = [&](const std::string& name) -> Result<void> {
      const TensorFact* const fact = name.empty() ? nullptr : facts.find(name);
      if (fact == nullptr || !takes(missing, fact->type.dtype)) return {};
      return cannot_be_said("it does not take " + std::string(name_of(fact->type.dtype)) + " there ('" + name + "')");
    };
    const int operands = std::min(row.first_operand_only ? 1 : row.operands_before, node.input_size());
    for (int i = 0; i < operands; ++i) TRY_VOID(check(node.input(i)));
    for (int i = 0; !row.first_operand_only && i < node.output_size(); ++i) TRY_VOID(check(node.output(i)));
    return {};
  }

  static Result<void> by_form_up(const OperatorVersion& row) {
    if (row.form == VersionForm::changed)
      return cannot_be_said("its meaning changed with opset " + std::to_string(row.version) +
                            ", and there is no rule for that");
    if (row.form == VersionForm::gone) return cannot_be_said("the operator does not exist any more");
    return {};
  }

  static Result<void> by_form_down(const onnx::NodeProto& node, const OperatorVersion& row, Replacement& out) {
    if (row.form == VersionForm::born)
      return cannot_be_said("the operator does not exist there, and no others say the same");
    if (row.form == VersionForm::changed)
      return cannot_be_said("its meaning changed with opset " + std::to_string(row.version) +
                            ", and there is no rule for that");
    for (int i = row.operands_before; i < node.input_size(); ++i) {
      if (!node.input(i).empty())
        return cannot_be_said("its operand " + std::to_string(i) + ", '" + node.input(i) + "', does not exist there");
    }
    for (int i = row.results_before; i < node.output_size(); ++i) {
      if (!node.output(i).empty())
        return cannot_be_said("its result " + std::to_string(i) + ", '" + node.output(i) + "', does not exist there");
    }
    std::vector<std::string> dropped;
    for (std::string_view rest = row.new_attributes; !rest.empty();) {
      const std::string_view entry = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
      const std::size_t sign = entry.find('=');
      const auto* const found = find_attribute(node, entry.substr(0, sign));
      if (found == nullptr) continue;
      if (!is_default(*found, entry.substr(sign + 1)))
        return cannot_be_said("its attribute " + found->name() + " does not exist there");
      dropped.push_back(found->name());
    }
    if (dropped.empty() && node.input_size() <= row.operands_before && node.output_size() <= row.results_before)
      return {};
    onnx::NodeProto& made = out.again();
    for (const std::string& name : dropped) drop_attribute(made, name);
    if (made.input_size() > row.operands_before) drop_operands_from(made, row.operands_before);
    while (made.output_size() > row.results_before) made.mutable_output()->RemoveLast();
    return {};
  }

  std::int64_t from_;
  std::int64_t to_;
};

Result<void> check_functions(const onnx::ModelProto& model) {
  for (const auto& function : model.functions()) {
    for (const auto& import : function.opset_import()) {
      if (!is_own_domain(import.domain())) continue;
      return Error{ErrorCode::unsupported,
                   "the model has functions of its own ('" + function.name() +
                       "'), whose nodes all calls share, so what they mean in another opset cannot be told.",
                   "Inline the model's functions first: onnx.inliner.inline_local_functions."};
    }
  }
  return {};
}

}  // namespace

Result<Legalised> convert_opset(std::span<const std::byte> model, TensorFacts facts, std::int64_t opset,
                                const std::optional<std::filesystem::path>& folder) {
  if (opset < oldest_opset || opset > newest_opset)
    return Error{ErrorCode::invalid_argument, "there is no conversion to opset " + std::to_string(opset) + ".",
                 "Give an opset from " + std::to_string(oldest_opset) + " to " + std::to_string(newest_opset) + "."};
  TRY(const wire::ModelPointer parsed, wire::parse_model(model));
  TRY_VOID(check_functions(*parsed));
  wire::ExternalData external(folder);
  ModelFacts known(*parsed, std::move(facts), external);
  return rewrite_model(model, *parsed, known, OpsetRules(known.opset(), opset));
}

}  // namespace polyphase::legal

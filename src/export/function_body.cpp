// Names first, so that subgraphs find what they capture; then node by node.
#include "export/function_body.h"

#include <map>
#include <set>
#include <string>

namespace polyphase::legal {
namespace {

using NewNames = std::map<std::string, std::string>;

class BodyCopy {
 public:
  BodyCopy(const onnx::FunctionProto& function, const onnx::NodeProto& call, ModelFacts& names)
      : function_(function), call_(call), names_(names), prefix_(name_of(call) + "/") {
    for (const auto& attribute : function.attribute_proto()) attributes_[attribute.name()] = &attribute;
    for (const auto& attribute : call.attribute()) attributes_[attribute.name()] = &attribute;
  }

  std::deque<onnx::NodeProto> run() {
    NewNames known;
    for (int i = 0; i < function_.input_size(); ++i)
      known[function_.input(i)] = i < call_.input_size() ? call_.input(i) : std::string();
    const std::deque<onnx::NodeProto> copies = name_results(known);
    std::deque<onnx::NodeProto> out;
    for (const auto& node : function_.node()) out.push_back(copy(node, known));
    out.insert(out.end(), copies.begin(), copies.end());
    return out;
  }

 private:
  // Results that another name stands for already are copied behind the body: an operand that is passed on, or one
  // tensor that is two results.
  std::deque<onnx::NodeProto> name_results(NewNames& known) {
    std::set<std::string> made;
    for (const auto& node : function_.node()) made.insert(node.output().begin(), node.output().end());
    std::deque<onnx::NodeProto> copies;
    for (int i = 0; i < function_.output_size() && i < call_.output_size(); ++i) {
      if (call_.output(i).empty()) continue;
      const std::string& result = function_.output(i);
      if (made.count(result) != 0 && known.emplace(result, call_.output(i)).second) continue;
      onnx::NodeProto& same = copies.emplace_back();
      same.set_op_type("Identity");
      same.set_name(names_.fresh_name(prefix_ + result));
      same.add_input(known[result]);
      same.add_output(call_.output(i));
    }
    for (const auto& node : function_.node()) {
      for (const std::string& output : node.output()) {
        if (!output.empty() && known.count(output) == 0) known[output] = names_.fresh_name(prefix_ + output);
      }
    }
    return copies;
  }

  static const std::string& renamed(const std::string& name, const NewNames& known) {
    const auto found = known.find(name);
    return found == known.end() ? name : found->second;
  }

  onnx::NodeProto copy(const onnx::NodeProto& node, const NewNames& known) {
    onnx::NodeProto out = node;
    if (!node.name().empty()) out.set_name(names_.fresh_name(prefix_ + node.name()));
    for (std::string& input : *out.mutable_input()) input = renamed(input, known);
    for (std::string& output : *out.mutable_output()) output = renamed(output, known);
    out.clear_attribute();
    for (const auto& attribute : node.attribute()) {
      if (!attribute.ref_attr_name().empty()) {
        const auto found = attributes_.find(attribute.ref_attr_name());
        if (found == attributes_.end()) continue;  // given neither by the call nor by the function: left out
        *out.add_attribute() = *found->second;
        out.mutable_attribute(out.attribute_size() - 1)->set_name(attribute.name());
        continue;
      }
      onnx::AttributeProto& own = *out.add_attribute();
      own = attribute;
      if (own.has_g()) rename_graph(*own.mutable_g(), known);
      for (auto& graph : *own.mutable_graphs()) rename_graph(graph, known);
    }
    return out;
  }

  // What a subgraph defines gets new names too: they may not hide those of the graph that it comes to stand in.
  void rename_graph(onnx::GraphProto& graph, NewNames known) {
    const auto define = [&](const std::string& name) {
      if (!name.empty()) known[name] = names_.fresh_name(prefix_ + name);
    };
    for (const auto& input : graph.input()) define(input.name());
    for (const auto& tensor : graph.initializer()) {
      if (!is_input(graph, tensor.name())) define(tensor.name());
    }
    for (const auto& tensor : graph.sparse_initializer()) define(tensor.values().name());
    for (const auto& node : graph.node()) {
      for (const std::string& output : node.output()) define(output);
    }
    for (auto& input : *graph.mutable_input()) input.set_name(renamed(input.name(), known));
    for (auto& tensor : *graph.mutable_initializer()) tensor.set_name(renamed(tensor.name(), known));
    for (auto& tensor : *graph.mutable_sparse_initializer())
      tensor.mutable_values()->set_name(renamed(tensor.values().name(), known));
    for (auto& node : *graph.mutable_node()) node = copy(node, known);
    for (auto& output : *graph.mutable_output()) output.set_name(renamed(output.name(), known));
    for (auto& value : *graph.mutable_value_info()) value.set_name(renamed(value.name(), known));
    for (auto& annotation : *graph.mutable_quantization_annotation()) {
      annotation.set_tensor_name(renamed(annotation.tensor_name(), known));
      for (auto& entry : *annotation.mutable_quant_parameter_tensor_names())
        entry.set_value(renamed(entry.value(), known));
    }
  }

  static bool is_input(const onnx::GraphProto& graph, const std::string& name) {
    for (const auto& input : graph.input()) {
      if (input.name() == name) return true;
    }
    return false;
  }

  const onnx::FunctionProto& function_;
  const onnx::NodeProto& call_;
  ModelFacts& names_;
  const std::string prefix_;
  std::map<std::string, const onnx::AttributeProto*> attributes_;
};

}  // namespace

std::deque<onnx::NodeProto> function_body(const onnx::FunctionProto& function, const onnx::NodeProto& call,
                                          ModelFacts& names) {
  return BodyCopy(function, call, names).run();
}

}  // namespace polyphase::legal

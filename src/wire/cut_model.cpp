// Backwards from the results to what is given; all else is dropped.
#include "wire/cut_model.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>

#include "onnx/onnx.pb.h"
#include "wire/dtype_map.h"
#include "wire/onnx_tensor.h"
#include "wire/printable.h"

namespace polyphase::wire {
namespace {

// What a node reads, from inside of its subgraphs too.
void collect_reads(const onnx::NodeProto& node, std::vector<std::string>& reads) {
  for (const std::string& input : node.input()) {
    if (!input.empty()) reads.push_back(input);
  }
  const auto from_graph = [&](const onnx::GraphProto& graph) {
    std::set<std::string> own;
    for (const auto& input : graph.input()) own.insert(input.name());
    for (const auto& tensor : graph.initializer()) own.insert(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) own.insert(tensor.values().name());
    std::vector<std::string> inner;
    for (const auto& below : graph.node()) {
      collect_reads(below, inner);
      own.insert(below.output().begin(), below.output().end());
    }
    for (const auto& output : graph.output()) inner.push_back(output.name());
    for (std::string& name : inner) {
      if (own.count(name) == 0) reads.push_back(std::move(name));
    }
  };
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) from_graph(attribute.g());
    for (const auto& graph : attribute.graphs()) from_graph(graph);
  }
}

Error open_end(const std::string& name, const std::string& why) {
  return Error{ErrorCode::invalid_argument, "the part is not closed: " + quoted_name(name) + " " + why,
               "Add --from " + printable(name) + ", or begin further up."};
}

class Cut {
 public:
  explicit Cut(const onnx::GraphProto& graph) {
    for (int i = 0; i < graph.node_size(); ++i) {
      for (const std::string& output : graph.node(i).output()) {
        if (!output.empty()) writers_[output] = i;
      }
    }
    for (const auto& tensor : graph.initializer()) constants_.insert(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) constants_.insert(tensor.values().name());
    for (const auto& input : graph.input()) inputs_.insert(input.name());
  }

  Result<void> walk(const onnx::GraphProto& graph, const std::vector<BorderTensor>& from,
                    const std::vector<BorderTensor>& to) {
    std::set<std::string> given;
    for (const BorderTensor& tensor : from) given.insert(tensor.name);
    std::vector<std::string> pending;
    for (const BorderTensor& tensor : to) {
      if (writers_.count(tensor.name) == 0)
        return Error{ErrorCode::invalid_argument,
                     "no node of the model's main graph gives the tensor " + quoted_name(tensor.name) + ".",
                     "polyphase compare MODEL --layers --all lists the tensors."};
      pending.push_back(tensor.name);
    }
    std::set<std::string> seen(pending.begin(), pending.end());
    std::set<std::string> reached;
    while (!pending.empty()) {
      const std::string name = std::move(pending.back());
      pending.pop_back();
      if (given.count(name) != 0) {
        reached.insert(name);
        continue;
      }
      if (const auto writer = writers_.find(name); writer != writers_.end()) {
        if (!nodes_.insert(writer->second).second) continue;
        std::vector<std::string> reads;
        collect_reads(graph.node(writer->second), reads);
        for (std::string& read : reads) {
          if (seen.insert(read).second) pending.push_back(std::move(read));
        }
      } else if (constants_.count(name) != 0) {
        used_.insert(name);
      } else if (inputs_.count(name) != 0) {
        return open_end(name, "is an input of the model that the part needs and --from does not give.");
      } else {
        return open_end(name, "is read, but nothing gives it.");
      }
    }
    for (const BorderTensor& tensor : from) {
      if (reached.count(tensor.name) == 0)
        return Error{ErrorCode::invalid_argument,
                     "nothing between needs the tensor " + quoted_name(tensor.name) + " that --from gives.",
                     "Leave it out, or ask for a tensor behind it with --to."};
    }
    return {};
  }

  const std::set<int>& nodes() const { return nodes_; }
  bool uses(const std::string& constant) const { return used_.count(constant) != 0; }

 private:
  std::map<std::string, int> writers_;
  std::set<std::string> constants_;
  std::set<std::string> inputs_;
  std::set<int> nodes_;
  std::set<std::string> used_;
};

void declare(const BorderTensor& tensor, onnx::ValueInfoProto& out) {
  out.set_name(tensor.name);
  if (!tensor.typed) return;
  auto* type = out.mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx_from_dtype(tensor.dtype));
  type->mutable_shape();
  for (const std::string& size : tensor.sizes) {
    auto* axis = type->mutable_shape()->add_dim();
    std::int64_t number = 0;
    const auto [end, problem] = std::from_chars(size.data(), size.data() + size.size(), number);
    if (problem == std::errc() && end == size.data() + size.size()) {
      axis->set_dim_value(number);
    } else {
      axis->set_dim_param(size);
    }
  }
}

// The tensor with its bytes inside.
Result<void> bring_in(onnx::TensorProto& tensor, ExternalData& external) {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return {};
  TRY(const DType dtype, dtype_from_onnx(tensor.data_type()));
  TRY(const auto sizes, checked_sizes(tensor.dims().data(), tensor.dims_size(), dtype));
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const bool packed = dtype == DType::i4 || dtype == DType::u4;
  const std::int64_t bytes = packed ? (count + 1) / 2 : count * static_cast<std::int64_t>(size_bytes(dtype));
  TRY(const auto buffer, external.read(tensor, bytes));
  tensor.set_raw_data(buffer->data(), static_cast<std::size_t>(bytes));
  tensor.clear_external_data();
  tensor.clear_data_location();
  return {};
}

Result<void> bring_all_in(onnx::GraphProto& graph, ExternalData& external);

Result<void> bring_all_in(onnx::NodeProto& node, ExternalData& external) {
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.has_t()) TRY_VOID(bring_in(*attribute.mutable_t(), external));
    if (attribute.has_g()) TRY_VOID(bring_all_in(*attribute.mutable_g(), external));
    for (auto& inner : *attribute.mutable_graphs()) TRY_VOID(bring_all_in(inner, external));
  }
  return {};
}

Result<void> bring_all_in(onnx::GraphProto& graph, ExternalData& external) {
  for (auto& tensor : *graph.mutable_initializer()) TRY_VOID(bring_in(tensor, external));
  for (auto& node : *graph.mutable_node()) TRY_VOID(bring_all_in(node, external));
  return {};
}

// The model's functions by name; overloads of one name stay together.
class Calls {
 public:
  using Key = std::pair<std::string, std::string>;

  explicit Calls(const onnx::ModelProto& model) {
    for (const auto& function : model.functions()) bodies_.emplace(Key{function.domain(), function.name()}, &function);
    for (const auto& node : model.graph().node()) look_at(node);
    while (!pending_.empty()) {
      const Key key = std::move(pending_.back());
      pending_.pop_back();
      const auto [begin, end] = bodies_.equal_range(key);
      for (auto body = begin; body != end; ++body) {
        for (const auto& node : body->second->node()) look_at(node);
      }
    }
  }

  bool reach(const onnx::FunctionProto& function) const {
    return called_.count({function.domain(), function.name()}) != 0;
  }

 private:
  void look_at(const onnx::NodeProto& node) {
    Key key{node.domain(), node.op_type()};
    if (bodies_.count(key) != 0 && called_.insert(key).second) pending_.push_back(std::move(key));
    for (const auto& attribute : node.attribute()) {
      for (const auto& inner : attribute.g().node()) look_at(inner);
      for (const auto& graph : attribute.graphs()) {
        for (const auto& inner : graph.node()) look_at(inner);
      }
    }
  }

  std::multimap<Key, const onnx::FunctionProto*> bodies_;
  std::set<Key> called_;
  std::vector<Key> pending_;
};

// Functions that the graph calls, also by way of others; those that it does not are dropped.
Result<void> take_functions(onnx::ModelProto& model, ExternalData& external) {
  google::protobuf::RepeatedPtrField<onnx::FunctionProto> kept;
  const Calls calls(model);
  for (auto& function : *model.mutable_functions()) {
    if (!calls.reach(function)) continue;
    for (auto& node : *function.mutable_node()) TRY_VOID(bring_all_in(node, external));
    kept.Add()->CopyFrom(function);
  }
  model.mutable_functions()->Swap(&kept);
  return {};
}

}  // namespace

std::vector<std::string> tensors_read(const onnx::NodeProto& node) {
  std::vector<std::string> out;
  collect_reads(node, out);
  return out;
}

std::vector<std::string> tensors_needed(const onnx::GraphProto& graph, const std::set<std::string>& to,
                                        const std::function<bool(const std::string&)>& is_given) {
  std::set<std::string> wanted = to;
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    const onnx::NodeProto& node = graph.node(i);
    const bool needed = std::any_of(node.output().begin(), node.output().end(),
                                    [&](const std::string& name) { return wanted.count(name) != 0; });
    if (!needed) continue;
    for (const std::string& read : tensors_read(node)) {
      if (!is_given(read))
        wanted.insert(read);
      else if (seen.insert(read).second)
        out.push_back(read);
    }
  }
  return out;
}

Result<std::string> cut_model(ModelPointer model, const std::vector<BorderTensor>& from,
                              const std::vector<BorderTensor>& to, ExternalData& external) {
  onnx::GraphProto& graph = *model->mutable_graph();
  Cut cut(graph);
  TRY_VOID(cut.walk(graph, from, to));
  onnx::GraphProto part;
  part.set_name(graph.name());
  for (const int node : cut.nodes()) part.add_node()->Swap(graph.mutable_node(node));
  for (auto& tensor : *graph.mutable_initializer()) {
    if (cut.uses(tensor.name())) part.add_initializer()->Swap(&tensor);
  }
  for (auto& tensor : *graph.mutable_sparse_initializer()) {
    if (cut.uses(tensor.values().name())) part.add_sparse_initializer()->Swap(&tensor);
  }
  for (const BorderTensor& tensor : from) declare(tensor, *part.add_input());
  for (const BorderTensor& tensor : to) declare(tensor, *part.add_output());
  graph.Swap(&part);
  TRY_VOID(bring_all_in(graph, external));
  TRY_VOID(take_functions(*model, external));
  if (model->ByteSizeLong() > static_cast<std::size_t>(max_model_bytes)) {
    return Error{ErrorCode::unsupported, "the part is larger than an ONNX file can be (2 GiB).", "Cut a smaller one."};
  }
  std::string bytes;
  if (!model->SerializeToString(&bytes))
    return Error{ErrorCode::invalid_model, "the part cannot be written as an ONNX model.", "Export the model again."};
  return bytes;
}

}  // namespace polyphase::wire

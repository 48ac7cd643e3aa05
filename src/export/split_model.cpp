// Nodes in their order, kind after kind: whatever of the kind at hand has its operands joins the piece, until no more
// do; then the other kind's turn comes. What has no operands of its own (Constant, weights) goes into each piece that
// reads it.
#include "export/split_model.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "onnx/onnx.pb.h"
#include "wire/dtype_map.h"
#include "wire/external_data.h"
#include "wire/onnx_model.h"

namespace polyphase::legal {
namespace {

// Imports until the kinds of all nodes stand; each finds one more that is not taken at least.
constexpr int most_looks = 1000;

struct Part {
  bool ours = false;
  std::vector<int> nodes;
};

class Splitter {
 public:
  Splitter(const onnx::ModelProto& model, std::span<const std::byte> bytes, std::string folder, const LookInto& look)
      : graph_(model.graph()), model_(model), bytes_(bytes), folder_(std::move(folder)), look_(look) {}

  Result<ModelChain> run() {
    read_graph();
    TRY(const PieceFindings whole, look_(std::string(reinterpret_cast<const char*>(bytes_.data()), bytes_.size())));
    types_ = whole.types;
    learn_declared_types();
    (void)mark(whole);
    for (int i = 0; i < most_looks; ++i) {
      TRY(std::optional<ModelChain> chain, try_chain());
      if (chain.has_value()) return *std::move(chain);
    }
    return Error{ErrorCode::unsupported,
                 "the model has too many nodes that are not taken to tell the others from them.",
                 "Cut it into parts first: polyphase extract."};
  }

 private:
  void read_graph() {
    for (const auto& input : graph_.input()) given_.insert(input.name());
    for (const auto& tensor : graph_.initializer()) weights_.insert(tensor.name());
    for (const auto& tensor : graph_.sparse_initializer()) weights_.insert(tensor.values().name());
    for (const std::string& weight : weights_) given_.erase(weight);
    std::set<std::string> wanted;
    for (const auto& output : graph_.output()) wanted.insert(output.name());
    for (int i = 0; i < graph_.node_size(); ++i) {
      const onnx::NodeProto& node = graph_.node(i);
      reads_.push_back(wire::tensors_read(node));
      const bool is_given = std::any_of(node.output().begin(), node.output().end(),
                                        [&](const auto& name) { return wanted.count(name) != 0; });
      free_.push_back(reads_.back().empty() && node.op_type() == "Constant" && !is_given);
    }
  }

  void learn_declared_types() {
    for (const auto* list : {&graph_.value_info(), &graph_.output(), &graph_.input()}) {
      for (const auto& value : *list) {
        const auto& tensor = value.type().tensor_type();
        const auto dtype = wire::dtype_from_onnx(tensor.elem_type());
        if (!dtype.ok() || !tensor.has_shape()) continue;
        wire::BorderTensor type{value.name(), *dtype, {}};
        for (const auto& size : tensor.shape().dim())
          type.sizes.push_back(size.has_dim_value()       ? std::to_string(size.dim_value())
                               : size.dim_param().empty() ? "size_" + std::to_string(names_++)
                                                          : size.dim_param());
        types_.try_emplace(value.name(), std::move(type));
      }
    }
  }

  bool uses(const onnx::NodeProto& node, const PieceFindings& found) const {
    const std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
    if (found.missing.count({domain, node.op_type()}) != 0) return true;
    if (foreign_functions_.count({node.domain(), node.op_type()}) != 0) return true;
    const auto in_graph = [&](const onnx::GraphProto& graph) {
      return std::any_of(graph.node().begin(), graph.node().end(),
                         [&](const auto& inner) { return uses(inner, found); });
    };
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g() && in_graph(attribute.g())) return true;
      if (std::any_of(attribute.graphs().begin(), attribute.graphs().end(), in_graph)) return true;
    }
    return false;
  }

  // Functions that use what is missing, also by way of others. Each is read once a round, however often it is called.
  void find_foreign_functions(const PieceFindings& found) {
    for (bool any = true; any;) {
      any = false;
      for (const auto& function : model_.functions()) {
        const std::pair key(function.domain(), function.name());
        if (foreign_functions_.count(key) != 0) continue;
        if (!std::any_of(function.node().begin(), function.node().end(),
                         [&](const auto& inner) { return uses(inner, found); }))
          continue;
        foreign_functions_.insert(key);
        any = true;
      }
    }
  }

  // Whether any node is known not to be taken that was not before.
  bool mark(const PieceFindings& found) {
    find_foreign_functions(found);
    bool any = false;
    for (int i = 0; i < graph_.node_size(); ++i) {
      const onnx::NodeProto& node = graph_.node(i);
      std::string name = node.name();
      for (int k = 0; name.empty() && k < node.output_size(); ++k) name = node.output(k);
      const bool refused = std::any_of(found.refused.begin(), found.refused.end(), [&](const std::string& one) {
        return one == name || one.compare(0, name.size() + 1, name + "/") == 0;
      });
      if ((refused || uses(node, found)) && theirs_.insert(i).second) any = true;
    }
    return any;
  }

  std::vector<Part> parts(bool ours_first) const {
    std::vector<Part> out;
    std::set<std::string> done = given_;
    std::vector<bool> taken(free_);
    std::size_t left = static_cast<std::size_t>(std::count(taken.begin(), taken.end(), false));
    for (int i = 0; i < graph_.node_size(); ++i) {
      if (taken[static_cast<std::size_t>(i)])
        done.insert(graph_.node(i).output().begin(), graph_.node(i).output().end());
    }
    int idle = 0;  // turns without a node: two in a row, and nothing will come
    for (bool ours = ours_first; left > 0 && idle < 2; ours = !ours) {
      Part part{ours, {}};
      for (int i = 0; i < graph_.node_size(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const bool ready = std::all_of(reads_[at].begin(), reads_[at].end(), [&](const std::string& name) {
          return done.count(name) != 0 || weights_.count(name) != 0;
        });
        if (taken[at] || !ready || (theirs_.count(i) == 0) != ours) continue;
        taken[at] = true;
        --left;
        part.nodes.push_back(i);
        done.insert(graph_.node(i).output().begin(), graph_.node(i).output().end());
      }
      idle = part.nodes.empty() ? idle + 1 : 0;
      if (!part.nodes.empty()) out.push_back(std::move(part));
    }
    return out;
  }

  Result<wire::BorderTensor> type_of(const std::string& tensor) const {
    if (const auto found = types_.find(tensor); found != types_.end()) return found->second;
    return Error{
        ErrorCode::unsupported,
        "the tensor '" + tensor + "' goes from one piece to another, and its type and rank are not known.",
        "Let the model say it: run onnx.shape_inference.infer_shapes, or add the tensor to the graph's value_info."};
  }

  // Nothing: some node turned out not to be taken, so the pieces are others.
  Result<std::optional<ModelChain>> try_chain() {
    std::vector<Part> chosen = parts(true);
    if (std::vector<Part> other = parts(false); other.size() < chosen.size()) chosen = std::move(other);
    std::map<std::string, std::size_t> made_in;
    for (std::size_t p = 0; p < chosen.size(); ++p) {
      for (const int node : chosen[p].nodes) {
        for (const std::string& output : graph_.node(node).output()) made_in[output] = p;
      }
    }
    ModelChain chain;
    for (const auto& input : graph_.input()) {
      if (weights_.count(input.name()) == 0) chain.inputs.push_back(input.name());
    }
    std::set<std::string> needed_later;  // by another piece, or by the caller
    for (const auto& output : graph_.output()) {
      chain.outputs.push_back(output.name());
      needed_later.insert(output.name());
      if (weights_.count(output.name()) != 0)
        return Error{ErrorCode::unsupported, "the output '" + output.name() + "' is a weight, which no piece gives.",
                     "Take it out of the model's outputs."};
      if (made_in.count(output.name()) == 0 && given_.count(output.name()) == 0)
        return Error{ErrorCode::invalid_model,
                     "the output '" + output.name() + "' is given by no node whose operands can all be computed.",
                     "onnx.checker.check_model tells which tensor is missing, or read before it is there."};
    }
    for (std::size_t p = 0; p < chosen.size(); ++p) {
      for (const int node : chosen[p].nodes) {
        for (const std::string& read : reads_[static_cast<std::size_t>(node)]) {
          const auto maker = made_in.find(read);
          if (maker != made_in.end() && maker->second != p) needed_later.insert(read);
        }
      }
    }
    for (std::size_t p = 0; p < chosen.size(); ++p) {
      TRY(const bool stands, add_piece(chosen[p], p, made_in, needed_later, chain));
      if (!stands) return std::optional<ModelChain>();
    }
    return std::optional<ModelChain>(std::move(chain));
  }

  Result<bool> add_piece(const Part& part, std::size_t number, const std::map<std::string, std::size_t>& made_in,
                         const std::set<std::string>& needed, ModelChain& chain) {
    ModelPiece piece;
    piece.ours = part.ours;
    piece.nodes = static_cast<std::int64_t>(part.nodes.size());
    for (const int node : part.nodes) {
      for (const std::string& output : graph_.node(node).output()) {
        if (needed.count(output) != 0) piece.outputs.push_back(output);
      }
    }
    if (piece.outputs.empty()) return true;  // nobody reads what it gives
    const std::set<std::string> wanted(piece.outputs.begin(), piece.outputs.end());
    for (const std::string& read : wire::tensors_needed(graph_, wanted, [&](const std::string& name) {
           const auto maker = made_in.find(name);
           return given_.count(name) != 0 || (maker != made_in.end() && maker->second != number);
         }))
      piece.inputs.push_back(read);
    std::vector<wire::BorderTensor> from;
    for (const std::string& input : piece.inputs) {
      TRY(from.emplace_back(), type_of(input));
    }
    if (part.ours) {
      std::vector<wire::BorderTensor> untyped;
      for (const std::string& output : piece.outputs) untyped.push_back({output, DType::f32, {}, false});
      TRY(const std::string trial, cut(from, untyped));
      TRY(const PieceFindings found, look_(trial));
      if (mark(found)) return false;
      if (!found.complete)
        return Error{ErrorCode::unsupported,
                     "a part of the model is not taken, and no node of its main graph is named for it.",
                     "polyphase check tells what is refused."};
      for (const auto& [name, type] : found.types) types_[name] = type;
    }
    std::vector<wire::BorderTensor> to;
    for (const std::string& output : piece.outputs) {
      TRY(to.emplace_back(), type_of(output));
    }
    TRY(piece.model, cut(from, to));
    chain.pieces.push_back(std::move(piece));
    return true;
  }

  Result<std::string> cut(const std::vector<wire::BorderTensor>& from,
                          const std::vector<wire::BorderTensor>& to) const {
    TRY(wire::ModelPointer copy, wire::parse_model(bytes_));
    wire::ExternalData external(std::filesystem::path{folder_});
    return wire::cut_model(std::move(copy), from, to, external);
  }

  const onnx::GraphProto& graph_;
  const onnx::ModelProto& model_;
  std::span<const std::byte> bytes_;
  std::string folder_;
  const LookInto& look_;
  std::vector<std::vector<std::string>> reads_;  // of each node
  std::vector<bool> free_;                       // goes into every piece that reads it
  std::set<std::string> given_;
  std::set<std::string> weights_;
  std::set<std::pair<std::string, std::string>> foreign_functions_;
  std::map<std::string, wire::BorderTensor> types_;
  std::set<int> theirs_;
  int names_ = 0;
};

}  // namespace

Result<ModelChain> split_model(std::span<const std::byte> model, const std::string& folder, const LookInto& look) {
  TRY(const wire::ModelPointer parsed, wire::parse_model(model));
  return Splitter(*parsed, model, folder, look).run();
}

}  // namespace polyphase::legal

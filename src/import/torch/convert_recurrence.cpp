// LSTM, GRU, RNN: layer by layer, each the input times its weights for all steps in one product, then the recurrence.
#include <numeric>

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"

namespace polyphase {
namespace {

using Integers = Composer::Integers;
using Sizes = Composer::Sizes;

// The operator of ours, and where its gates stand in PyTorch's weights: i, f, g, o of an LSTM are our i, o, f, g; r, z,
// n of a GRU our z, r, n.
struct Cell {
  std::string_view op;
  Integers gates;
  const char* activations = "";  // where they are not the usual ones
};

Cell cell_of(std::string_view overload) {
  if (overload.substr(0, 4) == "lstm") return {"lstm", {0, 3, 1, 2}};
  if (overload.substr(0, 3) == "gru") return {"gru", {1, 0, 2}};
  return {"rnn", {0}, overload.substr(0, 8) == "rnn_relu" ? "relu" : ""};
}

// Of one layer and direction.
struct CellWeights {
  Value* input = nullptr;  // [gates · hidden, features]
  Value* state = nullptr;  // [gates · hidden, hidden]
  Value* biases[2] = {};   // [gates · hidden], of the input and of the state; null: none
};

class Recurrence {
 public:
  Recurrence(AtenNode& node, Composer& c, Cell cell) : node_(node), c_(c), cell_(std::move(cell)) {}

  // x: [steps, batch, features]; states: h and, of an LSTM, c, [directions, batch, hidden]. Gives y [steps, batch,
  // directions · hidden] and the last states.
  Values layer(Value* x, const Values& states, const std::vector<CellWeights>& directions) {
    if (!c_.ok()) return Values(states.size() + 1, nullptr);
    const DType own = c_.dtype(x);
    const DType wide = size_bytes(own) < 4 ? DType::f32 : own;
    Values inputs;
    Values recurrent;
    Values biases;
    for (const CellWeights& one : directions) {
      inputs.push_back(rows(one.input));
      recurrent.push_back(c_.unsqueeze(c_.cast(rows(one.state), wide), 0));
      for (Value* const bias : one.biases) {
        if (bias != nullptr) biases.push_back(c_.cast(rows(bias), wide));
      }
    }
    const Dim count = static_cast<std::int64_t>(directions.size());
    Value* const flat = c_.reshape(x, {c_.size(x, 0) * c_.size(x, 1), c_.size(x, 2)});
    Value* const weights = c_.transpose(c_.concat(inputs, 0), {1, 0});
    Value* const product = c_.matmul(c_.cast(flat, wide), c_.cast(weights, wide));
    Values operands{c_.reshape(product, {c_.size(x, 0), c_.size(x, 1), c_.size(weights, 1)}), c_.concat(recurrent, 0)};
    Value* const bias = biases.empty() ? nullptr : c_.concat(biases, 0);
    if (!c_.ok()) return Values(states.size() + 1, nullptr);
    operands.push_back(bias == nullptr ? nullptr : c_.reshape(bias, {count, floor_div(c_.size(bias, 0), count)}));
    operands.push_back(nullptr);  // all sequences are as long as the longest
    for (Value* const state : states) operands.push_back(c_.cast(state, wide));
    auto results = c_.ok() ? node_.emit_all(cell_.op, attributes(directions.size()), std::move(operands))
                           : Result<Values>(Values(states.size() + 1, nullptr));
    if (!results.ok()) {
      c_.refuse(std::move(results).error());
      return Values(states.size() + 1, nullptr);
    }
    Value*& y = results->front();
    y = c_.transpose(y, {0, 2, 1, 3});
    y = c_.reshape(y, {c_.size(x, 0), c_.size(x, 1), c_.size(y, 2) * c_.size(y, 3)});
    for (Value*& value : *results) value = c_.cast(value, own);
    return *results;
  }

 private:
  Value* rows(Value* weights) {
    const auto gates = static_cast<std::int64_t>(cell_.gates.size());
    const Dim hidden = floor_div(c_.size(weights, 0), gates);
    Values blocks;
    for (const std::int64_t gate : cell_.gates) blocks.push_back(c_.slice(weights, 0, hidden * Dim(gate), hidden));
    return c_.concat(std::move(blocks), 0);
  }

  Attributes attributes(std::size_t directions) const {
    std::string words = cell_.activations;
    if (!words.empty() && directions == 2) words += "," + words;
    Attributes out(
        {{"direction", std::string(directions == 2 ? "bidirectional" : "forward")}, {"activations", std::move(words)}});
    if (cell_.op == "gru") out.set("linear_before_reset", true);
    return out;
  }

  AtenNode& node_;
  Composer& c_;
  Cell cell_;
};

// The parameters in the order of PyTorch's: of each layer and direction W, R and, with biases, theirs.
Result<std::vector<CellWeights>> weights_of(AtenNode& node, std::size_t expected) {
  const Values given = node.tensors("params");
  const std::size_t each = node.flag("has_biases") ? 4 : 2;
  if (given.size() == expected * (each + 1))
    return lacking("an LSTM with proj_size.", "Leave proj_size out, and put a Linear behind the LSTM.");
  if (given.size() != expected * each)
    return broken_program("it needs " + std::to_string(expected * each) + " weights, found " +
                          std::to_string(given.size()) + ".");
  std::vector<CellWeights> out;
  for (std::size_t i = 0; i < given.size(); i += each) {
    CellWeights one{given[i], given[i + 1]};
    if (each == 4) {
      one.biases[0] = given[i + 2];
      one.biases[1] = given[i + 3];
    }
    out.push_back(one);
  }
  return out;
}

Result<void> check_ranks(const Values& values, int rank, const char* role) {
  for (const Value* const value : values) {
    if (value != nullptr && value->type.shape.rank() != rank)
      return broken_program(std::string(role) + " must have " + std::to_string(rank) + " axes, found " +
                            value->type.text() + ".");
  }
  return {};
}

Result<void> check_weights(const std::vector<CellWeights>& all) {
  for (const CellWeights& one : all) {
    TRY_VOID(check_ranks({one.input, one.state}, 2, "weights"));
    TRY_VOID(check_ranks({one.biases[0], one.biases[1]}, 1, "biases"));
  }
  return {};
}

Result<Values> convert_layers(AtenNode& node) {
  Composer c(node);
  const bool both = node.flag("bidirectional");
  const bool batch_first = node.flag("batch_first");
  const std::int64_t layers = node.integer("num_layers");
  constexpr std::int64_t most_layers = 1000;
  if (layers < 1 || layers > most_layers) return broken_program("num_layers must be positive.");
  if (node.flag("train") && node.real("dropout") > 0 && layers > 1)
    return lacking("dropout between layers in training mode.", "Export the module in eval mode: module.eval().");
  const std::size_t directions = both ? 2 : 1;
  TRY(const auto weights, weights_of(node, directions * static_cast<std::size_t>(layers)));
  TRY_VOID(check_weights(weights));
  const Values states = node.tensors("hx");
  Recurrence recurrence(node, c, cell_of(node.overload()));
  if (states.size() != (cell_of(node.overload()).op == "lstm" ? 2U : 1U))
    return broken_program("it needs another number of states than " + std::to_string(states.size()) + ".");
  Value* x = node.tensor("input");
  TRY_VOID(check_ranks({x}, 3, "the input"));
  TRY_VOID(check_ranks(states, 3, "states"));
  if (batch_first) x = c.transpose(x, {1, 0, 2});
  std::vector<Values> last(states.size());
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto first = static_cast<std::int64_t>(directions) * layer;
    Values own;
    for (Value* const state : states) own.push_back(c.slice(state, 0, first, static_cast<std::int64_t>(directions)));
    const auto begin = weights.begin() + first;
    const Values found = recurrence.layer(x, own, {begin, begin + static_cast<std::ptrdiff_t>(directions)});
    x = found[0];
    for (std::size_t i = 0; i < states.size(); ++i) last[i].push_back(found[i + 1]);
  }
  Values out{batch_first ? c.transpose(x, {1, 0, 2}) : x};
  for (Values& one : last) out.push_back(c.concat(std::move(one), 0));
  return c.results(std::move(out));
}

// One step.
Result<Values> convert_cell(AtenNode& node) {
  Composer c(node);
  CellWeights weights{node.tensor("w_ih"), node.tensor("w_hh")};
  weights.biases[0] = node.tensor("b_ih");
  weights.biases[1] = node.tensor("b_hh");
  TRY_VOID(check_weights({weights}));
  Value* const x = node.tensor("input");
  Values states = node.tensors("hx");
  TRY_VOID(check_ranks({x}, 2, "the input"));
  TRY_VOID(check_ranks(states, 2, "states"));
  if ((weights.biases[0] == nullptr) != (weights.biases[1] == nullptr))
    return lacking("a cell with one bias only.", "Give both biases, or none.");
  const Cell cell = cell_of(node.overload());
  if (states.size() != (cell.op == "lstm" ? 2U : 1U))
    return broken_program("it needs another number of states than " + std::to_string(states.size()) + ".");
  for (Value*& state : states) state = c.unsqueeze(state, 0);
  Values found = Recurrence(node, c, cell).layer(c.unsqueeze(x, 0), states, {weights});
  found.erase(found.begin());
  for (Value*& state : found) state = c.squeeze(state, 0);
  return c.results(std::move(found));
}

}  // namespace

std::vector<AtenEntry> aten_recurrence_entries() {
  return {
      {"gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
       "train, "
       "bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
       convert_layers},
      {"gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
       convert_cell},
      {"lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
       "train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
       convert_layers},
      {"lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "
       "(Tensor, Tensor)",
       convert_cell},
      {"rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
       "train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
       convert_layers},
      {"rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "
       "Tensor",
       convert_cell},
      {"rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
       "train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
       convert_layers},
      {"rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "
       "Tensor",
       convert_cell},
  };
}

}  // namespace polyphase

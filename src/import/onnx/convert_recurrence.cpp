// LSTM, GRU, RNN: the input times its weights for all steps in one product, then the recurrence.
#include <algorithm>
#include <array>

#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

using Integers = std::vector<std::int64_t>;
using Sizes = std::vector<Dim>;

// ONNX's name, ours, and the alpha and beta that hold where the node gives none. NaN: the function has no such number.
struct Function {
  std::string_view onnx;
  std::string_view word;
  double alpha;
  double beta;
  int numbers;  // 0: none, 1: alpha, 2: alpha and beta
};
constexpr std::array functions = {
    Function{"sigmoid", "sigmoid", 0, 0, 0},
    Function{"tanh", "tanh", 0, 0, 0},
    Function{"relu", "relu", 0, 0, 0},
    Function{"affine", "affine", 1, 0, 2},
    Function{"leakyrelu", "leaky_relu", 0.01, 0, 1},
    Function{"thresholdedrelu", "thresholded_relu", 1, 0, 1},
    Function{"scaledtanh", "scaled_tanh", 1, 1, 2},
    Function{"hardsigmoid", "hard_sigmoid", 0.2, 0.5, 2},
    Function{"elu", "elu", 1, 0, 1},
    Function{"softsign", "softsign", 0, 0, 0},
    Function{"softplus", "softplus", 0, 0, 0},
};

// Numbers are taken from the lists in order, by the functions that have them.
Result<void> read_activations(NodeContext& node, Attributes& attributes) {
  const std::vector<std::string> names = node.words("activations");
  const std::vector<double> given_alphas = node.reals("activation_alpha").value_or(std::vector<double>());
  const std::vector<double> given_betas = node.reals("activation_beta").value_or(std::vector<double>());
  std::string words;
  std::vector<double> alphas;
  std::vector<double> betas;
  std::size_t alpha = 0;
  std::size_t beta = 0;
  for (std::string name : names) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    const auto* found =
        std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.onnx == name; });
    if (found == functions.end())
      return broken_rule("attribute 'activations' names '" + name.substr(0, 40) + "', which ONNX does not have.");
    words += (words.empty() ? "" : ",") + std::string(found->word);
    const bool takes_alpha = found->numbers >= 1 && alpha < given_alphas.size();
    const bool takes_beta = found->numbers == 2 && beta < given_betas.size();
    alphas.push_back(takes_alpha ? given_alphas[alpha++] : found->alpha);
    betas.push_back(takes_beta ? given_betas[beta++] : found->beta);
  }
  attributes.set("activations", words);
  attributes.set("alphas", alphas);
  attributes.set("betas", betas);
  return {};
}

class RecurrenceConverter {
 public:
  explicit RecurrenceConverter(NodeContext& node) : node_(node), lstm_(node.op_type() == "LSTM") {}

  Result<Values> convert() {
    TRY_VOID(read_attributes());
    own_ = node_.type(0).dtype;
    wide_ = own_ == DType::f16 || own_ == DType::bf16 ? DType::f32 : own_;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
      if (node_.rank(i) != 3)
        return broken_rule("operands X, W and R must be of rank 3; operand " + std::to_string(i) + " is " +
                           node_.type(i).text() + ".");
    }
    TRY(Value * x, projected_input());
    Values operands{x};
    TRY(Value * r, operand(2));
    operands.push_back(r);
    TRY(Value * bias, operand(3));
    operands.push_back(bias);
    operands.push_back(node_.input(4));
    TRY(Value * h, state(5));
    operands.push_back(h);
    if (lstm_) {
      TRY(Value * c, state(6));
      operands.push_back(c);
      TRY(Value * peephole, operand(7));
      operands.push_back(peephole);
    }
    while (operands.back() == nullptr) operands.pop_back();
    const char* op = lstm_ ? "lstm" : node_.op_type() == "GRU" ? "gru" : "rnn";
    TRY(Node * made, node_.graph().add(op, attributes_, std::move(operands), node_.name()));
    Values results;
    for (const auto& output : made->outputs()) {
      Value* value = output.get();
      if (batch_first_) {
        TRY(value, transposed(value, results.empty() ? Integers{2, 0, 1, 3} : Integers{1, 0, 2}));
      }
      TRY(value, cast(value, own_));
      results.push_back(value);
    }
    return results;
  }

 private:
  Result<void> read_attributes() {
    node_.ignore("hidden_size");  // the weights say it
    batch_first_ = node_.version() >= 14 && node_.flag("layout", false);
    attributes_.set("direction", node_.word("direction", "forward"));
    attributes_.set("clip", std::max(0.0, node_.real("clip", 0)));
    if (lstm_) attributes_.set("input_forget", node_.flag("input_forget", false));
    if (node_.op_type() == "GRU") attributes_.set("linear_before_reset", node_.flag("linear_before_reset", false));
    return read_activations(node_, attributes_);
  }

  Result<Value*> cast(Value* value, DType to) {
    if (value == nullptr || value->type.dtype == to) return value;
    return node_.emit("cast", Attributes({{"to", to}}), {value});
  }
  Result<Value*> transposed(Value* value, Integers order) {
    return node_.emit("transpose", Attributes({{"order", std::move(order)}}), {value});
  }
  Result<Value*> reshaped(Value* value, Sizes shape) {
    return node_.emit("reshape", Attributes({{"shape", std::move(shape)}}), {value});
  }
  Result<Value*> operand(std::size_t i) { return cast(node_.input(i), wide_); }
  Result<Value*> state(std::size_t i) {
    TRY(Value * value, operand(i));
    if (value == nullptr || !batch_first_ || value->type.shape.rank() != 3) return value;
    return transposed(value, {1, 0, 2});
  }

  // [steps, batch, directions · gates · hidden]
  Result<Value*> projected_input() {
    TRY(Value * x, operand(0));
    if (batch_first_) {
      TRY(x, transposed(x, {1, 0, 2}));
    }
    TRY(Value * w, operand(1));
    const Sizes x_sizes = x->type.shape.dims();
    const Sizes w_sizes = w->type.shape.dims();
    TRY(w, transposed(w, {2, 0, 1}));
    TRY(w, reshaped(w, {w_sizes[2], w_sizes[0] * w_sizes[1]}));
    TRY(x, reshaped(x, {x_sizes[0] * x_sizes[1], x_sizes[2]}));
    TRY(Value * product, node_.emit("matmul", {}, {x, w}));
    return reshaped(product, {x_sizes[0], x_sizes[1], w_sizes[0] * w_sizes[1]});
  }

  NodeContext& node_;
  bool lstm_;
  bool batch_first_ = false;
  DType own_ = DType::f32;
  DType wide_ = DType::f32;
  Attributes attributes_;
};

Result<Values> convert_recurrence(NodeContext& node) { return RecurrenceConverter(node).convert(); }

}  // namespace

std::vector<Converter> recurrence_converters() {
  return {
      {"GRU", {7, 14, 22}, 3, 6, convert_recurrence},
      {"LSTM", {7, 14, 22}, 3, 8, convert_recurrence},
      {"RNN", {7, 14, 22}, 3, 6, convert_recurrence},
  };
}

}  // namespace polyphase

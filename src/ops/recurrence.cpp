// lstm, gru, rnn: recurrences over the first axis. The product of the input with its weights, which does not recur, is
// a matmul before the node.
#include "ops/recurrence.h"
#include "ops/cut.h"

#include <algorithm>
#include <cmath>

#include "ops/dense.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {

Cell cell_of(std::string_view op_name) {
  return op_name == "lstm" ? Cell::lstm : op_name == "gru" ? Cell::gru : Cell::rnn;
}

int gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }

namespace {

constexpr std::string_view function_words[] = {
    "sigmoid",     "tanh",         "relu", "affine",   "leaky_relu", "thresholded_relu",
    "scaled_tanh", "hard_sigmoid", "elu",  "softsign", "softplus"};

std::string_view usual_activations(Cell cell) {
  return cell == Cell::lstm ? "sigmoid,tanh,tanh" : cell == Cell::gru ? "sigmoid,tanh" : "tanh";
}

std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> out;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    out.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return out;
}

}  // namespace

std::optional<CellFunction> cell_function(std::string_view word) {
  const auto* found = std::find(std::begin(function_words), std::end(function_words), word);
  if (found == std::end(function_words)) return std::nullopt;
  return static_cast<CellFunction>(found - std::begin(function_words));
}

Result<RecurrenceSettings> recurrence_settings(std::string_view op_name, const Attributes& attributes) {
  RecurrenceSettings out;
  out.cell = cell_of(op_name);
  const auto& direction = attributes.get<std::string>("direction");
  out.directions = direction == "bidirectional" ? 2 : 1;
  out.reversed[0] = direction == "reverse";
  out.reversed[1] = true;
  out.clip = attributes.get<double>("clip");
  if (out.cell == Cell::gru) out.linear_before_reset = attributes.get<bool>("linear_before_reset");
  if (out.cell == Cell::lstm) out.input_forget = attributes.get<bool>("input_forget");
  const auto refuse_list = [&](const std::string& what) {
    return Error{ErrorCode::invalid_model, std::string(op_name) + ": " + what};
  };
  const std::string_view usual = usual_activations(out.cell);
  const std::string& given = attributes.get<std::string>("activations");
  const std::vector<std::string_view> words = words_of(given.empty() ? usual : std::string_view(given));
  const std::size_t each = words_of(usual).size();
  const auto directions = static_cast<std::size_t>(out.directions);
  if (words.size() != each && words.size() != each * directions) {
    return refuse_list("attribute 'activations' must name " + std::to_string(each) +
                       " functions, or as many for each direction; found " + std::to_string(words.size()) + ".");
  }
  const auto& alphas = attributes.get<std::vector<double>>("alphas");
  const auto& betas = attributes.get<std::vector<double>>("betas");
  if ((!alphas.empty() && alphas.size() != words.size()) || (!betas.empty() && betas.size() != words.size())) {
    return refuse_list("attributes 'alphas' and 'betas' must be empty or hold one number for each of the " +
                       std::to_string(words.size()) + " activations.");
  }
  for (std::size_t d = 0; d < directions; ++d) {
    for (std::size_t i = 0; i < each; ++i) {
      const std::size_t at = words.size() == each ? i : d * each + i;
      const auto function = cell_function(words[at]);
      if (!function.has_value())
        return refuse_list("there is no activation '" + std::string(words[at].substr(0, 40)) + "'.");
      out.activations[d].push_back({*function, alphas.empty() ? 0 : alphas[at], betas.empty() ? 0 : betas[at]});
    }
  }
  return out;
}

namespace {

// ---------------------------------------------------------------- shapes

// The operands by name; which the cell does not have are -1.
struct Places {
  int x = 0;
  int r = 1;
  int bias = 2;
  int lengths = 3;
  int initial_h = 4;
  int initial_c = -1;
  int peephole = -1;
};
Places places_of(Cell cell) { return cell == Cell::lstm ? Places{.initial_c = 5, .peephole = 6} : Places{}; }

Result<void> expect_sizes(const InferContext& context, int operand, const std::vector<Dim>& sizes,
                          const std::string& words) {
  const auto i = static_cast<std::size_t>(operand);
  if (operand < 0 || !context.has_input(i)) return {};
  const Type& type = context.input(i);
  const std::string message = context.op().name + ": operand " + operand_name(context, i) + " must be " + words +
                              ", found " + type.text() + ".";
  if (type.shape.rank() != static_cast<int>(sizes.size())) return Error{ErrorCode::invalid_model, message};
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    TRY_VOID(
        context.require(type.shape[axis], DimCheck::Relation::equal, sizes[static_cast<std::size_t>(axis)], message));
  }
  return {};
}

Result<std::vector<Type>> infer_recurrence(const InferContext& context) {
  TRY(const RecurrenceSettings settings, recurrence_settings(context.op().name, context.attributes()));
  const Places at = places_of(settings.cell);
  TRY_VOID(expect_dtype(context, 0, DTypeSet::floats));
  for (const int operand : {at.r, at.bias, at.initial_h, at.initial_c, at.peephole}) {
    if (operand >= 0 && context.has_input(static_cast<std::size_t>(operand)))
      TRY_VOID(expect_same_dtype(context, 0, static_cast<std::size_t>(operand)));
  }
  const Type& x = context.input(0);
  const Type& r = context.input(1);
  if (x.shape.rank() != 3 || r.shape.rank() != 3) {
    return refuse(context,
                  "operands 'x' [steps, batch, directions · gates · hidden] and 'r' [directions, gates · "
                  "hidden, hidden] must be of rank 3, found " +
                      x.text() + " and " + r.text() + ".");
  }
  const Dim directions(settings.directions);
  const Dim gates(gates_of(settings.cell));
  const Dim& batch = x.shape[1];
  const Dim& hidden = r.shape[2];
  TRY_VOID(expect_sizes(context, 0, {x.shape[0], batch, directions * gates * hidden},
                        "[steps, batch, directions · gates · hidden] with hidden " + hidden.text()));
  TRY_VOID(expect_sizes(context, 1, {directions, gates * hidden, hidden}, "[directions, gates · hidden, hidden]"));
  TRY_VOID(expect_sizes(context, at.bias, {directions, Dim(2) * gates * hidden}, "[directions, 2 · gates · hidden]"));
  TRY_VOID(expect_sizes(context, at.lengths, {batch}, "[batch]"));
  TRY_VOID(expect_sizes(context, at.initial_h, {directions, batch, hidden}, "[directions, batch, hidden]"));
  TRY_VOID(expect_sizes(context, at.initial_c, {directions, batch, hidden}, "[directions, batch, hidden]"));
  TRY_VOID(expect_sizes(context, at.peephole, {directions, Dim(3) * hidden}, "[directions, 3 · hidden]"));
  if (context.has_input(static_cast<std::size_t>(at.lengths)) &&
      context.input(static_cast<std::size_t>(at.lengths)).dtype != DType::i32)
    return refuse(context, "operand 'lengths' must be i32.");
  std::vector<Type> out{{x.dtype, {x.shape[0], directions, batch, hidden}}, {x.dtype, {directions, batch, hidden}}};
  if (settings.cell == Cell::lstm) out.push_back(out.back());
  return out;
}

// ---------------------------------------------------------------- reference

double apply(const CellActivation& f, double clip, double x) {
  if (clip > 0) x = x > clip ? clip : x < -clip ? -clip : x;
  switch (f.function) {
    case CellFunction::sigmoid:
      return 1 / (1 + std::exp(-x));
    case CellFunction::tanh:
      return std::tanh(x);
    case CellFunction::relu:
      return x < 0 ? 0 : x;
    case CellFunction::affine:
      return f.alpha * x + f.beta;
    case CellFunction::leaky_relu:
      return x < 0 ? f.alpha * x : x;
    case CellFunction::thresholded_relu:
      return x > f.alpha ? x : 0;
    case CellFunction::scaled_tanh:
      return f.alpha * std::tanh(f.beta * x);
    case CellFunction::hard_sigmoid:
      return std::min(1.0, std::max(0.0, f.alpha * x + f.beta));
    case CellFunction::elu:
      return x < 0 ? f.alpha * std::expm1(x) : x;
    case CellFunction::softsign:
      return x / (1 + std::fabs(x));
    case CellFunction::softplus:
      return x > 40 ? x : std::log1p(std::exp(x));
  }
  return x;
}

class Recurrence {
 public:
  Recurrence(const ReferenceContext& context, RecurrenceSettings settings)
      : settings_(std::move(settings)), gates_(gates_of(settings_.cell)) {
    const Places at = places_of(settings_.cell);
    steps_ = context.outputs[0].sizes[0];
    batch_ = context.outputs[0].sizes[2];
    hidden_ = context.outputs[0].sizes[3];
    x_ = dense_values<double>(context.inputs[0]);
    r_ = dense_values<double>(context.inputs[1]);
    bias_ = values_of(context, at.bias, settings_.directions * 2 * gates_ * hidden_);
    peephole_ = values_of(context, at.peephole, settings_.directions * 3 * hidden_);
    h_ = values_of(context, at.initial_h, settings_.directions * batch_ * hidden_);
    c_ = values_of(context, at.initial_c, settings_.directions * batch_ * hidden_);
    if (context.has_input(static_cast<std::size_t>(at.lengths)))
      lengths_ = dense_values<std::int64_t>(context.inputs[static_cast<std::size_t>(at.lengths)]);
    y_.assign(static_cast<std::size_t>(steps_ * settings_.directions * batch_ * hidden_), 0.0);
  }

  Result<void> run(const ReferenceContext& context) {
    for (const std::int64_t length : lengths_) {
      if (length < 0 || length > steps_) {
        return Error{ErrorCode::invalid_argument, "a length is " + std::to_string(length) +
                                                      "; it must lie from 0 to the number of steps, " +
                                                      std::to_string(steps_) + "."};
      }
    }
    for (std::int64_t d = 0; d < settings_.directions; ++d) {
      for (std::int64_t b = 0; b < batch_; ++b) run_sequence(d, b);
    }
    store_values(y_, context.outputs[0]);
    store_values(h_, context.outputs[1]);
    if (settings_.cell == Cell::lstm) store_values(c_, context.outputs[2]);
    return {};
  }

 private:
  static std::vector<double> values_of(const ReferenceContext& context, int operand, std::int64_t count) {
    if (operand >= 0 && context.has_input(static_cast<std::size_t>(operand)))
      return dense_values<double>(context.inputs[static_cast<std::size_t>(operand)]);
    return std::vector<double>(static_cast<std::size_t>(count), 0.0);
  }

  void run_sequence(std::int64_t d, std::int64_t b) {
    const std::int64_t length = lengths_.empty() ? steps_ : lengths_[static_cast<std::size_t>(b)];
    double* h = h_.data() + (d * batch_ + b) * hidden_;
    double* c = settings_.cell == Cell::lstm ? c_.data() + (d * batch_ + b) * hidden_ : nullptr;
    for (std::int64_t s = 0; s < length; ++s) {
      const std::int64_t t = settings_.reversed[d] ? length - 1 - s : s;
      const double* x = x_.data() + ((t * batch_ + b) * settings_.directions + d) * gates_ * hidden_;
      if (settings_.cell == Cell::rnn) step_rnn(d, x, h);
      if (settings_.cell == Cell::lstm) step_lstm(d, x, h, c);
      if (settings_.cell == Cell::gru) step_gru(d, x, h);
      std::copy(h, h + hidden_, y_.data() + ((t * settings_.directions + d) * batch_ + b) * hidden_);
    }
  }

  // Row `row` of the recurrent weights times h.
  double product(std::int64_t d, std::int64_t row, const double* h) const {
    const double* r = r_.data() + (d * gates_ * hidden_ + row) * hidden_;
    double sum = 0;
    for (std::int64_t k = 0; k < hidden_; ++k) sum += r[k] * h[k];
    return sum;
  }
  double input_bias(std::int64_t d, std::int64_t row) const {
    return bias_[static_cast<std::size_t>(d * 2 * gates_ * hidden_ + row)];
  }
  double own_bias(std::int64_t d, std::int64_t row) const {
    return bias_[static_cast<std::size_t>((d * 2 + 1) * gates_ * hidden_ + row)];
  }
  double gate(std::int64_t d, std::int64_t row, const double* x, const double* h) const {
    return x[row] + product(d, row, h) + input_bias(d, row) + own_bias(d, row);
  }

  void step_rnn(std::int64_t d, const double* x, double* h) {
    next_.resize(static_cast<std::size_t>(hidden_));
    for (std::int64_t i = 0; i < hidden_; ++i)
      next_[static_cast<std::size_t>(i)] = apply(settings_.activations[d][0], settings_.clip, gate(d, i, x, h));
    std::copy(next_.begin(), next_.end(), h);
  }

  void step_lstm(std::int64_t d, const double* x, double* h, double* c) {
    const auto& f = settings_.activations[d];
    const double clip = settings_.clip;
    const double* p = peephole_.data() + d * 3 * hidden_;
    next_.resize(static_cast<std::size_t>(hidden_));
    for (std::int64_t i = 0; i < hidden_; ++i) {
      const double in = apply(f[0], clip, gate(d, i, x, h) + p[i] * c[i]);
      const double forget = settings_.input_forget
                                ? 1 - in
                                : apply(f[0], clip, gate(d, 2 * hidden_ + i, x, h) + p[2 * hidden_ + i] * c[i]);
      c[i] = forget * c[i] + in * apply(f[1], clip, gate(d, 3 * hidden_ + i, x, h));
      const double out = apply(f[0], clip, gate(d, hidden_ + i, x, h) + p[hidden_ + i] * c[i]);
      next_[static_cast<std::size_t>(i)] = out * apply(f[2], clip, c[i]);
    }
    std::copy(next_.begin(), next_.end(), h);
  }

  void step_gru(std::int64_t d, const double* x, double* h) {
    const auto& f = settings_.activations[d];
    next_.resize(static_cast<std::size_t>(hidden_));
    std::vector<double> reset(static_cast<std::size_t>(hidden_));
    for (std::int64_t i = 0; i < hidden_; ++i) {
      const double r = apply(f[0], settings_.clip, gate(d, hidden_ + i, x, h));
      reset[static_cast<std::size_t>(i)] = settings_.linear_before_reset ? r : r * h[i];
    }
    for (std::int64_t i = 0; i < hidden_; ++i) {
      const std::int64_t row = 2 * hidden_ + i;
      const double hidden = settings_.linear_before_reset
                                ? x[row] + input_bias(d, row) +
                                      reset[static_cast<std::size_t>(i)] * (product(d, row, h) + own_bias(d, row))
                                : gate(d, row, x, reset.data());
      const double z = apply(f[0], settings_.clip, gate(d, i, x, h));
      next_[static_cast<std::size_t>(i)] = (1 - z) * apply(f[1], settings_.clip, hidden) + z * h[i];
    }
    std::copy(next_.begin(), next_.end(), h);
  }

  RecurrenceSettings settings_;
  std::int64_t gates_;
  std::int64_t steps_ = 0;
  std::int64_t batch_ = 0;
  std::int64_t hidden_ = 0;
  std::vector<double> x_;
  std::vector<double> r_;
  std::vector<double> bias_;
  std::vector<double> peephole_;
  std::vector<double> h_;
  std::vector<double> c_;
  std::vector<double> y_;
  std::vector<double> next_;
  std::vector<std::int64_t> lengths_;
};

Result<void> run_cell(std::string_view op_name, const ReferenceContext& context) {
  TRY(RecurrenceSettings settings, recurrence_settings(op_name, context.attributes));
  return Recurrence(context, std::move(settings)).run(context);
}

// ---------------------------------------------------------------- definitions

CutAnswer cut_recurrence(const CutContext&) { return "goes through its steps one after another, each from the last"; }

OpDef recurrence_operator(const std::string& name, const std::string& formula, decltype(OpDef::reference) reference) {
  const Cell cell = cell_of(name);
  OpDef op{
      .name = name,
      .doc = formula +
             "\nX is the operand x at the step: the input times its weights already, [directions · gates · hidden] "
             "for each of the batch. R, Wb, Rb are the blocks of r and of the bias for the gate. The reverse "
             "direction goes through the steps from the last to the first. Beyond its length a sequence of the "
             "batch keeps its state and gives zeros.\nSource: ONNX operators RNN-22, LSTM-22, GRU-22.",
      .inputs = {{"x", "[steps, batch, directions · gates · hidden], float"},
                 {"r", "[directions, gates · hidden, hidden]"},
                 {"bias", "[directions, 2 · gates · hidden]: Wb of all gates, then Rb", true},
                 {"lengths", "[batch], i32: steps of each sequence of the batch; absent: all", true},
                 {"initial_h", "[directions, batch, hidden]; absent: 0", true}},
      .outputs = {{"y", "[steps, directions, batch, hidden]: h after each step"},
                  {"h", "[directions, batch, hidden]: h after the last"}},
      .attributes = {{"direction",
                      AttributeKind::word,
                      "through the steps",
                      std::string("forward"),
                      {"forward", "reverse", "bidirectional"}},
                     {"activations", AttributeKind::word,
                      "names between commas, for one direction or for each; empty: the cell's usual ones",
                      std::string()},
                     {"alphas", AttributeKind::reals, "by activation", std::vector<double>()},
                     {"betas", AttributeKind::reals, "by activation", std::vector<double>()},
                     {"clip", AttributeKind::real, "what enters an activation is cut to [-clip, clip]; 0: it is not",
                      0.0}},
      .infer = infer_recurrence,
      .reference = reference,
      .cut = cut_recurrence,
      .one_dtype = 0b1110111};  // all but the lengths
  if (cell == Cell::lstm) {
    op.inputs.push_back({"initial_c", "[directions, batch, hidden]; absent: 0", true});
    op.inputs.push_back({"peephole", "[directions, 3 · hidden]: for i, o, f", true});
    op.outputs.push_back({"c", "[directions, batch, hidden]: c after the last step"});
    op.attributes.push_back({"input_forget", AttributeKind::boolean, "f is 1 - i", false});
  }
  if (cell == Cell::gru) {
    op.attributes.push_back({"linear_before_reset", AttributeKind::boolean,
                             "the reset gate multiplies the product with R, not what enters it", false});
  }
  return op;
}

}  // namespace

std::vector<OpDef> recurrence_operators() {
  return {
      recurrence_operator(
          "gru",
          "z = f(X + h·R + Wb + Rb), r = f(X + h·R + Wb + Rb), n = g(X + (r⊙h)·R + Wb + Rb), h' = (1 - z)⊙n + z⊙h.",
          [](const ReferenceContext& context) { return run_cell("gru", context); }),
      recurrence_operator(
          "lstm",
          "i, f = f(X + h·R + P⊙c + Wb + Rb), c' = f⊙c + i⊙g(X + h·R + Wb + Rb), o = f(X + h·R + P⊙c' + Wb + Rb), h' "
          "= o⊙h(c'); the gates' blocks stand in the order i, o, f, c.",
          [](const ReferenceContext& context) { return run_cell("lstm", context); }),
      recurrence_operator("rnn", "h' = f(X + h·R + Wb + Rb).",
                          [](const ReferenceContext& context) { return run_cell("rnn", context); }),
  };
}

}  // namespace polyphase

// recognise_activations: what exporters write as several elementwise nodes gets its own word, which rounds once and has
// a kernel.
//
//   %s = sigmoid(%x)                    %y = silu(%x)
//   %y = mul(%x, %s)            →
//
//   x * 0.5 * (1 + erf(x / sqrt 2))                                        gelu
//   x * 0.5 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))                gelu approximate="tanh"
//   x * clip(x + 3, 0, 6) / 6,   x * hard_sigmoid(x)                       hard_swish
//   clip(x + 3, 0, 6) / 6                                                  hard_sigmoid
//   x * tanh(softplus(x))                                                  mish
//   log(1 + exp(x)),   1 / (1 + exp(-x))                                   softplus, sigmoid
//   where(x > 0, x, a * x),   max(x, a * x) for 0 <= a <= 1                leaky_relu, or prelu where a is a tensor
//
// A product is read as its factors and one number, in whatever order and grouping it was written. Reads values.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace polyphase {
namespace {

// number * factors[0] * factors[1] …
struct Product {
  double number = 1;
  std::vector<Value*> factors;
};

void collect(Value* value, bool is_root, Product& into) {
  Node* node = value->producer;
  constexpr std::size_t most = 4;
  const bool opens =
      node != nullptr && !node->fused() && into.factors.size() < most && (is_root || value->users.size() == 1);
  if (const auto number = repeated_element(value)) {
    into.number *= *number;
  } else if (opens && node->is("mul")) {
    collect(node->input(0), false, into);
    collect(node->input(1), false, into);
  } else if (opens && node->is("div") && repeated_element(node->input(1)).value_or(0) != 0) {
    into.number /= *repeated_element(node->input(1));
    collect(node->input(0), false, into);
  } else {
    into.factors.push_back(value);
  }
}

Product product_of(Value* value) {
  Product out;
  collect(value, true, out);
  return out;
}

// Constants of narrow types are near the number that is meant.
bool near(double a, double b, DType dtype) {
  const double relative = dtype == DType::bf16 ? 5e-3 : dtype == DType::f16 ? 1e-3 : 1e-5;
  return std::fabs(a - b) <= relative * std::fabs(b);
}

// The one factor besides x, if the product is number * x * factor.
Value* beside(const Product& product, const Value* x) {
  if (product.factors.size() != 2) return nullptr;
  if (product.factors[0] == x) return product.factors[1];
  return product.factors[1] == x ? product.factors[0] : nullptr;
}

// value = x + number; the x, else null.
Value* less_number(Value* value, double number) {
  const Node* node = produced_by(value, "add");
  if (node == nullptr) return nullptr;
  for (std::size_t side = 0; side < 2; ++side) {
    const auto found = repeated_element(node->input(side));
    if (found.has_value() && near(*found, number, value->type.dtype)) return node->input(1 - side);
  }
  return nullptr;
}

// x ^ 3, by pow or by multiplication.
bool is_cube(Value* value, const Value* x) {
  const Node* power = produced_by(value, "pow");
  return power != nullptr && power->input(0) == x && is_filled_with(power->input(1), 3);
}

// sqrt(2/pi) * (x + 0.044715 * x^3), or with x drawn out.
bool is_gelu_argument(Value* value, const Value* x, DType dtype) {
  constexpr double cubic = 0.044715;
  const Product outer = product_of(value);
  if (!near(outer.number, std::sqrt(2 / std::numbers::pi), dtype)) return false;
  if (outer.factors.size() == 1) {
    const Node* sum = produced_by(outer.factors[0], "add");
    for (std::size_t side = 0; sum != nullptr && side < 2; ++side) {
      if (sum->input(side) != x) continue;
      const Product term = product_of(sum->input(1 - side));
      const bool thrice = term.factors.size() == 3 &&
                          std::all_of(term.factors.begin(), term.factors.end(), [&](const Value* f) { return f == x; });
      if (near(term.number, cubic, dtype) && (thrice || (term.factors.size() == 1 && is_cube(term.factors[0], x))))
        return true;
    }
    return false;
  }
  Value* bracket = beside(outer, x);
  Value* square = bracket == nullptr ? nullptr : less_number(bracket, 1);
  if (square == nullptr) return false;
  const Product term = product_of(square);
  return near(term.number, cubic, dtype) &&
         term.factors == std::vector<Value*>{const_cast<Value*>(x), const_cast<Value*>(x)};
}

struct Found {
  const char* op = nullptr;
  Attributes attributes = {};
  Value* x = nullptr;
  Value* slope = nullptr;  // prelu only
};

Found gate_of(const Product& product, Value* x, Value* gate) {
  const DType dtype = x->type.dtype;
  const auto is = [&](const char* op) { return produced_by(gate, op) != nullptr && gate->producer->input(0) == x; };
  const bool plain = product.number == 1;
  if (plain && is("sigmoid")) return {"silu", {}, x};
  if (plain && is("hard_sigmoid")) {
    const Attributes& given = gate->producer->attributes();
    if (near(given.get<double>("alpha"), 1.0 / 6, dtype) && given.get<double>("beta") == 0.5)
      return {"hard_swish", {}, x};
  }
  if (plain && produced_by(gate, "tanh") != nullptr) {
    const Node* inner = produced_by(gate->producer->input(0), "softplus");
    if (inner != nullptr && inner->input(0) == x) return {"mish", {}, x};
  }
  const Node* clip = produced_by(gate, "clip");
  if (clip != nullptr && near(product.number, 1.0 / 6, dtype) && clip->attributes().get<double>("low") == 0 &&
      clip->attributes().get<double>("high") == 6 && less_number(clip->input(0), 3) == x) {
    return {"hard_swish", {}, x};
  }
  Value* bracket = less_number(gate, 1);
  if (bracket == nullptr || !near(product.number, 0.5, dtype)) return {};
  if (const Node* erf = produced_by(bracket, "erf")) {
    const Product argument = product_of(erf->input(0));
    if (argument.factors == std::vector<Value*>{x} && near(argument.number, std::numbers::sqrt2 / 2, dtype))
      return {"gelu", {}, x};
  }
  if (const Node* tanh = produced_by(bracket, "tanh")) {
    if (is_gelu_argument(tanh->input(0), x, dtype))
      return {"gelu", Attributes({{"approximate", std::string("tanh")}}), x};
  }
  return {};
}

Found find_gated_product(const Node& node) {
  const Product product = product_of(node.output());
  if (product.factors.size() == 2) {
    for (std::size_t i = 0; i < 2; ++i) {
      const Found found = gate_of(product, product.factors[i], product.factors[1 - i]);
      if (found.op != nullptr) return found;
    }
  }
  if (product.factors.size() != 1 || !near(product.number, 1.0 / 6, node.output()->type.dtype)) return {};
  const Node* clip = produced_by(product.factors[0], "clip");
  if (clip == nullptr || clip->attributes().get<double>("low") != 0 || clip->attributes().get<double>("high") != 6)
    return {};
  Value* x = less_number(clip->input(0), 3);
  if (x == nullptr) return {};
  return {"hard_sigmoid", Attributes({{"alpha", 1.0 / 6}, {"beta", 0.5}}), x};
}

// The other branch of a rectifier with a slope: a * x.
Found slope_of(Value* x, Value* scaled) {
  const Product product = product_of(scaled);
  if (product.factors == std::vector<Value*>{x}) return {"leaky_relu", Attributes({{"alpha", product.number}}), x};
  Value* slope = product.number == 1 ? beside(product, x) : nullptr;
  if (slope == nullptr || !is_constant(slope)) return {};
  return {"prelu", {}, x, slope};
}

Found find_rectifier(const Node& node) {
  if (node.is("max")) {
    for (std::size_t side = 0; side < 2; ++side) {
      const Found found = slope_of(node.input(side), node.input(1 - side));
      if (found.op == nullptr || found.slope != nullptr) continue;
      const double alpha = found.attributes.get<double>("alpha");
      if (alpha >= 0 && alpha <= 1) return found;
    }
    return {};
  }
  for (const bool positive : {true, false}) {
    for (const char* op : positive ? std::array{"greater", "greater_equal"} : std::array{"less", "less_equal"}) {
      const Node* condition = produced_by(node.input(0), op);
      if (condition == nullptr || !is_filled_with(condition->input(1), 0)) continue;
      Value* x = node.input(positive ? 1 : 2);
      if (condition->input(0) != x) continue;
      return slope_of(x, node.input(positive ? 2 : 1));
    }
  }
  return {};
}

// log(1 + exp(x)); 1 / (1 + exp(-x)).
Found find_exponential(const Node& node) {
  const bool is_log = node.is("log");
  if (node.is("div") && !is_filled_with(node.input(0), 1)) return {};
  Value* sum = node.input(node.is("div") ? 1 : 0);
  Value* power = less_number(sum, 1);
  const Node* exp = power == nullptr ? nullptr : produced_by(power, "exp");
  if (exp == nullptr) return {};
  if (is_log) return {"softplus", {}, exp->input(0)};
  const Node* negated = produced_by(exp->input(0), "neg");
  if (negated == nullptr) return {};
  return {"sigmoid", {}, negated->input(0)};
}

Found find(const Node& node) {
  if (node.is("log") || node.is("reciprocal")) return find_exponential(node);
  if (node.is("where") || node.is("max")) return find_rectifier(node);
  if (node.is("div")) {
    const Found found = find_exponential(node);
    return found.op != nullptr ? found : find_gated_product(node);
  }
  return node.is("mul") ? find_gated_product(node) : Found{};
}

bool recognise_activation(Graph& graph, Node* node) {
  if (node->inputs().empty() || !is_float(node->output()->type.dtype)) return false;
  const Found found = find(*node);
  if (found.op == nullptr) return false;
  Rewrite rewrite(graph, node);
  std::vector<Value*> inputs{found.x};
  if (found.slope != nullptr) inputs.push_back(found.slope);
  return rewrite.commit(node->output(), rewrite.add(found.op, found.attributes, std::move(inputs)));
}

}  // namespace

bool recognise_activations(Graph& graph, const Target&) { return at_every_node(graph, recognise_activation); }

}  // namespace polyphase

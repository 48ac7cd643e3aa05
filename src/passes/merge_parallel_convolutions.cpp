// merge_parallel_convolutions: convolutions of one image whose results are added are one convolution, whose weights are
// the sum.
//
//   %a = conv(%x, %v: f32[M, C, 3, 3]) pre=[1, 1]
//   %b = conv(%x, %w: f32[M, C, 1, 1]) pre=[0, 0]    →    %y = conv(%x, v + pad(w)) pre=[1, 1]
//   %y = add(%a, %b)
//
//   %y = add(%a, add(mul(%x, %s), %t))               →    %y = conv(%x, v + diagonal(s), t) pre=[1, 1]
//
// Also sub, on either side. Networks that are trained with several branches are often exported with them (RepVGG,
// MobileOne, FastViT). Condition: constant weights, nobody else reads the branches, the same stride and groups, and no
// more taps than before: 1×3 beside 3×1 stay two.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "passes/affine.h"
#include "passes/passes.h"
#include "passes/weights.h"

namespace polyphase {
namespace {

constexpr std::int64_t most_diagonal_elements = std::int64_t{1} << 20;

// A term of a sum: a convolution's weights and bias in f64, over the image.
struct Branch {
  Value* weights = nullptr;
  Value* bias = nullptr;  // or null
  ConvolutionWindow window;
};

std::optional<std::vector<std::int64_t>> constants_of(const std::vector<Dim>& dims) {
  std::vector<std::int64_t> out;
  for (const Dim& dim : dims) {
    const auto value = dim.constant();
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

std::int64_t taps_along(const Branch& branch, std::size_t axis) {
  return *branch.weights->type.shape[static_cast<int>(axis) + 2].constant();
}

// The window that holds both, and where each begins in it, in taps.
struct Union {
  ConvolutionWindow window;
  std::vector<std::int64_t> taps;
  std::array<std::vector<Dim>, 2> before;
};

std::optional<Union> union_of(const Branch& a, const Branch& b) {
  const auto pre_a = constants_of(a.window.pre);
  const auto pre_b = constants_of(b.window.pre);
  const bool same = a.window.stride == b.window.stride && a.window.groups == b.window.groups;
  if (!same || !pre_a || !pre_b) return std::nullopt;
  Union out = {a.window, {}, {}};
  std::int64_t all = 1;
  std::int64_t of_a = 1;
  std::int64_t of_b = 1;
  for (std::size_t axis = 0; axis < pre_a->size(); ++axis) {
    const std::int64_t k_a = taps_along(a, axis);
    const std::int64_t k_b = taps_along(b, axis);
    const std::int64_t apart = k_a > 1 ? a.window.dilation[axis] : b.window.dilation[axis];
    const std::int64_t pre = std::max((*pre_a)[axis], (*pre_b)[axis]);
    const std::int64_t first_a = pre - (*pre_a)[axis];
    const std::int64_t first_b = pre - (*pre_b)[axis];
    const bool is_even = first_a % apart == 0 && first_b % apart == 0;
    if (!is_even || (k_a > 1 && k_b > 1 && a.window.dilation[axis] != b.window.dilation[axis])) return std::nullopt;
    const std::int64_t taps = std::max(first_a / apart + k_a, first_b / apart + k_b);
    out.taps.push_back(taps);
    out.before[0].emplace_back(first_a / apart);
    out.before[1].emplace_back(first_b / apart);
    out.window.dilation[axis] = apart;
    out.window.pre[axis] = pre;
    out.window.post[axis] =
        a.window.post[axis] + (*pre_a)[axis] - pre + (taps * apart - apart) - (k_a - 1) * a.window.dilation[axis];
    all *= taps;
    of_a *= k_a;
    of_b *= k_b;
  }
  if (all > of_a + of_b) return std::nullopt;
  return out;
}

Value* padded(Rewrite& rewrite, Value* weights, const std::vector<std::int64_t>& taps, const std::vector<Dim>& before) {
  std::vector<Dim> pre(2, 0);
  std::vector<Dim> post(2, 0);
  for (std::size_t axis = 0; axis < taps.size(); ++axis) {
    pre.push_back(before[axis]);
    post.push_back(Dim(taps[axis]) - before[axis] - weights->type.shape[static_cast<int>(axis) + 2]);
  }
  return rewrite.add("pad", Attributes({{"pre", pre}, {"post", post}, {"mode", std::string("constant")}}), {weights});
}

Value* negated(Rewrite& rewrite, Value* value) {
  return value == nullptr || !rewrite.ok() ? value : rewrite.add("neg", {}, {value});
}

Value* sum(Rewrite& rewrite, Value* a, Value* b) {
  if (a == nullptr || b == nullptr || !rewrite.ok()) return a == nullptr ? b : a;
  return rewrite.add("add", {}, {a, b});
}

class ParallelSum {
 public:
  ParallelSum(Graph& graph, Node* node) : graph_(graph), node_(node) {}

  bool run() {
    Node* const first = convolution_of(0);
    Node* const second = convolution_of(1);
    if (first == nullptr && second == nullptr) return false;
    const Node& convolution = first != nullptr ? *first : *second;
    image_ = convolution.input(0);
    Rewrite rewrite(graph_, node_, convolution.name());
    std::array<std::optional<Branch>, 2> branches;
    for (std::size_t i = 0; i < 2; ++i) {
      const Node* own = i == 0 ? first : second;
      branches[i] = own != nullptr ? branch_of(rewrite, *own) : diagonal_branch(rewrite, node_->input(i), convolution);
      if (!branches[i] || !rewrite.ok()) return false;
    }
    const auto both = union_of(*branches[0], *branches[1]);
    if (!both || both->window.products != branches[1]->window.products) return false;
    Value* weights[2];
    for (std::size_t i = 0; i < 2; ++i) weights[i] = padded(rewrite, branches[i]->weights, both->taps, both->before[i]);
    Value* bias = branches[1]->bias;
    if (node_->is("sub")) {
      weights[1] = negated(rewrite, weights[1]);
      bias = negated(rewrite, bias);
    }
    Value* const joined = sum(rewrite, weights[0], weights[1]);
    bias = sum(rewrite, branches[0]->bias, bias);
    if (!rewrite.ok()) return false;
    const DType dtype = node_->output()->type.dtype;
    std::vector<Value*> inputs = {image_, rewrite.cast(joined, dtype)};
    if (bias != nullptr && rewrite.ok()) inputs.push_back(rewrite.cast(bias, dtype));
    if (!rewrite.ok()) return false;
    return rewrite.commit(node_->output(), rewrite.add("conv", both->window.attributes(), std::move(inputs)));
  }

 private:
  Node* convolution_of(std::size_t side) const {
    Value* const value = node_->input(side);
    Node* const node = foldable_convolution(graph_, value);
    return node != nullptr && node->is("conv") && value->type == node_->output()->type ? node : nullptr;
  }

  std::optional<Branch> branch_of(Rewrite& rewrite, const Node& convolution) const {
    if (convolution.input(0) != image_) return std::nullopt;
    Value* const bias = convolution.input(2);
    return Branch{rewrite.cast(convolution.input(1), DType::f64),
                  bias == nullptr ? nullptr : rewrite.cast(bias, DType::f64), ConvolutionWindow(convolution)};
  }

  // mul(image, s) or add(mul(image, s), t), as a convolution of one tap in the groups of `convolution`.
  std::optional<Branch> diagonal_branch(Rewrite& rewrite, Value* value, const Node& convolution) const {
    const ConvolutionWindow of_convolution(convolution);
    if (!(image_->type == value->type) || !of_convolution.has_stride_one()) return std::nullopt;
    Value* shift = nullptr;
    if (const Node* add = produced_for_one(graph_, value, "add")) {
      const std::size_t side = produced_for_one(graph_, add->input(0), "mul") != nullptr ? 0 : 1;
      shift = per_channel(rewrite, add->input(1 - side), image_->type.shape);
      value = add->input(side);
      if (shift == nullptr) return std::nullopt;
    }
    const Node* const mul = produced_for_one(graph_, value, "mul");
    if (mul == nullptr || (mul->input(0) != image_ && mul->input(1) != image_)) return std::nullopt;
    Value* const scale = per_channel(rewrite, mul->input(mul->input(0) == image_ ? 1 : 0), image_->type.shape);
    const auto channels = image_->type.shape[1].constant();
    if (scale == nullptr || !channels || !rewrite.ok()) return std::nullopt;
    const std::int64_t in_group = *channels / of_convolution.groups;
    if (*channels * in_group > most_diagonal_elements) return std::nullopt;
    std::vector<std::int64_t> sizes = {*channels, in_group};
    std::vector<Dim> of_scale = {*channels};
    sizes.resize(static_cast<std::size_t>(image_->type.shape.rank()), 1);
    of_scale.resize(sizes.size(), 1);
    std::vector<double> ones(static_cast<std::size_t>(*channels * in_group), 0);
    for (std::int64_t c = 0; c < *channels; ++c) ones[static_cast<std::size_t>(c * in_group + c % in_group)] = 1;
    Value* const diagonal = rewrite.constant(Tensor::from_values(DType::f64, sizes, ones));
    Value* const weights = rewrite.add("mul", {}, {diagonal, rewrite.reshape(scale, Shape(of_scale))});
    ConvolutionWindow window = of_convolution;
    std::fill(window.dilation.begin(), window.dilation.end(), 1);
    std::fill(window.pre.begin(), window.pre.end(), Dim(0));
    std::fill(window.post.begin(), window.post.end(), Dim(0));
    return Branch{weights, shift, window};
  }

  Graph& graph_;
  Node* node_;
  Value* image_ = nullptr;
};

}  // namespace

bool merge_parallel_convolutions(Graph& graph, const Target&) {
  return at_every_node(graph, [](Graph& each, Node* node) {
    return (node->is("add") || node->is("sub")) && node->input(0) != node->input(1) && ParallelSum(each, node).run();
  });
}

}  // namespace polyphase

// Cuts against brute force: random chains of every operator that can be cut, run by the interpreter on the whole and on
// the pieces that find_cuts and pieces_of make of it. Every element must have the same bits, and no halo may be longer
// than it has to be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

#include "lower/lower.h"
#include "runtime/pieces.h"
#include "suite_size.h"

namespace polyphase {
namespace {

using Random = std::mt19937_64;
using Integers = std::vector<std::int64_t>;
using Dims = std::vector<Dim>;

const Registry& registry() {
  static const Registry built_in = Registry::built_in();
  return built_in;
}

Tensor noise(const std::vector<std::int64_t>& sizes, Random& random) {
  std::vector<double> values(
      static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>())));
  std::normal_distribution<double> normal;
  for (double& value : values) value = normal(random);
  return Tensor::from_values(DType::f32, sizes, values);
}

// Grows a graph over [1, C, H, 2]; H is cut.
class Grower {
 public:
  explicit Grower(std::uint64_t seed) : random_(seed), graph_(std::make_unique<Graph>(registry())) {
    running_ = graph_->add_input("x", {DType::f32, Shape{1, 2, Dim::symbol("H", {1, 1 << 30}), 2}});
  }

  std::unique_ptr<Graph> grow(int steps) {
    for (int i = 0; i < steps; ++i) {
      switch (pick(0, 10)) {
        case 0:
        case 1:
          convolve();
          break;
        case 2:
        case 3:
          scatter();
          break;
        case 4:
          pool();
          break;
        case 5:
          pad();
          break;
        case 6:
          resize();
          break;
        case 7:
          slice();
          break;
        case 8:
          branch();
          break;
        case 9:
          move();
          break;
        default:
          add("relu", {}, {running_});
      }
    }
    graph_->add_output(running_, "y");
    return std::move(graph_);
  }

 private:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  std::int64_t channels() const { return running_->type.shape[1].value(); }
  bool add(const char* op, Attributes attributes, std::vector<Value*> inputs) {
    auto made = graph_->add(op, std::move(attributes), std::move(inputs));
    if (made.ok()) running_ = (*made)->output();
    return made.ok();
  }
  Value* constant(const std::vector<std::int64_t>& sizes) { return graph_->add_constant(noise(sizes, random_)); }

  void convolve() {
    const std::int64_t taps = pick(1, 5);
    const std::int64_t out = pick(1, 4);
    add("conv",
        {{"stride", Integers{pick(1, 3), 1}},
         {"dilation", Integers{pick(1, 3), 1}},
         {"pre", Dims{pick(-2, 4), 0}},
         {"post", Dims{pick(-2, 4), 0}}},
        {running_, constant({out, channels(), taps, 1}), constant({out})});
  }

  void scatter() {
    const std::int64_t taps = pick(1, 6);
    const std::int64_t out = pick(1, 4);
    const std::int64_t stride = pick(1, 4);
    Dim post = pick(-3, 3);
    // As output_size writes it: the result is a multiple of the operand, plus what the size leaves over.
    if (pick(0, 3) == 0) post = floor_mod(Dim::symbol("H", {1, 1 << 30}), 2) - 1;
    add("conv_transpose",
        {{"stride", Integers{stride, 1}},
         {"dilation", Integers{pick(1, 3), 1}},
         {"pre", Dims{pick(-2, 3), 0}},
         {"post", Dims{post, 0}}},
        {running_, constant({channels(), out, taps, 1}), constant({out})});
  }

  void pool() {
    const std::int64_t taps = pick(1, 4);
    const bool mean = pick(0, 1) == 0;
    Attributes attributes{{"kernel", Integers{taps, 1}},        {"stride", Integers{pick(1, 3), 1}},
                          {"dilation", Integers{1, 1}},         {"pre", Dims{pick(0, taps / 2), 0}},
                          {"post", Dims{pick(0, taps / 2), 0}}, {"ceil", pick(0, 2) == 0}};
    if (mean) attributes.set("include_pad", pick(0, 1) == 0);
    add(mean ? "avg_pool" : "max_pool", attributes, {running_});
  }

  void pad() {
    static const char* const modes[] = {"constant", "reflect", "edge"};
    add("pad",
        {{"pre", Dims{0, 0, pick(-2, 4), 0}},
         {"post", Dims{0, 0, pick(-2, 4), 0}},
         {"mode", std::string(modes[pick(0, 2)])},
         {"value", 0.5}},
        {running_});
  }

  void resize() {
    static const char* const rules[] = {"half_pixel", "asymmetric", "pytorch_half_pixel"};
    static const char* const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    static const char* const modes[] = {"nearest", "linear", "cubic"};
    static const std::pair<int, int> ratios[] = {{2, 1}, {3, 1}, {4, 1}, {3, 2}, {1, 2}, {5, 4}};
    const auto [times, parts] = ratios[pick(0, 5)];
    const Shape& shape = running_->type.shape;
    add("resize",
        {{"sizes", Dims{1, shape[1], floor_div(shape[2] * Dim(times), parts), shape[3]}},
         {"scales", std::vector<double>{1, 1, static_cast<double>(times) / parts, 1}},
         {"mode", std::string(modes[pick(0, 2)])},
         {"coordinate", std::string(rules[pick(0, 2)])},
         {"nearest", std::string(roundings[pick(0, 3)])},
         {"antialias", times < parts && pick(0, 1) == 0}},
        {running_});
  }

  void slice() {
    const std::int64_t start = pick(0, 3);
    const std::int64_t step = pick(1, 3);
    const Shape& shape = running_->type.shape;
    const Dim size = floor_div(shape[2] - Dim(start + pick(0, 3) + 1), step) + 1;
    add("slice",
        {{"start", Dims{0, 0, start, 0}},
         {"size", Dims{1, shape[1], size, shape[3]}},
         {"step", Integers{1, 1, step, 1}}},
        {running_});
  }

  void branch() {
    Value* const before = running_;
    convolve();
    Value* const other = running_;
    if (before == other || !(before->type.shape[2] == other->type.shape[2])) return;
    add("concat", {{"axis", std::int64_t{1}}}, {before, other});
  }

  // The pixel shuffle of one axis, spelled out, and its way back.
  void move() {
    const Shape shape = running_->type.shape;
    if (pick(0, 1) == 0 && channels() % 2 == 0) {
      add("reshape", {{"shape", Dims{1, channels() / 2, 2, shape[2], shape[3]}}}, {running_});
      add("transpose", {{"order", Integers{0, 1, 3, 2, 4}}}, {running_});
      add("reshape", {{"shape", Dims{1, shape[1].value() / 2, shape[2] * Dim(2), shape[3]}}}, {running_});
    } else {
      add("matmul", {}, {running_, constant({2, 2})});
    }
  }

  Random random_;
  std::unique_ptr<Graph> graph_;
  Value* running_ = nullptr;
};

Engine engine_of(const Graph& graph) {
  Engine engine;
  graph.collect_symbols(engine.symbols);
  EngineValue value;
  value.type = graph.outputs()[0]->type;
  engine.values.push_back(value);
  engine.outputs.push_back({"y", 0});
  engine.cuts = find_cuts(graph);
  engine.checks = graph.checks();
  return engine;
}

TensorView rows_of(const TensorView& whole, std::int64_t first, std::int64_t last) {
  TensorView out = whole;
  out.data += first * whole.strides[2] * static_cast<std::int64_t>(size_bytes(whole.dtype));
  out.sizes[2] = last - first;
  return out;
}

Tensor copy_of(const TensorView& view) {
  Tensor out = *Tensor::allocate(view.dtype, view.size_span());
  copy_elements(view, out.view());
  return out;
}

// The first row in which the elements differ; -1: none. A tolerance of 0 asks for the same bits.
std::int64_t first_difference(const TensorView& a, const TensorView& b, double tolerance) {
  const auto width = static_cast<std::int64_t>(size_bytes(a.dtype));
  for (std::int64_t row = 0; row < a.sizes[2]; ++row) {
    for (std::int64_t i = 0; i < a.sizes[1] * a.sizes[3]; ++i) {
      const auto at = [&](const TensorView& v) {
        return load_double(
            v.data + (i / a.sizes[3] * v.strides[1] + row * v.strides[2] + i % a.sizes[3] * v.strides[3]) * width,
            v.dtype);
      };
      const double x = at(a);
      const double y = at(b);
      const double apart = std::abs(x - y);
      if (!(x == y) && !(apart <= tolerance * std::max(1.0, std::abs(y))) && !(std::isnan(x) && std::isnan(y)))
        return row;
    }
  }
  return -1;
}

// Where the pieces' results differ from the whole's; empty: nowhere.
std::string compare(const Graph& graph, const Engine& engine, std::int64_t size, std::int64_t own, const Tensor& x,
                    const Tensor& y) {
  // The interpreter's weights of a resampling are doubles, which depend on the place by their last bits.
  const bool weighs = std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    return node->is("resize") && node->attributes().template get<std::string>("mode") != "nearest";
  });
  const double tolerance = weighs ? 1e-5 : 0;
  const auto pieces = pieces_of(engine, engine.cuts[0], {{"H", size}}, own);
  if (!pieces.ok()) return pieces.error().text();
  std::int64_t next = 0;
  for (const Piece& piece : *pieces) {
    const Piece::Share& share = piece.outputs[0];
    const std::string words = "piece " + std::to_string(piece.begin) + ".." + std::to_string(piece.end) + " of " +
                              std::to_string(size) + ", outputs " + std::to_string(share.first) + ".." +
                              std::to_string(share.last);
    if (share.first != next) return words + " do not follow " + std::to_string(next);
    next = share.last;
    if (share.first == share.last) continue;
    const auto part = interpret(graph, {copy_of(rows_of(x.view(), piece.begin, piece.end))});
    if (!part.ok()) return words + ": " + part.error().text();
    const TensorView own_rows = rows_of((*part)[0].view(), share.skip, share.skip + share.last - share.first);
    const std::int64_t wrong = first_difference(own_rows, rows_of(y.view(), share.first, share.last), tolerance);
    if (wrong >= 0) return words + " differ at " + std::to_string(wrong);
  }
  return next == y.view().sizes[2] ? "" : "outputs end at " + std::to_string(next);
}

TEST(Cuts, PiecesOfRandomChainsAreThoseOfTheWhole) {
  const int count = test::full_size() ? 4000 : test::sliced() ? 150 : 400;
  int in_pieces = 0;
  for (int seed = 0; seed < count; ++seed) {
    Random random(static_cast<std::uint64_t>(seed) + 1000);
    const auto graph = Grower(static_cast<std::uint64_t>(seed)).grow(1 + seed % 5);
    const Engine engine = engine_of(*graph);
    ASSERT_EQ(engine.cuts.size(), 1U);
    if (!engine.cuts[0].refusal.empty()) continue;
    for (int trial = 0; trial < 3; ++trial) {
      const std::int64_t size = std::uniform_int_distribution<std::int64_t>(8, 220)(random);
      const std::int64_t own = std::uniform_int_distribution<std::int64_t>(1, 60)(random);
      const Tensor x = noise({1, 2, size, 2}, random);
      const auto y = interpret(*graph, {x});
      if (!y.ok()) continue;  // too small for the chain
      ASSERT_EQ(compare(*graph, engine, size, own, x, (*y)[0]), "")
          << "seed " << seed << ", tiles of " << own << "\n"
          << print(*graph, {.max_constant_elements = 0, .layouts = false});
      const auto pieces = pieces_of(engine, engine.cuts[0], {{"H", size}}, own);
      in_pieces += pieces->size() > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(in_pieces, count / 2);  // most chains and sizes are cut at all
}

std::unique_ptr<Graph> parse(const std::string& text) {
  auto graph = parse_graph(text, registry());
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().text());
  return graph.ok() ? std::move(*graph) : nullptr;
}

EngineCut cut_of(const std::string& text) {
  const auto graph = parse(text);
  return graph == nullptr ? EngineCut() : find_cuts(*graph).at(0);
}

std::string with_weights(const std::string& line,
                         const std::string& weights = "f32[1, 1, 3]{1, 2, 3} -> f32[1, 1, 3]") {
  return "graph \"g\" (%x: f32[1, 1, H]) {\n  %w = constant() value=" + weights + "\n  " + line + "\n  return %y\n}\n";
}

TEST(Cuts, HalosAreNoLongerThanTheyMustBe) {
  const EngineCut same =
      cut_of(with_weights("%y = conv(%x, %w) dilation=[2] post=[2] pre=[2] stride=[1] -> f32[1, 1, H]"));
  EXPECT_EQ(same.outputs[0], (CutState{2, 1, 1, 2, 2}));
  EXPECT_EQ(same.step, 4);  // a pair of outputs that lie two apart
  const EngineCut up = cut_of(
      with_weights("%y = conv_transpose(%x, %w) dilation=[1] post=[-1] pre=[0] stride=[2] -> f32[1, 1, 2*H + 2]"));
  EXPECT_EQ(up.outputs[0], (CutState{2, 2, 1, 1, 2}));  // the place that is added at the end is not one of the whole's
  const EngineCut down = cut_of(
      "graph \"g\" (%x: f32[1, 1, H]) {\n  %y = max_pool(%x) dilation=[1] kernel=[2] post=[0] pre=[0] "
      "stride=[2] -> f32[1, 1, H//2]\n  check \"2\" <= \"H\" \"max_pool: the kernel must fit into the padded operand "
      "on axis 2, but it spans 2 and the padded size is H.\"\n  return %y\n}\n");
  EXPECT_EQ(down.outputs[0], (CutState{2, 1, 2, 0, 0}));
  const EngineCut nearest = cut_of(
      "graph \"g\" (%x: f32[1, 1, H]) {\n  %y = resize(%x) sizes=[1, 1, 3*H] -> f32[1, 1, 3*H]\n  return %y\n}\n");
  EXPECT_EQ(nearest.outputs[0], (CutState{2, 3, 1, 0, 0}));
  const EngineCut linear = cut_of(
      "graph \"g\" (%x: f32[1, 1, H]) {\n  %y = resize(%x) mode=\"linear\" sizes=[1, 1, 2*H] -> "
      "f32[1, 1, 2*H]\n  return %y\n}\n");
  EXPECT_EQ(linear.outputs[0], (CutState{2, 2, 1, 1, 1}));
}

struct Refused {
  const char* line;
  const char* why;
};

TEST(Cuts, RefusalsSayWhatTheOperatorDoes) {
  const Refused table[] = {
      {"%y = instance_norm(%x) -> f32[1, 4, H, W]",
       "instance_norm takes its mean and variance over the whole of axis 2"},
      {"%y = group_norm(%x) groups=2 -> f32[1, 4, H, W]",
       "group_norm takes its mean and variance over the whole of axis 2"},
      {"%y = layer_norm(%x) axis=2 -> f32[1, 4, H, W]",
       "layer_norm takes its mean and variance over the whole of axis 2"},
      {"%y = reduce_mean(%x) axes=[2, 3] -> f32[1, 4, 1, 1]", "reduce_mean reduces the whole of axis 2 to one value"},
      {"%y = softmax(%x) axis=2 -> f32[1, 4, H, W]", "softmax needs the whole of axis 2 for every element"},
      {"%y = cum_sum(%x) axis=2 -> f32[1, 4, H, W]", "cum_sum needs the whole of axis 2 for every element"},
      {"%y = reshape(%x) shape=[1, 4*H*W] -> f32[1, 4*H*W]",
       "reshape mixes axis 2 with others: from [1, 4, H, W] to [1, 4*H*W]"},
      {"%y = slice(%x) size=[1, 4, 1, W] start=[0, 0, 0, 0] step=[1, 1, 1, 1] -> f32[1, 4, 1, W]",
       "slice takes so many elements of axis 2 however long it is"},
      {"%y = pad(%x) mode=\"wrap\" post=[0, 0, 1, 0] pre=[0, 0, 1, 0] -> f32[1, 4, H + 2, W]",
       "pad brings the other end of axis 2 to each end"},
      {"%y = resize(%x) coordinate=\"align_corners\" mode=\"linear\" sizes=[1, 4, 2*H, W] -> f32[1, 4, 2*H, W]",
       "resize maps axis 2 by its whole size (coordinates align_corners)"},
      {"%y = concat(%x, %x) axis=2 -> f32[1, 4, 2*H, W]", "concat puts operands behind one another along axis 2"},
      {"%y = trilu(%x) -> f32[1, 4, H, W]", "trilu may read the whole of what lies in pieces"},
      {"%n = dims() values=[H] -> i64[1]\n  %f = cast(%n) to=f32 -> f32[1]\n  %y = mul(%x, %f) -> f32[1, 4, H, W]",
       "dims makes numbers from the whole size"},
  };
  for (const Refused& item : table) {
    const auto graph = parse("graph \"g\" (%x: f32[1, 4, H, W]) {\n  " + std::string(item.line) + "\n  return %y\n}\n");
    ASSERT_NE(graph, nullptr) << item.line;
    const auto cuts = find_cuts(*graph);
    EXPECT_EQ(cuts.at(0).refusal, item.why);
    EXPECT_FALSE(cuts.at(0).node.empty());
  }
}

TEST(Cuts, AnInputMustTellTheSizeOnOneAxis) {
  const EngineCut square =
      cut_of("graph \"g\" (%x: f32[1, 1, S, S]) {\n  %y = relu(%x) -> f32[1, 1, S, S]\n  return %y\n}\n");
  EXPECT_EQ(square.refusal, "input 'x' has that size on two axes: give them names of their own");
  const EngineCut odd =
      cut_of("graph \"g\" (%x: f32[1, 1, 2*S + 1]) {\n  %y = relu(%x) -> f32[1, 1, 2*S + 1]\n  return %y\n}\n");
  EXPECT_EQ(odd.refusal, "input 'x' has the size 2*S + 1, no multiple of it");
}

}  // namespace
}  // namespace polyphase

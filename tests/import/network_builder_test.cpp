// Random calls of the network builder, most of them wrong, in bodies of conditions and loops too: whatever is refused
// leaves a graph that verifies, and what was taken compiles into one.
#include "import/network/builder.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "suite_size.h"

namespace polyphase {
namespace {

class RandomCalls {
 public:
  explicit RandomCalls(std::uint64_t seed)
      : random_(seed),
        builder_(registry_, {.strongly_typed = seed % 5 == 0, .limits = seed % 7 == 0 ? "tensorrt" : ""}) {
    for (const auto& [name, op] : registry_.all()) operators_.push_back(op.get());
  }

  void run() {
    for (int i = 0; i < 4; ++i) {
      static constexpr DType dtypes[] = {DType::f32, DType::f32, DType::bf16, DType::i64, DType::boolean, DType::u8};
      static const std::vector<std::vector<std::string>> shapes = {
          {"1", "4", "H", "W"}, {"1", "4", "6"}, {"n"}, {}, {"4", "4", "3", "3"}, {"2*H", "4"}, {"-1"}, {"x!"}};
      keep(builder_.add_input("input" + std::to_string(below(5)), dtypes[below(6)], shapes[below(shapes.size())]));
    }
    keep(builder_.add_constant(
        Tensor::from_values(DType::f32, std::vector<std::int64_t>{4, 1, 3}, std::vector<double>(12, 0.5)), "weight",
        false));
    calls(24, 0);
    const auto verified = verify(builder_.graph());
    ASSERT_TRUE(verified.ok()) << verified.error().text() << "\n" << print(builder_.graph());
    for (int i = 0; i < 3 && !tensors_.empty(); ++i)
      static_cast<void>(builder_.mark_output(tensor(), i == 0 ? "" : "out" + std::to_string(below(3))).ok());
    finish();
  }

  int taken() const { return taken_; }
  int bodies() const { return bodies_; }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  int tensor() { return tensors_[below(tensors_.size())]; }
  std::string name() { return below(3) == 0 ? "layer" + std::to_string(below(12)) : ""; }

  void keep(const Result<int>& made) {
    if (made.ok()) tensors_.push_back(*made);
    if (!made.ok()) said(made.error());
  }
  void keep(const Result<TensorNumbers>& made) {
    if (!made.ok()) return said(made.error());
    ++taken_;
    tensors_.insert(tensors_.end(), made->begin(), made->end());
  }
  void said(const Error& error) { EXPECT_FALSE(error.message.empty() || error.hint.empty()) << error.text(); }

  GivenOperand operand() {
    switch (below(10)) {
      case 0:
        return static_cast<std::int64_t>(below(300));
      case 1:
        return 0.5;
      case 2:
        return below(2) == 0 ? GivenOperand(true) : GivenOperand();
      default:
        return tensors_.empty() ? GivenOperand() : GivenOperand(TensorNumber{tensor()});
    }
  }

  GivenOperands operands(std::size_t most) {
    GivenOperands out;
    for (std::size_t i = below(most + 1); i > 0; --i) out.push_back(operand());
    return out;
  }

  Dim size() {
    static const std::vector<std::string> texts = {"1", "4", "H", "2*H", "W - 1", "n", "(H + 1)//2", "born", "-3"};
    const auto parsed = builder_.size(texts[below(texts.size())], "");
    return parsed.ok() ? *parsed : Dim(static_cast<std::int64_t>(below(3)));
  }

  template <typename T, typename Make>
  std::vector<T> list(const Make& make) {
    std::vector<T> out;
    for (std::size_t i = below(5); i > 0; --i) out.push_back(make());
    return out;
  }

  Attribute attribute(const AttributeSpec& spec) {
    switch (spec.kind) {
      case AttributeKind::boolean:
        return below(2) == 0;
      case AttributeKind::integer:
        return static_cast<std::int64_t>(below(4)) - 1;
      case AttributeKind::real:
        return static_cast<double>(below(3)) - 0.5;
      case AttributeKind::word:
        return spec.words.empty() ? std::string() : spec.words[below(spec.words.size())];
      case AttributeKind::dtype:
        return static_cast<DType>(below(dtype_count));
      case AttributeKind::integers:
        return list<std::int64_t>([&] { return static_cast<std::int64_t>(below(4)); });
      case AttributeKind::reals:
        return list<double>([&] { return 0.5; });
      case AttributeKind::dim:
        return size();
      case AttributeKind::dims:
        if (spec.name == "symbols") return std::vector<Dim>{Dim::symbol(below(2) == 0 ? "born" : "H")};
        return list<Dim>([&] { return size(); });
      case AttributeKind::tensor:
        return Tensor::from_values(DType::f32, std::vector<std::int64_t>{}, std::vector<double>{1});
    }
    return false;
  }

  // Elementwise operators more often than others, since those are mostly taken.
  void add_layer() {
    const OpDef* op = operators_[below(operators_.size())];
    for (int i = 0; i < 3 && !op->elementwise; ++i) op = operators_[below(operators_.size())];
    Attributes attributes;
    for (const AttributeSpec& spec : op->attributes) {
      if (!spec.default_value.has_value() || below(2) == 0) attributes.set(spec.name, attribute(spec));
    }
    keep(builder_.add_layer(op->name, operands(op->inputs.size() + (below(8) == 0 ? 1 : 0)), std::move(attributes),
                            name()));
  }

  void add_window() {
    GivenDeconvolution given;
    given.stride = {static_cast<std::int64_t>(below(3))};
    given.pre_padding = {size()};
    given.mode = static_cast<PaddingMode>(below(4));
    if (given.mode != PaddingMode::explicit_padding && below(2) == 0) given.pre_padding = {Dim(0)};
    if (below(3) == 0) given.output_size = list<Dim>([&] { return size(); });
    const GivenOperands three{operand(), operand(), below(2) == 0 ? operand() : GivenOperand()};
    keep(below(2) == 0 ? builder_.add_deconvolution(three, given, name())
                       : builder_.add_convolution(three, given, name()));
  }

  // Tensors of a body stay among the others: used outside, they must be refused.
  GivenOperands body(int depth) {
    ++bodies_;
    calls(4, depth + 1);
    return operands(2);
  }

  void add_body(int depth) {
    if (below(2) == 0) {
      const auto branch = [&]() -> Result<GivenOperands> { return body(depth); };
      return keep(builder_.add_if(below(2) == 0 ? GivenOperand(true) : operand(), branch, branch, name()));
    }
    const auto turn = [&](int iteration, const TensorNumbers& carried) -> Result<LoopTurn> {
      tensors_.push_back(iteration);
      tensors_.insert(tensors_.end(), carried.begin(), carried.end());
      LoopTurn out{below(3) == 0 ? operand() : GivenOperand(), {}, body(depth)};
      for (const int one : carried) out.carried.push_back(below(4) == 0 ? operand() : GivenOperand(TensorNumber{one}));
      if (below(9) == 0) return Error{ErrorCode::invalid_argument, "the body is wrong.", "Write another."};
      return out;
    };
    keep(builder_.add_loop(below(2) == 0 ? GivenOperand(std::int64_t{3}) : operand(),
                           below(3) == 0 ? operand() : GivenOperand(), operands(2), turn, name()));
  }

  void calls(int count, int depth) {
    for (int i = 0; i < count; ++i) {
      switch (below(14)) {
        case 0:
        case 5:
          if (depth < 3) add_body(depth);
          break;
        case 1:
          add_window();
          break;
        case 2:
          if (builder_.push_precision(below(2) == 0 ? DType::bf16 : DType::f32).ok() && below(2) == 0)
            builder_.pop_precision();
          break;
        case 3:
          if (!tensors_.empty()) static_cast<void>(builder_.set_name(tensor(), "name" + std::to_string(below(6))).ok());
          break;
        case 4:
          keep(builder_.add_constant(
              Tensor::from_integers(DType::i64, std::vector<std::int64_t>{2}, std::array<std::int64_t, 2>{1, 4}),
              name(), false));
          break;
        default:
          add_layer();
      }
    }
  }

  void finish() {
    ImportOptions options;
    options.refittable = below(2) == 0;
    if (below(2) == 0) options.dims = {{"H", {4, 4}}};
    const auto made = builder_.finish(options);
    if (!made.ok()) return said(made.error());
    const auto verified = verify(*made->graph);
    EXPECT_TRUE(verified.ok()) << verified.error().text() << "\n" << print(*made->graph);
  }

  std::mt19937_64 random_;
  Registry registry_ = Registry::built_in();
  NetworkBuilder builder_;
  std::vector<const OpDef*> operators_;
  TensorNumbers tensors_;
  int taken_ = 0;
  int bodies_ = 0;
};

TEST(NetworkBuilder, RandomCallsLeaveGraphsThatVerify) {
  std::uint64_t taken = 0;
  std::uint64_t bodies = 0;
  const std::uint64_t seeds = test::suite_size("POLYPHASE_NETWORK_SEEDS", 400, 4000);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomCalls calls(seed);
    calls.run();
    taken += static_cast<std::uint64_t>(calls.taken());
    bodies += static_cast<std::uint64_t>(calls.bodies());
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GT(taken, 2 * seeds);
  EXPECT_GT(bodies, seeds / 2);
}

}  // namespace
}  // namespace polyphase

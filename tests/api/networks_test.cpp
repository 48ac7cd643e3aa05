// Small networks through passes, lower and session on the kernels of every cluster that runs here: what the interpreter
// computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "api/state.h"
#include "backends/cpu/catalogue.h"
#include "engine/check.h"
#include "graph/graph.h"
#include "lower/lower.h"
#include "passes/pipeline.h"
#include "passes/random_data.h"

namespace polyphase::api {
namespace {

constexpr std::string_view unet = R"(symbol N = 1..8
symbol H = 1..40
symbol W = 1..40
graph "unet" (%x: f32[N, 3, 4*H, 4*W]) {
  %w0 = constant() value=RANDOM f32[16, 3, 3, 3]
  %b0 = constant() value=RANDOM f32[16]
  %w1 = constant() value=RANDOM f32[24, 16, 3, 3]
  %w2 = constant() value=RANDOM f32[24, 24, 3, 3]
  %u2 = constant() value=RANDOM f32[24, 24, 2, 2]
  %u1 = constant() value=RANDOM f32[48, 16, 4, 4]
  %w3 = constant() value=RANDOM f32[3, 32, 1, 1]
  %scale = constant() value=RANDOM f32[24, 1, 1]
  %c0 = conv(%x, %w0, %b0) dilation=[1, 1] post=[1, 1] pre=[1, 1] stride=[1, 1]
  %a0 = relu(%c0)
  %p0 = max_pool(%a0) kernel=[2, 2] stride=[2, 2] dilation=[1, 1] pre=[0, 0] post=[0, 0]
  %c1 = conv(%p0, %w1) dilation=[1, 1] post=[1, 1] pre=[1, 1] stride=[1, 1]
  %s1 = mul(%c1, %scale)
  %a1 = leaky_relu(%s1) alpha=0.25
  %c2 = conv(%a1, %w2) dilation=[1, 1] post=[1, 1] pre=[1, 1] stride=[2, 2]
  %a2 = relu(%c2)
  %t2 = conv_transpose(%a2, %u2) dilation=[1, 1] post=[0, 0] pre=[0, 0] stride=[2, 2]
  %j1 = concat(%a1, %t2) axis=1
  %t1 = conv_transpose(%j1, %u1) dilation=[1, 1] post=[1, 1] pre=[1, 1] stride=[2, 2]
  %r1 = relu(%t1)
  %j0 = concat(%a0, %r1) axis=1
  %c3 = conv(%j0, %w3) dilation=[1, 1] post=[0, 0] pre=[0, 0] stride=[1, 1]
  %y = add(%c3, %x)
  return %y
}
)";

constexpr std::string_view generator = R"(symbol N = 0..8
graph "generator" (%z: f32[N, 20]) {
  %w0 = constant() value=RANDOM f32[20, 16, 4, 4]
  %w1 = constant() value=RANDOM f32[16, 8, 4, 4]
  %w2 = constant() value=RANDOM f32[8, 3, 5, 5]
  %g = constant() value=RANDOM f32[16]
  %h = constant() value=RANDOM f32[16]
  %m = constant() value=RANDOM f32[16]
  %v = constant() value=f32[16]{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
  %i = reshape(%z) shape=[N, 20, 1, 1]
  %a = conv_transpose(%i, %w0) dilation=[1, 1] post=[0, 0] pre=[0, 0] stride=[1, 1]
  %n = batch_norm(%a, %g, %h, %m, %v) epsilon=0
  %r = relu(%n)
  %b = conv_transpose(%r, %w1) dilation=[1, 1] post=[1, 1] pre=[1, 1] stride=[2, 2]
  %s = neg(%b)
  %c = conv_transpose(%s, %w2) dilation=[1, 1] post=[1, 1] pre=[2, 2] stride=[2, 2]
  %t = clip(%c) low=-1000 high=1000
  return %t
}
)";

constexpr std::string_view shuffle = R"(symbol N = 1..4
symbol H = 1..20
graph "shuffle" (%x: f32[N, 1, H, 7], %i: i64[3]) {
  %w = constant() value=RANDOM f32[12, 1, 3, 3]
  %c = conv(%x, %w) dilation=[1, 1] post=[1, 1] pre=[1, 1] stride=[1, 1]
  %p = depth_to_space(%c) block=2 mode="crd"
  %s = slice(%p) start=[0, 0, 1, 0] size=[N, 3, 2*H - 1, 7] step=[1, 1, 1, 2]
  %t = transpose(%s) order=[0, 2, 3, 1]
  %f = reshape(%t) shape=[N, (2*H - 1)*21]
  %k = constant() value=i64[3]{0, 1, 2}
  %q = mul(%i, %k)
  %z = mul(%q, %k)
  %m = reduce_mean(%p) axes=[2, 3] keep=true
  %g = mul(%p, %m)
  return %f, %g, %z
}
)";

// Sizes born from data, one from the other: the positive elements, of them those above 2, of them the two greatest; and
// two sizes that meet in one tensor. For some inputs all of them are 0.
constexpr std::string_view born = R"(symbol H = 1..30
symbol K = 0..30
symbol L = 0..30
symbol M = 0..30
graph "born" (%x: f32[H], %y: f32[H, 5]) {
  %zero0 = constant() value=f32[]{0}
  %two = constant() value=f32[]{2}
  %many = constant() value=f32[]{1000}
  %positive = greater(%x, %zero0)
  %k = count_nonzero(%positive)
  %bk = bind(%k) symbols=[K]
  %places = nonzero(%positive) count=K
  %flat = reshape(%places) shape=[K]
  %rows = gather(%y, %flat) axis=0
  %taken = gather(%x, %flat) axis=0
  %n = neg(%rows)
  %large = greater(%taken, %two)
  %l = count_nonzero(%large)
  %bl = bind(%l) symbols=[L]
  %large_places = nonzero(%large) count=L
  %large_flat = reshape(%large_places) shape=[L]
  %some = gather(%n, %large_flat) axis=0
  %best, %where = top_k(%some) axis=0 k=min(L, 2)
  %both = concat(%rows, %some) axis=0
  %mean = reduce_sum(%both) axes=[1] keep=false
  %sums = cum_sum(%both) axis=0
  %none = greater(%x, %many)
  %m = count_nonzero(%none)
  %bm = bind(%m) symbols=[M]
  %no_places = nonzero(%none) count=M
  %no_flat = reshape(%no_places) shape=[M]
  %no_rows = gather(%y, %no_flat) axis=0
  %w = constant() value=RANDOM f32[5, 4]
  %product = matmul(%no_rows, %w)
  %soft = softmax(%no_rows) axis=1
  %column = transpose(%places) order=[1, 0]
  %scattered = scatter_nd(%y, %column, %n)
  return %best, %where, %mean, %sums, %product, %soft, %scattered, %places
}
)";

// "value=RANDOM TYPE" becomes a constant of small integers.
std::string with_constants(std::string_view text) {
  std::string out(text);
  Random random(11);
  for (std::size_t at = out.find("RANDOM "); at != std::string::npos; at = out.find("RANDOM ", at)) {
    const std::size_t end = out.find('\n', at);
    const std::string type = out.substr(at + 7, end - at - 7);
    std::vector<std::int64_t> sizes;
    for (std::size_t i = type.find('['); i != std::string::npos; i = type.find(',', i + 1))
      sizes.push_back(std::stoll(type.substr(i + 1)));
    const polyphase::Tensor tensor = random_tensor(DType::f32, sizes, random);
    out.replace(at, end - at, print_attribute(Attribute(tensor)));
  }
  return out;
}

std::unique_ptr<Graph> parsed(std::string_view text, const Registry& registry) {
  auto graph = parse_graph(with_constants(text), registry);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().text());
  return graph.ok() ? std::move(graph).value() : nullptr;
}

// The arena stays within 10 % of what is alive at some step anyway, for any sizes.
void expect_small_arena(const Session& session, const Graph& graph) {
  Random random(13);
  for (int draw = 0; draw < 5; ++draw) {
    const DimBindings sizes = random_sizes(graph, {}, random);
    std::vector<std::vector<std::int64_t>> inputs;
    for (const auto& input : graph.inputs()) inputs.push_back(input->type.shape.evaluate(sizes).value());
    const auto report = session.explain(inputs);
    ASSERT_TRUE(report.ok()) << report.error().text();
    EXPECT_LE(static_cast<double>(report->arena_bytes), 1.1 * static_cast<double>(report->lower_bound_bytes))
        << graph.name;
  }
}

void expect_like_interpreter(std::string_view text, const Target& target,
                             const std::shared_ptr<const Workshop>& workshop, double tolerance) {
  const auto before = parsed(text, workshop->registry());
  const auto graph = parsed(text, workshop->registry());
  ASSERT_NE(graph, nullptr);
  const auto passed = run_passes(*graph, target);
  ASSERT_TRUE(passed.ok()) << passed.error().text();
  auto lowered = lower(*graph, target, {.model_name = "net", .producer = "test", .likely = {}});
  ASSERT_TRUE(lowered.ok()) << lowered.error().text();
  const auto checked = check_engine(*lowered, workshop->registry());
  ASSERT_TRUE(checked.ok()) << checked.error().text();
  const Engine engine = Access::engine(workshop, std::move(lowered).value());
  for (const int threads : {1, 3}) {
    auto session = Session::create(engine, {.threads = threads, .memory_limit_bytes = 0});
    ASSERT_TRUE(session.ok()) << session.error().text();
    for (const StepInfo& step : engine.info().steps) {
      EXPECT_FALSE(step.reference) << before->name << ": " << step.node << " runs the reference loops";
    }
    expect_small_arena(*session, *before);
    Random random(12);
    for (int draw = 0; draw < 4; ++draw) {
      const std::vector<polyphase::Tensor> inputs = random_inputs(*before, random_sizes(*before, {}, random), random);
      std::vector<TensorView> views;
      for (const polyphase::Tensor& input : inputs)
        views.push_back({input.dtype(), input.sizes(), {}, input.view().data});
      const auto expected = interpret(*before, inputs);
      ASSERT_TRUE(expected.ok()) << expected.error().text();
      const auto found = session->run(views);
      ASSERT_TRUE(found.ok()) << found.error().text();
      std::vector<polyphase::Tensor> results;
      for (const Tensor& result : *found) {
        const polyphase::TensorView view(TensorDesc::row_major(result.dtype(), result.sizes()),
                                         static_cast<std::byte*>(result.data()));
        results.emplace_back(Buffer::borrow(nullptr, view.data, result.size_bytes()), view);
      }
      for (std::size_t i = 0; i < results.size(); ++i) {
        EXPECT_LE(rms_error((*expected)[i].view(), results[i].view()), tolerance)
            << before->name << " on " << name_of(target.cluster);
      }
    }
  }
}

TEST(Networks, ComputeWhatTheInterpreterComputes) {
  const auto workshop = built_in_workshop();
  for (const Cluster cluster : all_clusters) {
    if (!cpu::runs_here(cluster)) continue;
    for (const std::string_view text : {unet, generator, shuffle, born}) {
      expect_like_interpreter(text, workshop->target(cluster, false), workshop, 1e-5);
    }
  }
  expect_like_interpreter(unet, workshop->target(Cluster::scalar, true), workshop, 1e-5);
}

// The kernel's own check: nothing is read outside the operand, and the message names the node.
TEST(Networks, RefuseIndicesOutsideTheirAxis) {
  const auto workshop = built_in_workshop();
  const std::string_view gather = "%y = gather(%x, %i) axis=1 node \"pick\"";
  const std::string_view gather_nd = "%y = gather_nd(%x, %i) node \"pick\"";
  for (const std::string_view call : {gather, gather_nd}) {
    const auto graph = parsed("graph \"g\" (%x: f32[4, 4], %i: i32[1, 2]) { " + std::string(call) + "\n return %y }",
                              workshop->registry());
    auto lowered = lower(*graph, workshop->target(Cluster::scalar, false));
    ASSERT_TRUE(lowered.ok()) << lowered.error().text();
    const Engine engine = Access::engine(workshop, std::move(lowered).value());
    ASSERT_FALSE(engine.info().steps.at(0).reference);
    auto session = Session::create(engine, {.threads = 1, .memory_limit_bytes = 0});
    ASSERT_TRUE(session.ok()) << session.error().text();
    const std::vector<float> x(16, 1.0F);
    for (const std::int32_t index : {-2147483647 - 1, -5, -4, 3, 4, 2147483647}) {
      const std::vector<std::int32_t> indices = {0, index};
      const auto found = session->run({view(x.data(), {4, 4}), view(indices.data(), {1, 2})});
      ASSERT_EQ(found.ok(), index >= -4 && index < 4) << call << " of " << index;
      EXPECT_EQ(found.ok() ? "" : found.error().text(),
                found.ok()
                    ? ""
                    : "node 'pick': an index lies outside its axis. The data given does not fit the model: check the "
                      "values of the inputs.");
    }
  }
}

}  // namespace
}  // namespace polyphase::api

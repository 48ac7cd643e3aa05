// Sessions: any sizes in a row, any number of threads, strides at the border, refusals in full words.
#include "runtime/session.h"

#include <gtest/gtest.h>

#include <thread>

#include "lower/lower.h"
#include "passes/random_data.h"
#include "runtime/test_network.h"
#include "runtime/test_rows.h"

namespace polyphase {
namespace {

std::string refusal(Session& session, const RunRequest& request) {
  const auto result = session.run(request);
  return result.ok() ? "it ran" : result.error().text();
}

// A U-Net of two levels with every kind of step that the test kernels have.
constexpr std::string_view small_unet = R"(symbol N = 0..64
symbol H = 1..64
graph "unet" (%x: f32[N, 2, 2*H]) {
  %w = constant() value=f32[2, 2, 3]{1, 0, -1, 2, 1, 0, 0, 1, 1, -1, 0, 1} -> f32[2, 2, 3]
  %v = constant() value=f32[2, 4, 3]{1, 0, -1, 2, 1, 0, 0, 1, 1, -1, 0, 1, 1, 0, 0, 2, 1, 0, 0, 1, 1, -1, 0, 1} -> f32[2, 4, 3]
  %a = conv(%x, %w) dilation=[1] post=[1] pre=[1] stride=[1] then relu(_)
  %d = conv(%a, %w) dilation=[1] post=[1] pre=[1] stride=[2] then relu(_)
  %m = mul(%d, %d)
  %u = conv_transpose(%m, %w) dilation=[1] post=[0] pre=[1] stride=[2]
  %c = concat(%a, %u) axis=1
  %y = conv(%c, %v) dilation=[1] post=[1] pre=[1] stride=[1] then add(_, %x)
  return %y
}
)";

TEST(Session, TakesTwoHundredSizesWithoutPackingAgain) {
  for (const bool portable : {false, true}) {
    const int packed_before = packs_made.load();
    Network net = make(small_unet, {.threads = 2, .cached_plans = 16}, portable);
    EXPECT_EQ(packs_made.load() - packed_before, 4) << "four convolutions, each packed once";
    EXPECT_EQ(net.session->packs(), portable ? 4U : 0U);
    Random random(3);
    for (int i = 0; i < 200; ++i) {
      const std::vector<Tensor> inputs = random_inputs(*net.graph, random_sizes(*net.graph, {}, random), random);
      const auto found = net.session->run(request_of(inputs));
      ASSERT_TRUE(found.ok()) << found.error().text();
      ASSERT_EQ(difference(interpret(*net.graph, inputs).value(), *found, 0), "");
    }
    EXPECT_EQ(packs_made.load() - packed_before, 4);
    EXPECT_GT(net.session->plan_hits(), 0U);
  }
}

TEST(Session, RunsFromManyThreadsAtOnce) {
  Network net = make(small_unet, {.threads = 3});
  Random random(4);
  constexpr int sizes = 5;
  std::vector<std::vector<Tensor>> inputs;
  std::vector<std::vector<Tensor>> expected;
  for (int i = 0; i < sizes; ++i) {
    inputs.push_back(random_inputs(*net.graph, random_sizes(*net.graph, {{"N", i}}, random), random));
    expected.push_back(interpret(*net.graph, inputs.back()).value());
  }
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 64; ++caller) {
    callers.emplace_back([&, caller] {
      for (int run = 0; run < 8; ++run) {
        const auto which = static_cast<std::size_t>((caller + run) % sizes);
        const auto found = net.session->run(request_of(inputs[which]));
        if (!found.ok() || !difference(expected[which], *found, 0).empty()) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Session, GivesTheSameBitsFromAnyNumberOfThreads) {
  Network one = make(small_unet, {.threads = 1});
  Network two = make(small_unet, {.threads = 2});
  Network four = make(small_unet, {.threads = 4});
  Random random(5);
  for (int i = 0; i < 20; ++i) {
    const DimBindings sizes = random_sizes(*one.graph, {}, random);
    std::vector<Tensor> inputs = random_inputs(*one.graph, sizes, random);
    for (std::int64_t k = 0; k < inputs[0].view().element_count(); ++k) inputs[0].view().as<float>()[k] *= 0.3F;
    const auto a = one.session->run(request_of(inputs)).value();
    EXPECT_TRUE(equal_elements(a[0].view(), two.session->run(request_of(inputs)).value()[0].view()));
    EXPECT_TRUE(equal_elements(a[0].view(), four.session->run(request_of(inputs)).value()[0].view()));
  }
}

TEST(Session, TakesAnyStridesAtTheBorder) {
  Network net = make(small_unet);
  Random random(6);
  const Tensor dense = random_tensor(DType::f32, {3, 2, 8}, random);
  const auto expected = net.session->run(request_of({dense})).value();
  TensorDesc last(DType::f32, std::array<std::int64_t, 3>{3, 2, 8}, Layout::channels_last(3));
  const Tensor input = Tensor::allocate(last).value();
  copy_elements(dense.view(), input.view());
  const Tensor output = Tensor::allocate(last).value();
  RunRequest request;
  request.inputs = {input.view()};
  request.outputs = {output.view()};
  ASSERT_TRUE(net.session->run(request).ok());
  EXPECT_TRUE(equal_elements(expected[0].view(), output.view()));
  // Memory that is not even aligned to an element.
  const auto bytes = Buffer::allocate(3 * 2 * 8 * 4 + 1).value();
  const TensorView odd(dense.view(), bytes->data() + 1);
  std::memcpy(odd.data, dense.view().data, 3 * 2 * 8 * 4);
  request.inputs = {odd};
  request.outputs.clear();
  EXPECT_TRUE(equal_elements(expected[0].view(), net.session->run(request).value()[0].view()));
}

TEST(Session, NeverWritesItsInputs) {
  Network net =
      make("graph \"g\" (%x: f32[N]) { %a = reshape(%x) shape=[N, 1]\n %b = relu(%a)\n %c = neg(%b)\n return %c, %x }");
  const Tensor input = Tensor::from_values(DType::f32, std::array<std::int64_t, 1>{3}, std::array{1.0, -2.0, 3.0});
  const auto found = net.session->run(request_of({input})).value();
  EXPECT_EQ(input.view().as<float>()[1], -2.0F);
  EXPECT_NE(found[1].view().data, input.view().data);
}

TEST(Session, ResultsOutliveItAndAreNotSharedBetweenRuns) {
  Network net = make("graph \"g\" (%x: f32[N]) { %b = neg(%x)\n return %b }");
  const auto ones = [](std::int64_t n, double value) {
    return Tensor::from_values(DType::f32, std::array{n}, std::vector<double>(static_cast<std::size_t>(n), value));
  };
  auto first = net.session->run(request_of({ones(100, 1)})).value();
  const void* memory = first[0].view().data;
  const auto second = net.session->run(request_of({ones(100, 2)})).value();
  EXPECT_EQ(first[0].view().as<float>()[99], -1.0F);
  EXPECT_NE(second[0].view().data, memory);
  first.clear();
  const auto third = net.session->run(request_of({ones(90, 3)})).value();
  EXPECT_EQ(third[0].view().data, memory) << "dropped results are used again";
  net.session.reset();
  EXPECT_EQ(second[0].view().as<float>()[0], -2.0F);
  EXPECT_EQ(third[0].view().as<float>()[0], -3.0F);
}

TEST(Session, RefusesWhatDoesNotFitInFullWords) {
  Network net = make(R"(symbol H = 2..9
graph "g" (%x: f32[H, W], %y: f32[W, 2*H]) {
  %m = matmul(%x, %y)
  %r = reshape(%m) shape=[H, H, 2]
  return %r
}
)");
  const auto zeros = [](std::vector<std::int64_t> sizes, DType dtype = DType::f32) {
    return Tensor::allocate(dtype, sizes).value();
  };
  Session& session = *net.session;
  const std::string choose_sizes =
      "`polyphase inspect` lists the sizes that the network takes; --shape and --dim of compile choose others.";
  EXPECT_EQ(refusal(session, request_of({zeros({2, 3})})),
            "the model takes 2 inputs, found 1. Give every input of the engine.");
  EXPECT_EQ(refusal(session, request_of({zeros({2}), zeros({3, 4})})),
            "input 'x' has the shape [2]; expected [H, W]: rank 2 is needed, found 1. " + choose_sizes);
  EXPECT_EQ(refusal(session, request_of({zeros({10, 3}), zeros({3, 20})})),
            "input 'x' has the shape [10, 3]; expected [H, W]: axis 0 (H) must lie in 2..9, found 10. " + choose_sizes);
  EXPECT_EQ(refusal(session, request_of({zeros({2, 3}), zeros({4, 4})})),
            "input 'y' has the shape [4, 4]; expected [W, 2*H]: axis 0 is 4, but W is 3 elsewhere. " + choose_sizes);
  EXPECT_EQ(refusal(session, request_of({zeros({2, 3}), zeros({3, 5})})),
            "input 'y' has the shape [3, 5]; expected [W, 2*H]: axis 1 must be 2*H = 4, found 5. " + choose_sizes);
  EXPECT_EQ(refusal(session, request_of({zeros({2, 3}), zeros({3, 4}, DType::f64)})),
            "input 'y' is f64; expected f32. Give a tensor of that dtype.");
  RunRequest request = request_of({zeros({2, 3}), zeros({3, 4})});
  const Tensor small = zeros({2, 2, 1});
  request.outputs = {small.view()};
  EXPECT_EQ(refusal(session, request),
            "the memory given for output 'r' has the shape [2, 2, 1]; expected [2, 2, 2]: axis 2 must be 2, found 1. " +
                choose_sizes);
  EXPECT_TRUE(session.run(request_of({zeros({2, 3}), zeros({3, 4})})).ok()) << "and goes on after refusals";
}

TEST(Session, TestsWhatOnlySizesCanTell) {
  Network net = make("graph \"g\" (%x: f32[A], %y: f32[B]) { %s = add(%x, %y)\n return %s }");
  const auto zeros = [](std::int64_t n) { return Tensor::allocate(DType::f32, std::array{n}).value(); };
  EXPECT_TRUE(net.session->run(request_of({zeros(3), zeros(3)})).ok());
  const std::string words = refusal(*net.session, request_of({zeros(3), zeros(4)}));
  EXPECT_NE(words.find("Found A = 3 and B = 4."), std::string::npos) << words;
}

TEST(Session, KeepsItsMemoryLimitAndItsDeadline) {
  Network net = make(small_unet, {.threads = 2, .memory_limit_bytes = 20000});
  const auto zeros = [](std::int64_t n) {
    return Tensor::allocate(DType::f32, std::array<std::int64_t, 3>{n, 2, 64}).value();
  };
  EXPECT_TRUE(net.session->run(request_of({zeros(4)})).ok());
  const std::string words = refusal(*net.session, request_of({zeros(60)}));
  EXPECT_NE(
      words.find(
          "bytes for H = 32, N = 60; the limit is 20000. Use smaller inputs, or raise the session's memory limit."),
      std::string::npos)
      << words;
  RunRequest request = request_of({zeros(4)});
  request.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  EXPECT_EQ(refusal(*net.session, request),
            "the run did not end before its deadline. Give it more time, more threads or smaller inputs.");
  const std::atomic<bool> cancelled{true};
  RunRequest stopped = request_of({zeros(4)});
  stopped.cancelled = &cancelled;
  EXPECT_EQ(refusal(*net.session, stopped), "the run was cancelled. Run it again to have its results.");
}

TEST(Session, SaysWhichStepFoundAFaultInTheData) {
  Network net = make("graph \"g\" (%x: f32[3], %i: i64[1]) { %s = gather(%x, %i) axis=0 node \"pick\"\n return %s }");
  const Tensor x = Tensor::allocate(DType::f32, std::array<std::int64_t, 1>{3}).value();
  const Tensor i = Tensor::from_integers(DType::i64, std::array<std::int64_t, 1>{1}, std::array<std::int64_t, 1>{5});
  const std::string words = refusal(*net.session, request_of({x, i}));
  EXPECT_EQ(words.rfind("node 'pick': ", 0), 0U) << words;
  EXPECT_NE(words.find('5'), std::string::npos) << words;
}

std::string load_refusal(Engine engine) {
  Target target;
  target.catalogue = &kernels();
  const auto program = make_program(std::make_shared<const Engine>(std::move(engine)), target);
  return program.ok() ? "it loaded" : program.error().text();
}

TEST(Session, RefusesEnginesThatCannotRunHere) {
  const auto graph = parse_graph(small_unet, registry()).value();
  Target target;
  target.catalogue = &kernels();
  const Engine engine = lower(*graph, target).value();
  EXPECT_EQ(load_refusal(engine), "it loaded");
  Engine changed = engine;
  changed.cluster = "avx512";
  EXPECT_EQ(load_refusal(changed),
            "the engine was compiled for avx512; this CPU has scalar. Compile the model again on this machine, or with "
            "--target portable.");
  changed = engine;
  changed.blocks[0].steps[0].rows = {"tomorrow"};
  EXPECT_EQ(
      load_refusal(changed),
      "node 'a': kernel 'tomorrow' of operator conv cannot run this step: it is unknown here. Compile the model again "
      "with this release.");
  changed = engine;
  changed.constants[0].format = "test_weights/2";
  EXPECT_EQ(
      load_refusal(changed),
      "the engine contradicts itself: the packed weights of step 'a' are not what kernel 'test_convolution' reads. "
      "Compile the model again.");
  changed = engine;
  changed.symbols.clear();
  changed.values[static_cast<std::size_t>(changed.blocks[0].steps[0].outputs[0])].type.shape[2] = Dim::symbol("Q");
  EXPECT_EQ(load_refusal(changed),
            "the engine contradicts itself: no input and no step gives the size Q. Compile the model again.");
  changed = engine;
  changed.blocks[0].steps[0].packed = -1;
  EXPECT_EQ(
      load_refusal(changed),
      "the engine contradicts itself: the weights of step 'a' are neither packed nor raw. Compile the model again.");
}

TEST(Session, PlansAHundredStepsInAFewMilliseconds) {
  std::string text = "graph \"g\" (%x: f32[N, 2, H]) {\n";
  std::string last = "x";
  text += "%w = constant() value=f32[2, 2, 1]{1, 0, 0, 1} -> f32[2, 2, 1]\n";
  for (int i = 0; i < 100; ++i) {
    const std::string name = "v" + std::to_string(i);
    text += "%" + name + " = conv(%" + last + ", %w) dilation=[1] post=[0] pre=[0] stride=[1] then relu(_)\n";
    last = name;
  }
  text += "return %" + last + "\n}\n";
  Network net = make(text);
  double best = 1;
  for (std::int64_t n = 1; n < 20; ++n) {
    const std::clock_t start = std::clock();  // processor time: what else the machine does is no fact about the plan
    ASSERT_TRUE(net.session->plan_for({{n, 2, 10 + n}}).ok());
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  std::printf("planning 100 steps: %.3f ms\n", best * 1e3);
  // An optimised build needs 0.4 ms; how much slower a sanitizer makes it says nothing about the plan.
  if (!POLYPHASE_SANITIZED) {
    EXPECT_LT(best, 4e-3);
  }
}

}  // namespace
}  // namespace polyphase

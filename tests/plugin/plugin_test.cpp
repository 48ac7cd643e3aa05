// Plugins through the public API: loading, shape rules that lie, kernels that fail, engines that need them.
#include "polyphase/plugin.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <thread>

#include "polyphase/network.h"
#include "polyphase/polyphase_op.h"

namespace polyphase::api {
namespace {

std::string file_of(int fault) { return std::string(POLYPHASE_PLUGINS) + "/faulty_" + std::to_string(fault) + ".so"; }

template <typename T>
std::string refusal(const Result<T>& result) {
  return result.ok() ? "it was taken" : result.error().text();
}

// What it says, without the paths of this build.
std::string load_refusal(int fault) {
  std::string text = refusal(Plugin::load(file_of(fault)));
  for (auto at = text.find(POLYPHASE_PLUGINS); at != std::string::npos; at = text.find(POLYPHASE_PLUGINS))
    text.erase(at, std::string(POLYPHASE_PLUGINS).size() + 1);
  return text;
}

Plugin faulty() {
  auto loaded = Plugin::load(file_of(0));
  EXPECT_TRUE(loaded.ok()) << refusal(loaded);
  return *loaded;
}

// A network of one operator over x (2, 3, W) and as many more inputs of that shape as are asked for.
struct OneOperator {
  explicit OneOperator(const std::string& op, Size last = "W", AttributeList attributes = {}, int inputs = 1,
                       std::vector<Operand> more = {})
      : network({.plugins = {faulty()}}) {
    std::vector<Operand> operands;
    for (int i = 0; i < inputs; ++i)
      operands.emplace_back(network.add_input("x" + std::to_string(i), DType::f32, {2, 3, last}));
    operands.insert(operands.end(), more.begin(), more.end());
    made = network.add_plugin("faulty." + op, operands, std::move(attributes), "odd");
    if (made.ok()) {
      EXPECT_TRUE(network.mark_output(made->front(), "y").ok());
    }
  }
  Network network;
  Result<std::vector<NetworkTensor>> made = Error{};
};

std::string refused_at_the_call(const std::string& op, Size last = "W") { return refusal(OneOperator(op, last).made); }

Result<std::vector<Tensor>> run_engine(const Result<Engine>& engine, const std::vector<TensorView>& inputs,
                                       int threads = 1) {
  if (!engine.ok()) return engine.error();
  const auto session = Session::create(*engine, {.threads = threads});
  if (!session.ok()) return session.error();
  return session->run(inputs);
}

std::vector<float> numbers(std::int64_t count, float first = 1) {
  std::vector<float> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

std::vector<float> values(const Result<std::vector<Tensor>>& results) {
  EXPECT_TRUE(results.ok()) << refusal(results);
  if (!results.ok()) return {};
  const Tensor& first = results->front();
  return {first.as<float>(), first.as<float>() + first.element_count()};
}

std::vector<float> times(std::vector<float> of, float factor) {
  for (float& one : of) one *= factor;
  return of;
}

// ------------------------------------------------------------ loading

TEST(LoadPlugin, ListsItsOperatorsAndKnowsItsFile) {
  const Plugin plugin = faulty();
  EXPECT_EQ(plugin.name(), "faulty");
  EXPECT_EQ(plugin.path(), file_of(0));
  const auto operators = plugin.operators();
  ASSERT_EQ(operators.size(), 25U);
  EXPECT_EQ(operators[0].name, "faulty.twice");
  EXPECT_EQ(operators[0].version, 3U);
  EXPECT_EQ(operators[0].claims, std::vector<std::string>{"onnx com.example Twice"});
}

TEST(LoadPlugin, SaysWhatIsWrongWithALibrary) {
  EXPECT_EQ(load_refusal(1),
            "'faulty_1.so' is no plugin: it has no function polyphase_get_plugin. Define it as extern \"C\" and "
            "POLYPHASE_PLUGIN_EXPORT, as docs/guides/plugins.md shows.");
  EXPECT_EQ(load_refusal(2),
            "'faulty_2.so' was compiled for ABI 99 of plugins; this Polyphase takes ABI 1. Compile it against "
            "include/polyphase/polyphase_op.h of this Polyphase, as docs/guides/plugins.md shows.");
  const std::string correct =
      " Correct the plugin; include/polyphase/polyphase_op.h says what each member holds. (while loading the plugin '";
  EXPECT_EQ(load_refusal(3), "the plugin's operator 'faulty.twice' is not well defined: its function 'run' is NULL." +
                                 correct + "faulty_3.so')");
  EXPECT_EQ(load_refusal(4),
            "the plugin's operator 'faulty' is not well defined: the plugin lists an operator whose struct_size is 8; "
            "this Polyphase knows " +
                std::to_string(sizeof(polyphase_op)) + " bytes, and what is beyond must be 0." + correct +
                "faulty_4.so')");
  EXPECT_EQ(load_refusal(5),
            "the plugin's operator 'faulty' is not well defined: the plugin lists an operator whose name is not of "
            "small letters, digits and _." +
                correct + "faulty_5.so')");
  EXPECT_EQ(load_refusal(6),
            "the plugin's operator 'faulty.twice' is not well defined: its first operand is optional." + correct +
                "faulty_6.so')");
  EXPECT_EQ(
      load_refusal(7),
      "the plugin's operator 'faulty.twice' is not well defined: one of its lists is NULL though its count is not "
      "0, or has more entries than can be." +
          correct + "faulty_7.so')");
  EXPECT_EQ(load_refusal(8),
            "polyphase_get_plugin of 'faulty_8.so' gives NULL. It must give the address of a polyphase_plugin that "
            "stays.");
  EXPECT_EQ(load_refusal(12),
            "the plugin in 'faulty_12.so' is not well defined: it lists 0 operators. Correct the plugin; "
            "include/polyphase/polyphase_op.h says what each member holds.");
}

TEST(LoadPlugin, TakesNoFileThatIsNoLibraryAndSearchesNone) {
  EXPECT_EQ(
      refusal(Plugin::load("/no/such.so")),
      "there is no plugin file '/no/such.so'. Give the path of the shared library; no folder is searched for it.");
  EXPECT_EQ(refusal(Plugin::load("libc.so.6")),
            "there is no plugin file 'libc.so.6'. Give the path of the shared library; no folder is searched for it.");
  const std::string text = refusal(Plugin::load("ARCHITECTURE.md"));
  EXPECT_EQ(text.rfind("'ARCHITECTURE.md' is no shared library that can be loaded here: ./ARCHITECTURE.md: ", 0), 0U)
      << text;
}

TEST(LoadPlugin, RefusesOneTwice) {
  const Network network({.plugins = {faulty(), faulty()}});
  EXPECT_EQ(refusal(compile(network)).substr(0, 54), "an operator named 'faulty.twice' exists already. Give ");
  const auto other = Plugin::load(file_of(11));
  ASSERT_TRUE(other.ok()) << refusal(other);
  Network both({.plugins = {faulty(), *other}});
  EXPECT_EQ(
      refusal(both.add_plugin("faulty.twice", {})),
      "the plugins' operators 'faulty.twice' and 'other.twice' both claim the nodes 'onnx com.example Twice'. Give "
      "one of the two plugins only. (while adding the plugin '" +
          file_of(11) + "')");
}

// ------------------------------------------------------------ shape rules

TEST(ShapeRule, ReckonsAlikeWithNumbersAndWithSizesYetUnknown) {
  const auto reckon = [](std::int64_t n) {
    return std::max(std::min((2 * n + 6) / 3, std::int64_t{1000}), (2 * n + 6) % 3 - 5);
  };
  OneOperator dynamic("reckons");
  ASSERT_TRUE(dynamic.made.ok()) << refusal(dynamic.made);
  const auto engine = compile(dynamic.network);
  for (const std::int64_t n : {2, 3, 10, 77, 1496, 1497, 1600}) {
    const std::vector<float> x = numbers(6 * n);
    const auto results = run_engine(engine, {view(x.data(), {2, 3, n})});
    ASSERT_TRUE(results.ok()) << refusal(results);
    EXPECT_EQ(results->front().sizes(), (std::vector<std::int64_t>{2, 3, reckon(n)})) << n;
    EXPECT_EQ(OneOperator("reckons", n).made->front().shape().back().text(), std::to_string(reckon(n)));
  }
  const std::vector<float> x = numbers(6);
  EXPECT_EQ(
      refusal(run_engine(engine, {view(x.data(), {2, 3, 1})})),
      "input 'x0' has the shape [2, 3, 1]; expected [2, 3, W]: axis 2 (W) must lie in 2..9223372036854775807, found 1. "
      "`polyphase inspect` lists the sizes that the network takes; --shape and --dim of compile choose others.");
  EXPECT_EQ(refused_at_the_call("reckons", 1),
            "node 'odd': the shape rule of the plugin's operator 'faulty.reckons' refuses the operands: reckons needs "
            "two places. Give the operator what its plugin takes.");
}

TEST(ShapeRule, WhatIsNoTypeIsRefused) {
  const auto wrong = [](const std::string& op, const std::string& what) {
    return "node 'odd': the shape rule of the plugin's operator 'faulty." + op + "' is wrong: " + what +
           " Correct the plugin's shape function; include/polyphase/polyphase_op.h says what it is given and gives.";
  };
  EXPECT_EQ(refused_at_the_call("negative"), wrong("negative", "axis 2 of result 0 ('y') is negative: -1."));
  EXPECT_EQ(refused_at_the_call("unwritten"),
            wrong("unwritten", "result 0 ('y') has dtype number -1, which is none: it was not written."));
  EXPECT_EQ(refused_at_the_call("strange_dtype"),
            wrong("strange_dtype", "result 0 ('y') has dtype number 99, which is none."));
  EXPECT_EQ(refused_at_the_call("strange_rank"), wrong("strange_rank", "result 0 ('y') has rank 9; the highest is 8."));
  EXPECT_EQ(refused_at_the_call("strange_handle"),
            wrong("strange_handle", "axis 2 of result 0 ('y') is 12345, no size that this call has given."));
  for (const std::string op : {"overflows", "divides_by_zero"}) {
    for (const Size& last : {Size("W"), Size(4)}) {
      EXPECT_EQ(refused_at_the_call(op, last),
                wrong(op, "axis 2 of result 0 ('y') overflows 64 bits, or divides by 0."));
    }
  }
  EXPECT_EQ(refused_at_the_call("throws"), wrong("throws", "it threw a C++ exception."));
  EXPECT_EQ(refused_at_the_call("endless"), wrong("endless", "one call of it makes more than 100000 sizes."));
}

TEST(ShapeRule, ItsOwnRefusalsKeepTheirWords) {
  EXPECT_EQ(refused_at_the_call("refuses"),
            "node 'odd': the shape rule of the plugin's operator 'faulty.refuses' refuses the operands: only on "
            "Tuesdays. Give the operator what its plugin takes.");
  EXPECT_EQ(refused_at_the_call("refuses_silently"),
            "node 'odd': the shape rule of the plugin's operator 'faulty.refuses_silently' refuses the operands: it "
            "returned -3 and no message. Give the operator what its plugin takes.");
  EXPECT_EQ(refused_at_the_call("ignores_refusal"),
            "node 'odd': the shape rule of the plugin's operator 'faulty.ignores_refusal' refuses the operands: one is "
            "not two. Give the operator what its plugin takes.");
}

TEST(ShapeRule, ALieIsFoundWhileCompilingOrWhenTheSizeIsThere) {
  EXPECT_EQ(refused_at_the_call("lies"),
            "node 'odd': the shape rule of the plugin's operator 'faulty.lies' is wrong: for operands f32[2, 3, 1] it "
            "gives f32[2, 3, 2], but its result for sizes yet unknown, f32[2, 3, W], is then f32[2, 3, 1]. Correct the "
            "plugin's shape function: its results may not depend on what sizes are known.");
  OneOperator late("lies_at_77");
  const auto engine = compile(late.network);
  const std::vector<float> x = numbers(6 * 77);
  EXPECT_EQ(values(run_engine(engine, {view(x.data(), {2, 3, 5})})), numbers(30));
  EXPECT_EQ(refusal(run_engine(engine, {view(x.data(), {2, 3, 77})})),
            "node 'odd': the shape rule of the plugin's operator 'faulty.lies_at_77' gives f32[2, 3, 78] for result 0 "
            "now that sizes are known, and gave what is f32[2, 3, 77] for these sizes before they were. Correct the "
            "plugin's shape function: its results may not depend on what sizes are known.");
}

TEST(ShapeRule, SizesThatTurnOutNegativeOrUnequalEndTheRun) {
  OneOperator shrinks("shrinks");
  const auto engine = compile(shrinks.network);
  const std::vector<float> x = numbers(60);
  EXPECT_EQ(values(run_engine(engine, {view(x.data(), {2, 3, 7})})), std::vector<float>(12, 0));
  EXPECT_EQ(refusal(run_engine(engine, {view(x.data(), {2, 3, 4})})),
            "'odd' would have the shape [2, 3, W - 5] with W = 4, which is negative or too large. Give inputs of other "
            "sizes.");

  Network pair({.plugins = {faulty()}});
  const auto a = pair.add_input("a", DType::f32, {2, "A"});
  const auto b = pair.add_input("b", DType::f32, {2, "B"});
  const auto made = pair.add_plugin("faulty.equals", {a, b}, {}, "both");
  ASSERT_TRUE(made.ok()) << refusal(made);
  ASSERT_TRUE(pair.mark_output(made->front()).ok());
  const auto both = compile(pair);
  EXPECT_EQ(values(run_engine(both, {view(x.data(), {2, 2}), view(x.data(), {2, 2})})), times(numbers(4), 2));
  EXPECT_EQ(refusal(run_engine(both, {view(x.data(), {2, 2}), view(x.data(), {2, 3})})),
            "equals needs equal sizes. Found A = 2 and B = 3. Give inputs whose sizes fit together.");
}

// ------------------------------------------------------------ kernels

TEST(Kernel, ComputesWithAttributesAndTheirDefaults) {
  const std::vector<float> x = numbers(12);
  OneOperator plain("twice");
  EXPECT_EQ(values(run_engine(compile(plain.network), {view(x.data(), {2, 3, 2})})), times(x, 2));
  OneOperator by_five("twice", "W", {{"times", 5.0}});
  EXPECT_EQ(values(run_engine(compile(by_five.network), {view(x.data(), {2, 3, 2})})), times(x, 5));
  EXPECT_EQ(refusal(OneOperator("twice", "W", {{"often", 5.0}}).made),
            "node 'odd': operator faulty.twice has no attribute 'often'. It has: times.");

  OneOperator told("tells_attributes", 2,
                   {{"flag", true},
                    {"number", std::int64_t{-7}},
                    {"text", std::string("four")},
                    {"integers", std::vector<std::int64_t>{1, 2, 3}},
                    {"reals", std::vector<double>{0.25, 0.5}}});
  EXPECT_EQ(values(run_engine(compile(told.network), {view(x.data(), {2, 3, 2})})),
            (std::vector<float>{1, -7, 0.5, 4, 6, 0.75}));
  EXPECT_EQ(refusal(OneOperator("tells_attributes", 2).made),
            "node 'odd': operator faulty.tells_attributes needs the attribute 'number'. docs/operators.md lists the "
            "attributes of each operator.");
}

TEST(Kernel, OptionalAndVariadicOperandsComeAsTheyAre) {
  const std::vector<float> x = numbers(12);
  const TensorView given = view(x.data(), {2, 3, 2});
  OneOperator without("maybe");
  EXPECT_EQ(values(run_engine(compile(without.network), {given})), x);
  Network only_third({.plugins = {faulty()}});
  const auto a = only_third.add_input("a", DType::f32, {2, 3, 2});
  ASSERT_TRUE(only_third.mark_output(only_third.add_plugin("faulty.maybe", {a, {}, a})->front()).ok());
  EXPECT_EQ(values(run_engine(compile(only_third), {given})), times(x, 2));
  OneOperator many("many", "W", {}, 4);
  EXPECT_EQ(values(run_engine(compile(many.network), {given, given, given, given})), times(x, 4));
  EXPECT_EQ(
      refusal(OneOperator("many", "W", {}, 32).made),
      "node 'odd': the plugin's operator 'faulty.many' has 32 operands here; operands and results together may be "
      "32. Give it fewer operands.");
}

TEST(Kernel, TilesAreRunByAllThreadsOfASession) {
  OneOperator tiled("tiled");
  const auto engine = compile(tiled.network);
  ASSERT_TRUE(engine.ok()) << refusal(engine);
  const auto session = Session::create(*engine, {.threads = 4});
  ASSERT_TRUE(session.ok()) << refusal(session);
  const std::vector<float> x = numbers(6 * 5000);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int again = 0; again < 5; ++again) {
        const std::int64_t size = 5000 - 7 * caller - again;
        const auto results = session->run({view(x.data(), {2, 3, size})});
        ASSERT_TRUE(results.ok()) << refusal(results);
        EXPECT_TRUE(std::equal(x.begin(), x.begin() + 6 * size, results->front().as<float>()));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(Kernel, WhatItReportsStandsBehindTheNodesName) {
  const std::vector<float> bad = {-1, 2, 3, 4, 5, 6};
  OneOperator fails("fails_on_negative");
  const auto engine = compile(fails.network);
  EXPECT_EQ(refusal(run_engine(engine, {view(bad.data(), {2, 3, 1})}, 3)),
            "node 'odd': the kernel of the plugin's operator 'faulty.fails_on_negative' reports: found a negative "
            "number. The plugin's own documents say what its operator takes.");
  const std::vector<float> good = numbers(6);
  EXPECT_EQ(values(run_engine(engine, {view(good.data(), {2, 3, 1})})), good);
  OneOperator throwing("kernel_throws");
  EXPECT_EQ(refusal(run_engine(compile(throwing.network), {view(bad.data(), {2, 3, 1})})),
            "node 'odd': the kernel of the plugin's operator 'faulty.kernel_throws' threw a C++ exception. Have the "
            "plugin catch its exceptions and return an error instead.");
  OneOperator greedy("minus_one_tile");
  EXPECT_EQ(refusal(run_engine(compile(greedy.network), {view(bad.data(), {2, 3, 1})})),
            "node 'odd': the plan of the plugin's operator 'faulty.minus_one_tile' wants -1 tiles with 0 bytes of "
            "scratch each. At most 2^31 tiles and 2^32 bytes can be had.");
}

TEST(Kernel, GetsRowMajorTensorsAlsoBetweenConvolutionsThatWantThemOtherwise) {
  Network network({.plugins = {faulty()}});
  const std::vector<float> weight = numbers(std::int64_t{16} * 16 * 9, 0);
  const auto x = network.add_input("x", DType::f32, {1, 16, "H", "W"});
  const auto w = network.add_constant(view(weight.data(), {16, 16, 3, 3}), "w");
  const auto first = network.add_convolution_nd(x, w, {}, {.pre_padding = {1}});
  const auto doubled =
      network.add_plugin("faulty.twice", {network.transpose(first, {.order = {{0, 1, 3, 2}}})}, {}, "odd");
  const auto again = network.add_convolution_nd(doubled->front(), w, {}, {.pre_padding = {1}});
  ASSERT_TRUE(network.mark_output(again, "y").ok());
  Network plain;
  const auto x2 = plain.add_input("x", DType::f32, {1, 16, "H", "W"});
  const auto w2 = plain.add_constant(view(weight.data(), {16, 16, 3, 3}), "w");
  const auto second = plain.add_convolution_nd(x2, w2, {}, {.pre_padding = {1}});
  const auto turned = plain.mul(plain.transpose(second, {.order = {{0, 1, 3, 2}}}), 2.0);
  ASSERT_TRUE(plain.mark_output(plain.add_convolution_nd(turned, w2, {}, {.pre_padding = {1}}), "y").ok());
  std::vector<float> pixels(std::size_t{16} * 6 * 7);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 5) - 2;
  const std::vector<TensorView> inputs = {view(pixels.data(), {1, 16, 6, 7})};
  const std::vector<float> found = values(run_engine(compile(network), inputs));
  const std::vector<float> expected = values(run_engine(compile(plain), inputs));
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-5 * std::abs(expected[i]) + 1e-3);
}

TEST(Kernel, ConstantsAreFoldedByIt) {
  Network network({.plugins = {faulty()}});
  const std::vector<float> x = numbers(4);
  const auto constant = network.add_constant(view(x.data(), {4}), "c");
  const auto doubled = network.add_plugin("faulty.twice", {constant}, {}, "odd");
  const auto input = network.add_input("x", DType::f32, {4});
  ASSERT_TRUE(network.mark_output(network.add(input, doubled->front())).ok());
  const auto engine = compile(network);
  ASSERT_TRUE(engine.ok()) << refusal(engine);
  EXPECT_TRUE(engine->info().plugins.empty());
  EXPECT_EQ(values(run_engine(engine, {view(x.data(), {4})})), times(x, 3));
}

// ------------------------------------------------------------ engines

std::vector<std::byte> engine_of_twice() {
  OneOperator twice("twice");
  const auto engine = compile(twice.network);
  EXPECT_TRUE(engine.ok()) << refusal(engine);
  EXPECT_EQ(engine->info().plugins.size(), 1U);
  EXPECT_EQ(engine->info().steps.front().rows, std::vector<std::string>{"plugin"});
  return engine->to_bytes().value();
}

TEST(EngineWithPlugin, RunsWithThePluginAlone) {
  const auto bytes = engine_of_twice();
  const auto engine = Engine::from_bytes(bytes, {faulty()});
  const std::vector<float> x = numbers(6);
  EXPECT_EQ(values(run_engine(engine, {view(x.data(), {2, 3, 1})})), times(x, 2));
  EXPECT_EQ(engine->info().plugins.front().name, "faulty.twice");
  EXPECT_EQ(engine->info().plugins.front().version, 3U);
}

TEST(EngineWithPlugin, SaysWhichOneIsNotGiven) {
  const auto bytes = engine_of_twice();
  const std::string needs = "the engine needs operator 'faulty.twice', version 3, of the plugin 'faulty'; ";
  EXPECT_EQ(refusal(Engine::from_bytes(bytes)),
            needs +
                "none is given. Give the plugin's library: --plugin FILE, plugins=[FILE] in Python, or Engine::load's "
                "plugins. (while reading 'the bytes given')");
  const auto newer = Plugin::load(file_of(10));
  ASSERT_TRUE(newer.ok()) << refusal(newer);
  EXPECT_EQ(refusal(Engine::from_bytes(bytes, {*newer})),
            needs +
                "the plugin given has version 4. Give the plugin that the engine was compiled with, or compile the "
                "model again with this one. (while reading 'the bytes given')");
  const auto other = Plugin::load(file_of(11));
  ASSERT_TRUE(other.ok()) << refusal(other);
  const std::string text = refusal(Engine::from_bytes(bytes, {*other}));
  EXPECT_EQ(text.rfind(needs + "given are other.divides_by_zero version 3, ", 0), 0U) << text;
}

TEST(EngineWithPlugin, OutlivesTheCallersPlugin) {
  Result<Session> session = Error{};
  {
    OneOperator twice("twice");
    const auto engine = compile(twice.network);
    session = Session::create(*engine, {.threads = 2});
  }
  const std::vector<float> x = numbers(6);
  ASSERT_TRUE(session.ok()) << refusal(session);
  EXPECT_EQ(values(session->run({view(x.data(), {2, 3, 1})})), times(x, 2));
}

TEST(NetworkWithPlugin, SaysWhatItsPluginsHave) {
  Network without;
  EXPECT_EQ(
      refusal(without.add_plugin("faulty.twice", {}, {}, "odd")),
      "node 'odd': no plugin of this network has an operator 'faulty.twice'. Give the plugins that it uses in the "
      "network's options.");
  EXPECT_EQ(refusal(without.add_plugin("relu", {}, {}, "odd")).substr(0, 62),
            "node 'odd': no plugin of this network has an operator 'relu'. ");
  Network with({.plugins = {faulty()}});
  EXPECT_NE(refusal(with.add_plugin("faulty.thrice", {})).find("Its plugins have: faulty.divides_by_zero, "),
            std::string::npos);
}

}  // namespace
}  // namespace polyphase::api

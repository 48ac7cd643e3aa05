// Networks written layer by layer: shapes while they are written, what they compute, names, types, bodies, sizes.
#include "polyphase/network.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "api/network_calls.h"

namespace polyphase::api {
namespace {

TEST(Network, ADeconvolutionIsWhatItsTwoNumbersSay) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {1, 1, 4});
  const auto w = network.add_constant(view(three_taps.data(), {1, 1, 3}), "w");
  // Stride 2, 3 taps: the natural size is (4 - 1) * 2 + 3 = 9.
  const auto whole = network.add_deconvolution_nd(x, w, {}, {.stride = {2}});
  const auto cropped =
      network.add_deconvolution_nd(x, w, {}, {.stride = {2}, .pre_padding = {1}, .output_padding = {1}});
  const auto sized = network.add_deconvolution_nd(x, w, {}, {.stride = {2}, .pre_padding = {1}, .output_size = {8}});
  const auto uneven = network.add_deconvolution_nd(x, w, {}, {.stride = {2}, .pre_padding = {2}, .post_padding = {-1}});
  const auto same = network.add_deconvolution_nd(x, w, {}, {.stride = {2}, .padding_mode = PaddingMode::same_upper});
  EXPECT_EQ(shape_of(whole), "1 1 9");
  EXPECT_EQ(shape_of(cropped), "1 1 8");
  EXPECT_EQ(shape_of(sized), "1 1 8");
  EXPECT_EQ(shape_of(uneven), "1 1 8");
  EXPECT_EQ(shape_of(same), "1 1 8");
  for (const auto& [tensor, name] :
       {std::pair{whole, "whole"}, {cropped, "cropped"}, {sized, "sized"}, {uneven, "uneven"}, {same, "same"}})
    ASSERT_TRUE(network.mark_output(tensor, name).ok());
  const auto engine = compile(network);
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  const auto session = Session::create(*engine);
  ASSERT_TRUE(session.ok());
  const auto found = session->run({view(ramp.data(), {1, 1, 4})});
  ASSERT_TRUE(found.ok()) << found.error().text();
  const auto elements = [&](std::size_t i) {
    const float* data = (*found)[i].as<float>();
    return std::vector<float>(data, data + (*found)[i].element_count());
  };
  EXPECT_EQ(elements(0), (std::vector<float>{1, 10, 102, 20, 203, 30, 304, 40, 400}));
  EXPECT_EQ(elements(1), (std::vector<float>{10, 102, 20, 203, 30, 304, 40, 400}));
  EXPECT_EQ(elements(2), elements(1));
  EXPECT_EQ(elements(3), (std::vector<float>{102, 20, 203, 30, 304, 40, 400, 0}));
  EXPECT_EQ(elements(4), (std::vector<float>{1, 10, 102, 20, 203, 30, 304, 40}));
}

TEST(Network, ATensorsShapeMakesAnotherAsLarge) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {"N", 1, "W"});
  const auto w = network.add_constant(view(three_taps.data(), {1, 1, 3}), "w");
  const auto down = network.add_convolution_nd(x, w, {}, {.stride = {2}, .pre_padding = {1}}, "down");
  EXPECT_EQ(shape_of(down), "N 1 (W + 1)//2");
  const auto up =
      network.add_deconvolution_nd(down, w, {}, {.stride = {2}, .pre_padding = {1}, .output_size = x->shape()}, "up");
  EXPECT_EQ(shape_of(up), "N 1 W");
  const auto y = network.add(up, x, "sum");
  EXPECT_EQ(shape_of(y), "N 1 W");
  ASSERT_TRUE(network.mark_output(y, "y").ok());
  for (const std::int64_t size : {7, 8}) {
    std::vector<float> image(static_cast<std::size_t>(size));
    std::iota(image.begin(), image.end(), 1.0F);
    EXPECT_EQ(run(network, {view(image.data(), {1, 1, size})}).size(), static_cast<std::size_t>(size));
  }
}

TEST(Network, TakesOperandsWithoutABatchAxis) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {1, 4});
  const auto w = network.add_constant(view(three_taps.data(), {1, 1, 3}));
  const auto up = network.add_deconvolution_nd(x, w, {}, {.stride = {2}});
  EXPECT_EQ(shape_of(up), "1 9");
  const auto down = network.add_convolution_nd(up, w, {}, {.stride = {2}});
  EXPECT_EQ(shape_of(down), "1 4");
  ASSERT_TRUE(network.mark_output(down).ok());
  EXPECT_EQ(run(network, {view(ramp.data(), {1, 4})}),
            (std::vector<float>{1 + 100 + 10200, 102 + 200 + 20300, 203 + 300 + 30400, 304 + 400 + 40000}));
}

// ---------------------------------------------------------------- types

TEST(Network, PromotesAsPyTorchDoesByCastsWithNames) {
  Network network;
  const auto f32 = network.add_input("f32", DType::f32, {2});
  const auto bf16 = network.add_input("bf16", DType::bf16, {2});
  const auto i32 = network.add_input("i32", DType::i32, {2});
  const auto scalar = network.add_input("scalar", DType::f64, {});
  EXPECT_EQ(network.add(f32, bf16, "a")->dtype(), DType::f32);
  EXPECT_EQ(network.add(i32, bf16, "b")->dtype(), DType::bf16);
  EXPECT_EQ(network.add(i32, 0.5, "c")->dtype(), DType::f32);
  EXPECT_EQ(network.add(i32, 2, "d")->dtype(), DType::i32);
  EXPECT_EQ(network.add(f32, scalar, "e")->dtype(), DType::f32);
  EXPECT_EQ(network.add(i32, scalar, "f")->dtype(), DType::f64);
  EXPECT_EQ(network.concat({i32, f32}, {.axis = 0}, "g")->dtype(), DType::f32);
  const std::string text = network.text();
  for (const char* name : {"a/cast_y", "b/cast_x", "c/cast_x", "e/cast_y", "f/cast_x", "g/cast_x0"})
    EXPECT_NE(text.find(name), std::string::npos) << name << "\n" << text;
  EXPECT_EQ(
      refusal(network.bitwise_and(network.cast(i32, {.to = DType::u8}), 300, "h")),
      "node 'h': operand 'y' is the number 300, which u8, the dtype of the others, cannot hold. Cast the others to "
      "a dtype that holds it, or give another number.");
}

TEST(Network, StronglyTypedCastsNothing) {
  Network network({.name = "strict", .strongly_typed = true});
  const auto x = network.add_input("x", DType::f32, {1, 2, 4});
  const auto half = network.add_input("half", DType::bf16, {1, 2, 4});
  EXPECT_EQ(
      refusal(network.add(x, half, "sum")),
      "node 'sum': operand 'x' is f32[1, 2, 4] and operand 'y' is bf16[1, 2, 4]: operator add takes one dtype, and "
      "a strongly typed network casts nothing by itself. Add a layer `cast` for one of them, or build the network "
      "without strongly_typed.");
  EXPECT_EQ(network.add(x, network.cast(half, {.to = DType::f32}), "sum")->dtype(), DType::f32);
  EXPECT_EQ(network.mul(half, 0.5, "scaled")->dtype(), DType::bf16);
  EXPECT_EQ(refusal(network.add(network.cast(x, {.to = DType::i32}), 0.5, "shifted")),
            "node 'shifted': operand 'y' is the number 0.5, which i32, the dtype of the others, cannot hold. Cast the "
            "others to a dtype that holds it, or give another number.");
  EXPECT_EQ(
      refusal(network.with_precision(DType::bf16, [] { return Result<void>(); })),
      "a precision scope is opened in a strongly typed network, which casts nothing by itself. Add layers `cast`, "
      "or build the network without strongly_typed.");
}

TEST(Network, PrecisionScopesNest) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {1, 1, 4});
  const auto w = network.add_constant(view(three_taps.data(), {1, 1, 3}), "w");
  Result<NetworkTensor> inner = Error{};
  Result<NetworkTensor> innermost = Error{};
  const auto done = network.with_precision(DType::bf16, [&]() -> Result<void> {
    inner = network.relu(network.add_convolution_nd(x, w, {}, {}, "low"), "act");
    auto nested = network.with_precision(DType::f32, [&]() -> Result<void> {
      innermost = network.exp(inner, "exact");
      return {};
    });
    if (!nested.ok()) return nested;
    EXPECT_EQ(network.tanh(innermost, "low_again")->dtype(), DType::bf16);
    return {};
  });
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_EQ(inner->dtype(), DType::bf16);
  EXPECT_EQ(innermost->dtype(), DType::f32);
  EXPECT_EQ(network.add(innermost, 1.0, "outside")->dtype(), DType::f32);
  const std::string text = network.text();
  for (const char* name : {"low/cast_x", "low/cast_w", "exact/cast_x", "low_again/cast_x"})
    EXPECT_NE(text.find(name), std::string::npos) << name << "\n" << text;
  EXPECT_EQ(text.find("\"act/cast"), std::string::npos) << text;
  EXPECT_EQ(refusal(network.with_precision(DType::i8, [] { return Result<void>(); })),
            "a precision scope has the dtype i8. Precisions are f64, f32, bf16 and f16.");
}

// ---------------------------------------------------------------- sizes

TEST(Network, CompilesForSizesOfTheCallers) {
  Network network;
  ASSERT_TRUE(network.set_range("H", {.low = 1, .high = 64}).ok());
  const auto x = network.add_input("x", DType::f32, {1, "H", "2*H"});
  const auto y = network.reshape(x, {.shape = {x->size(0), x->size(1) * x->size(2)}});
  EXPECT_EQ(shape_of(y), "1 2*H*H");
  ASSERT_TRUE(network.mark_output(y, "y").ok());
  EXPECT_EQ(refusal(network.set_range("H", {.low = 1, .high = 3})),
            "the size 'H' is in use already; its range cannot change any more. Give ranges before the inputs that have "
            "them, or with the options of compile.");
  const auto open = compile(network);
  ASSERT_TRUE(open.ok()) << open.error().text();
  EXPECT_EQ(open->info().dims.at("H").high, 64);
  CompileOptions options;
  options.dims = {{"H", {2, 2}}};
  const auto fixed = compile(network, options);
  ASSERT_TRUE(fixed.ok()) << fixed.error().text();
  EXPECT_EQ(fixed->outputs()[0].sizes, (std::vector<std::string>{"1", "8"}));
  options.dims.clear();
  options.shapes = {{"x", {"1", "3", "6"}}};
  const auto shaped = compile(network, options);
  ASSERT_TRUE(shaped.ok()) << shaped.error().text();
  EXPECT_EQ(shaped->outputs()[0].sizes, (std::vector<std::string>{"1", "18"}));
  options.shapes = {{"x", {"1", "3", "7"}}};
  EXPECT_EQ(
      refusal(compile(network, options)),
      "the shape given for input 'x' has 7 on axis 2, where the network has 2*H, which is 6. Give one value for each "
      "symbolic size, and leave numbers as they are.");
  options.shapes = {{"z", {"1"}}};
  EXPECT_EQ(refusal(compile(network, options)),
            "the network has no input 'z' to give a shape to. Its inputs are: 'x'.");
  options.shapes.clear();
  options.dims = {{"Q", {1, 2}}};
  EXPECT_EQ(refusal(compile(network, options)), "no input of the network has a size named 'Q'. Its open sizes are: H.");
}

TEST(Network, SizesMayComeFromData) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {"n"});
  const auto count = network.count_nonzero(x);
  const auto bound = network.bind(count, {.symbols = {"found"}});
  EXPECT_EQ(refusal(network.bind(count, {.symbols = {"n"}}, "again")),
            "node 'again': the size 'n' has its meaning already. Bind numbers to new names.");
  const auto places = network.nonzero(x, {.count = "found"});
  EXPECT_EQ(shape_of(places), "1 found");
  const auto y = network.cast(places, {.to = DType::f32});
  ASSERT_TRUE(bound.ok() && network.mark_output(y).ok());
  const std::vector<float> data = {0, 5, 0, 7};
  EXPECT_EQ(run(network, {view(data.data(), {4})}), (std::vector<float>{1, 3}));
}

// ---------------------------------------------------------------- constants and weights

TEST(Network, ConstantsAreNotCopiedAndEnginesDoNotNeedThem) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {4});
  std::vector<float> table = {1, 2, 3, 4};
  const auto y = network.add(x, network.add_constant(view(table.data(), {4}), "table"));
  ASSERT_TRUE(network.mark_output(y, "y").ok());
  table[3] = 40;  // nothing was copied yet
  const auto engine = compile(network);
  ASSERT_TRUE(engine.ok());
  std::fill(table.begin(), table.end(), -1.0F);
  const auto session = Session::create(*engine);
  ASSERT_TRUE(session.ok());
  const auto found = session->run({view(ramp.data(), {4})});
  ASSERT_TRUE(found.ok());
  const float* data = found->front().as<float>();
  EXPECT_EQ(std::vector<float>(data, data + 4), (std::vector<float>{2, 4, 6, 44}));
}

TEST(Network, WeightsAreExchangedByTheirConstantsNames) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {1, 1, 4});
  const auto w = network.add_constant(view(three_taps.data(), {1, 1, 3}), "up.weight");
  const auto y = network.add_deconvolution_nd(x, w, {}, {.stride = {2}});
  ASSERT_TRUE(network.mark_output(y, "y").ok());
  CompileOptions options;
  options.refittable = true;
  const auto engine = compile(network, options);
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  ASSERT_EQ(engine->info().weights.size(), 1U);
  EXPECT_EQ(engine->info().weights[0].names, std::vector<std::string>{"up.weight"});
  const std::vector<float> others = {1, 0, 0};
  const std::vector<NamedView> weights = {{"up.weight", view(others.data(), {1, 1, 3})}};
  const auto refitted = engine->refit(weights);
  ASSERT_TRUE(refitted.ok()) << refitted.error().text();
  const auto session = Session::create(*refitted);
  ASSERT_TRUE(session.ok());
  const auto found = session->run({view(ramp.data(), {1, 1, 4})});
  ASSERT_TRUE(found.ok());
  const float* data = found->front().as<float>();
  EXPECT_EQ(std::vector<float>(data, data + 9), (std::vector<float>{1, 0, 2, 0, 3, 0, 4, 0, 0}));
}

// ---------------------------------------------------------------- bodies

TEST(Network, ABranchReadsWhatIsOutside) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {"n"});
  const auto flag = network.add_input("flag", DType::boolean, {1});
  const auto doubled = network.mul(x, 2.0, "doubled");
  Result<NetworkTensor> inner = Error{};
  const auto chosen = network.add_if(
      flag, [&]() -> Result<std::vector<Operand>> { return std::vector<Operand>{network.add(doubled, 1.0)}; },
      [&]() -> Result<std::vector<Operand>> {
        inner = network.concat({x, doubled}, {.axis = 0});
        return std::vector<Operand>{inner};
      },
      "choose");
  ASSERT_TRUE(chosen.ok()) << chosen.error().text();
  EXPECT_EQ(text_of(chosen->front().shape()), "choose");
  EXPECT_EQ(refusal(network.relu(inner, "act")),
            "node 'act': the operand is tensor 'concat_1' of layer 'concat_1', which belongs to a body that is "
            "finished. Give it as "
            "a result of the body, and use that.");
  ASSERT_TRUE(network.mark_output(chosen->front(), "y").ok());
  const bool yes = true;
  const bool no = false;
  const std::vector<float> data = {1, 2};
  EXPECT_EQ(run(network, {view(data.data(), {2}), view(&yes, {1})}), (std::vector<float>{3, 5}));
  EXPECT_EQ(run(network, {view(data.data(), {2}), view(&no, {1})}), (std::vector<float>{1, 2, 2, 4}));
}

TEST(Network, ALoopCarriesAndStacks) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {1});
  int calls = 0;
  const auto made = network.add_loop(
      4, {}, {x},
      [&](const NetworkTensor& iteration, const std::vector<NetworkTensor>& carried) -> Result<LoopTurn> {
        ++calls;
        const auto next = network.concat(
            {carried[0], network.mul(network.slice(carried[0], {.start = {0}, .size = {1}, .step = {1}}), 2.0)},
            {.axis = 0}, "grow");
        return LoopTurn{.again = {}, .carried = {next}, .rows = {network.cast(iteration, {.to = DType::f32})}};
      },
      "grow_it");
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_EQ(calls, 2);  // once more when its sizes were seen to change
  ASSERT_EQ(made->size(), 2U);
  EXPECT_EQ((*made)[0].rank(), 1);
  EXPECT_EQ(text_of((*made)[1].shape()), "4");
  ASSERT_TRUE(network.mark_output((*made)[0], "y").ok());
  const std::vector<float> data = {3};
  EXPECT_EQ(run(network, {view(data.data(), {1})}), (std::vector<float>{3, 6, 6, 6, 6}));
}

TEST(Network, ALoopEndsWhenItsBodySaysSo) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {});
  const auto made = network.add_loop(
      {}, {}, {x}, [&](const NetworkTensor&, const std::vector<NetworkTensor>& carried) -> Result<LoopTurn> {
        const auto next = network.mul(carried[0], 2.0);
        return LoopTurn{.again = network.less(next, 100.0), .carried = {next}, .rows = {}};
      });
  ASSERT_TRUE(made.ok()) << made.error().text();
  ASSERT_TRUE(network.mark_output(made->front(), "y").ok());
  const float data = 3;
  EXPECT_EQ(run(network, {view(&data, {})}), std::vector<float>{192});
}

TEST(Network, ARefusedBodyLeavesTheNetworkAsItWas) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {"n"});
  const auto flag = network.add_input("flag", DType::boolean, {});
  Result<NetworkTensor> inside = Error{};
  const auto with = [&](const Network::Branch& other) {
    return network.add_if(
        flag,
        [&]() -> Result<std::vector<Operand>> {
          inside = network.relu(x, "inside");
          return std::vector<Operand>{inside};
        },
        other, "choose");
  };
  EXPECT_EQ(refusal(with([&]() -> Result<std::vector<Operand>> {
              return std::vector<Operand>{network.cast(x, {.to = DType::i32})};
            })),
            "node 'choose': the branches give f32[n] and i32[n] as result 0; they must have one dtype. Let the bodies "
            "give tensors of the same dtypes and ranks.");
  EXPECT_EQ(refusal(with([&]() -> Result<std::vector<Operand>> { return std::vector<Operand>{}; })),
            "node 'choose': the branches give 1 and 0 results. Let both give the same number.");
  EXPECT_EQ(refusal(with([&]() -> Result<std::vector<Operand>> {
              return std::vector<Operand>{network.softmax(x, {.axis = 3}, "wrong")};
            })).substr(0, 13),
            "node 'wrong':");
  EXPECT_EQ(
      refusal(network.add_if(x, nullptr, nullptr, "choose")),
      "node 'choose': condition is f32[n]; it must be one bool. Add layers `cast`, `reshape` or `gather` before.");
  // What the first branch had written is gone with it.
  EXPECT_EQ(inside->name() + ", " + text_of(inside->shape()), "inside, n");
  EXPECT_EQ(
      refusal(network.exp(inside, "outside")),
      "node 'outside': the operand is tensor 'inside' of layer 'inside', which belongs to a body that is finished. "
      "Give it as a result of the body, and use that.");
  EXPECT_EQ(refusal(network.add_if({}, nullptr, nullptr, "choose")),
            "node 'choose': the condition is not there. Give a tensor or a number.");
  EXPECT_EQ(
      refusal(network.add_if(flag, nullptr, nullptr, "choose")),
      "node 'choose': a body is given as a function that is empty. Give a function that writes the body's layers.");
  const auto made = with([&]() -> Result<std::vector<Operand>> { return std::vector<Operand>{network.exp(x)}; });
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_EQ(text_of(made->front().shape()), "n");
}

TEST(Network, CompilesAsItGrows) {
  Network network;
  const auto x = network.add_input("x", DType::f32, {4});
  const auto y = network.add(x, 1.0);
  ASSERT_TRUE(network.mark_output(y, "y").ok());
  EXPECT_EQ(run(network, {view(ramp.data(), {4})}), (std::vector<float>{2, 3, 4, 5}));
  const auto z = network.mul(y, 10.0);
  ASSERT_TRUE(network.mark_output(z, "z").ok());
  const auto engine = compile(network);
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  EXPECT_EQ(engine->outputs().size(), 2U);
}

}  // namespace
}  // namespace polyphase::api

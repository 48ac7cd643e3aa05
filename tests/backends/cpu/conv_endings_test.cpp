// What convolution kernels do to their results before they store them, bit for bit against the double reference.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "backends/cpu/conv_case.h"
#include "backends/cpu/conv_expect.h"
#include "backends/cpu/conv_run.h"

namespace polyphase::cpu::testing {
namespace {

// A sum, an activation, or slopes of negative channels, in any order that kernels may meet, also of rows of channels
// that fill no vector, in all types.
TEST(ConvEndings, EndingsAreExact) {
  each_random_case(120, 700, 6'000'011, 1'000'000, [](const ConvCase& c, uint64_t number, std::mt19937_64& random) {
    ConvData data = make_data(c, number, true);
    data.activation = std::array{EndingKind::relu, EndingKind::leaky_relu, EndingKind::keep}[random() % 3];
    if (random() % 2 == 0) {
      draw_added(c.shape, random, data);
      data.added_in_bf16 = random() % 2 == 0;
      data.adds_last = random() % 2 == 0;
    }
    if (random() % 3 == 0) draw_slopes(c.shape, random, data);
    const std::vector<double> want = reference(c, data);
    constexpr DType types[] = {DType::f32, DType::f16, DType::bf16};
    const Layouts layouts = {.in_planar = random() % 2 == 0,
                             .out_planar = random() % 3 == 0,
                             .types = {types[random() % 3], types[random() % 3]},
                             .extra = random() % 3 == 0 ? 5 : 0};
    for (const std::string& cluster : clusters_and_matrix_unit()) {
      const bool has_f16 = layouts.types.in == DType::f16 || layouts.types.out == DType::f16;
      std::vector<std::string> kernels = has_f16 ? std::vector<std::string>{} : pair_kernels_for(c, cluster);
      if (cluster != emulated_matrix_unit) {
        for (const std::string& kernel : kernels_for(c, layouts)) kernels.push_back(kernel);
      }
      for (const std::string& kernel : kernels) {
        expect_stored(kernel, c, data, layouts, cluster, want);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

// A sum and an activation while the results are in registers: an image that lies as a channels-last result does.
TEST(ConvEndings, SumsInRegistersAreExact) {
  uint64_t cases = 0;
  uint64_t in_registers = 0;
  each_random_case(60, 400, 7'000'003, 1'000'000, [&](const ConvCase& c, uint64_t number, std::mt19937_64& random) {
    ConvData data = make_data(c, number, true);
    data.activation =
        std::array{EndingKind::relu, EndingKind::leaky_relu, EndingKind::clip, EndingKind::keep}[random() % 4];
    draw_added(c.shape, random, data);
    const std::vector<double> want = reference(c, data);
    const Layouts layouts = {
        .in_planar = random() % 2 == 0, .out_planar = false, .types = {}, .extra = random() % 3 == 0 ? 5 : 0};
    const ImageStrides in = image_strides(c.shape.groups * c.shape.in_channels, c.shape.in, false, layouts.extra);
    const ImageStrides out = image_strides(c.shape.groups * c.shape.out_channels, c.shape.out, false, layouts.extra);
    EndingProgram program = {};
    program.count = 1;
    program.steps[0] = {EndingKind::add, 0, 0, 0};
    program.operands[0] = out;
    ++cases;
    if (plan_conv_gemm(c.shape, in, out, program, c.bias, 8).brief.are_all) ++in_registers;
    for (const std::string& cluster : runnable_clusters()) {
      for (const std::string& kernel : kernels_for(c, layouts)) {
        expect_stored(kernel, c, data, layouts, cluster, want);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  });
  EXPECT_GT(in_registers, cases / 4);
}

TEST(ConvEndings, WhatLiesElsewhereIsNotAddedInRegisters) {
  const ConvCase c = *parse_conv_case("sum conv n2 g1 c64:64 in9x7 k3x3 s1x1 d1x1 pre1x1 post1x1 bias");
  const ImageStrides last = image_strides(64, c.shape.out, false, 0);
  const ImageStrides first = image_strides(64, c.shape.out, true, 0);
  EndingProgram program = {};
  program.count = 2;
  program.steps[0] = {EndingKind::add, 0, 0, 0};
  program.steps[1] = {EndingKind::relu, -1, 0, 0};
  const auto both = [&](const ImageStrides& result, const ImageStrides& operand) {
    program.operands[0] = operand;
    const bool by_gemm = plan_conv_gemm(c.shape, last, result, program, true, 8).brief.are_all;
    EXPECT_EQ(plan_conv_winograd(c.shape, last, result, program, true, 8).brief.are_all, by_gemm);
    return by_gemm;
  };
  EXPECT_TRUE(both(last, last));
  EXPECT_FALSE(both(last, {0, 1, {0, 0, 0}})) << "one pixel for all";
  EXPECT_FALSE(both(last, {0, 1, {last.axis[0], last.axis[1], last.axis[2]}})) << "one image for both";
  EXPECT_FALSE(both(last, image_strides(64, c.shape.out, false, 3)));
  EXPECT_FALSE(both(last, first));
  EXPECT_FALSE(both(first, first));
  program.steps[0].kind = EndingKind::add_bf16;
  EXPECT_FALSE(both(last, last));
  program.steps[0].kind = EndingKind::add;
  program.steps[1].kind = EndingKind::sigmoid;
  EXPECT_FALSE(both(last, last));
}

}  // namespace
}  // namespace polyphase::cpu::testing

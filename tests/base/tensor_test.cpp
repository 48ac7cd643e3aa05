// Layouts, views, element access, copies and the walks over strided memory.
#include "base/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/memory.h"
#include "base/rows.h"

namespace polyphase {
namespace {

using Sizes = std::vector<std::int64_t>;

TEST(Layout, TextAndStrides) {
  EXPECT_EQ(Layout::channels_last(4).text(), "0,2,3,1");
  EXPECT_EQ(Layout::channels_last(2), Layout::row_major(2));
  EXPECT_EQ(Layout::channels_last(4).dense_strides(Sizes{2, 3, 4, 5}), (Sizes{60, 1, 15, 3}));
  EXPECT_EQ(Layout::row_major(3).dense_strides(Sizes{2, 3, 4}), (Sizes{12, 4, 1}));
  EXPECT_EQ(Layout::from_text("0,2,3,1"), Layout::channels_last(4));
  EXPECT_EQ(Layout::from_text("")->rank(), 0);
  EXPECT_FALSE(Layout().is_set());
  for (const char* bad : {"0,0", "1", "0,2", "0,1,", ",0", "0 1", "01", "a", "0,1,2,3,4,5,6,7,8"}) {
    EXPECT_FALSE(Layout::from_text(bad).has_value()) << bad;
  }
}

TEST(TensorDesc, KnowsHowItLies) {
  const TensorDesc image(DType::f32, Sizes{2, 3, 4, 5}, Layout::channels_last(4));
  EXPECT_TRUE(image.is_dense(Layout::channels_last(4)));
  EXPECT_FALSE(image.is_row_major());
  EXPECT_EQ(image.extent(), 120);
  EXPECT_TRUE(TensorDesc(DType::f32, Sizes{2, 1, 4, 1}, Layout::channels_last(4)).is_row_major());
  const TensorDesc none = TensorDesc::row_major(DType::f32, Sizes{2, 0, 3});
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.extent(), 0);
  EXPECT_EQ(none.element_count(), 0);
}

TEST(Tensor, RefusesWhatNoMemoryHolds) {
  EXPECT_EQ(Tensor::allocate(DType::f32, Sizes{-1}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(Tensor::allocate(DType::f32, Sizes{INT64_MAX, 2}).error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(Tensor::allocate(DType::f32, Sizes{std::int64_t{1} << 60}).error().code, ErrorCode::out_of_memory);
  EXPECT_FALSE(Tensor::allocate(DType::f32, Sizes(9, 1)).ok());
}

TEST(Elements, EveryDTypeStoresAndLoads) {
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
    std::byte element[8];
    for (const double value : {0.0, 1.0}) {
      store_double(element, dtype, value);
      EXPECT_EQ(load_double(element, dtype), value) << name_of(dtype);
      store_integer(element, dtype, static_cast<std::int64_t>(value));
      EXPECT_EQ(load_integer(element, dtype), static_cast<std::int64_t>(value)) << name_of(dtype);
    }
    if (is_float(dtype)) continue;
    store_double(element, dtype, NAN);
    EXPECT_EQ(load_integer(element, dtype), dtype == DType::boolean ? 1 : 0) << name_of(dtype);
  }
}

TEST(Elements, IntegersWrapAndFloatsSaturate) {
  std::byte element[8];
  const auto wrapped = [&](DType dtype, std::int64_t value) {
    store_integer(element, dtype, value);
    return load_integer(element, dtype);
  };
  const auto saturated = [&](DType dtype, double value) {
    store_double(element, dtype, value);
    return load_integer(element, dtype);
  };
  EXPECT_EQ(wrapped(DType::i8, 200), -56);
  EXPECT_EQ(wrapped(DType::u8, -1), 255);
  EXPECT_EQ(wrapped(DType::i4, 9), -7);
  EXPECT_EQ(wrapped(DType::u4, 17), 1);
  EXPECT_EQ(wrapped(DType::u64, -1), -1);
  EXPECT_EQ(load_double(element, DType::u64), 18446744073709551615.0);
  EXPECT_EQ(saturated(DType::i8, 1000), 127);
  EXPECT_EQ(saturated(DType::i8, -1.9), -1);
  EXPECT_EQ(saturated(DType::u8, -5), 0);
  EXPECT_EQ(saturated(DType::i64, 1e30), INT64_MAX);
  EXPECT_EQ(saturated(DType::i64, -1e30), INT64_MIN);
  EXPECT_EQ(saturated(DType::i4, 100), 7);
  EXPECT_EQ(saturated(DType::u4, -3), 0);
}

TEST(Elements, CopiesBetweenAnyStrides) {
  for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::i64}) {
    const Sizes sizes{2, 3, 4, 5};
    std::vector<std::int64_t> values(120);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i);
    const Tensor from = Tensor::from_integers(dtype, sizes, values);
    const Tensor to = Tensor::allocate(TensorDesc(dtype, sizes, Layout::channels_last(4))).value();
    copy_elements(from.view(), to.view());
    EXPECT_TRUE(equal_elements(from.view(), to.view()));
    EXPECT_EQ(load_integer(to.view().data + 1 * size_bytes(dtype), dtype),
              20);  // the second channel of the first pixel
    store_integer(to.view().data + 7 * size_bytes(dtype), dtype, 121);
    EXPECT_FALSE(equal_elements(from.view(), to.view()));
  }
  const Tensor nan = Tensor::from_values(DType::f32, Sizes{2}, std::vector<double>{NAN, 0.0});
  const Tensor other = Tensor::from_values(DType::f32, Sizes{2}, std::vector<double>{-NAN, -0.0});
  EXPECT_TRUE(equal_elements(nan.view(), nan.view()));
  EXPECT_FALSE(equal_elements(nan.view(), other.view()));
}

// Every element is visited once, whatever the strides, and in logical order where that is promised.
TEST(Rows, VisitEveryElementOnce) {
  const std::vector<std::pair<Sizes, Sizes>> shapes = {{{}, {}},
                                                       {{5}, {1}},
                                                       {{5}, {-3}},
                                                       {{2, 3, 4}, {12, 4, 1}},
                                                       {{2, 3, 4}, {1, 2, 6}},
                                                       {{2, 1, 4}, {4, 99, 1}},
                                                       {{3, 4}, {0, 1}},
                                                       {{2, 3, 2, 5}, {-30, 5, 15, 1}},
                                                       {{0, 4}, {4, 1}},
                                                       {{1, 1}, {7, 7}},
                                                       {{6, 2}, {2, 100}}};
  for (const auto& [sizes, strides] : shapes) {
    std::vector<std::int64_t> expected;
    for_each_index<1>(sizes, {strides.data()}, [&](const auto& at) { expected.push_back(at[0]); });
    for (const RowOrder order : {RowOrder::logical, RowOrder::any}) {
      std::vector<std::int64_t> found;
      for_each_row<2>(sizes, {strides.data(), strides.data()}, order,
                      [&](const auto& at, std::int64_t count, const auto& step) {
                        EXPECT_EQ(at[0], at[1]);
                        for (std::int64_t i = 0; i < count; ++i) found.push_back(at[0] + i * step[0]);
                      });
      if (order == RowOrder::logical) {
        EXPECT_EQ(found, expected);
      }
      EXPECT_EQ(std::multiset<std::int64_t>(found.begin(), found.end()),
                std::multiset<std::int64_t>(expected.begin(), expected.end()));
    }
  }
}

TEST(Rows, DenseOperandsAreOneRow) {
  int rows = 0;
  const Sizes sizes{2, 3, 4, 5};
  const Sizes strides = Layout::channels_last(4).dense_strides(sizes);
  for_each_row<2>(sizes, {strides.data(), strides.data()}, RowOrder::any,
                  [&](const auto&, std::int64_t count, const auto&) {
                    ++rows;
                    EXPECT_EQ(count, 120);
                  });
  EXPECT_EQ(rows, 1);
}

TEST(Memory, IsAlignedAndZeroAtEverySize) {
  constexpr std::size_t large = std::size_t{4} << 20;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{65}, large - 1, large, 3 * large + 5}) {
    for (int round = 0; round < 2; ++round) {  // the second time it may be what the first one wrote to
      const auto memory = allocate_memory(size, FreshMemory::zeros);
      ASSERT_NE(memory, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.get()) % (size >= large ? large / 2 : 64), 0U);
      EXPECT_EQ(std::count(memory.get(), memory.get() + size, std::byte{0}), static_cast<std::ptrdiff_t>(size));
      std::fill_n(memory.get(), size, std::byte{7});
    }
  }
  EXPECT_EQ(allocate_memory(std::size_t{1} << 50, FreshMemory::zeros), nullptr);
  EXPECT_EQ(allocate_memory(~std::size_t{0}, FreshMemory::any), nullptr);
}

TEST(Errors, SayNodeHintAndTrail) {
  Error error{ErrorCode::invalid_model, "it is wrong.", "Do this."};
  EXPECT_EQ(std::move(error).at_node("up1").within("in function 'f'").within("while reading m.onnx").text(),
            "node 'up1': it is wrong. Do this. (in function 'f'; while reading m.onnx)");
}

}  // namespace
}  // namespace polyphase

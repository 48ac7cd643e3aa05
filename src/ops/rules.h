// Rules that many shape rules share, and their words: dtypes, axes, broadcasting.
#pragma once

#include <string>

#include "ops/op.h"

namespace polyphase {

// Sets of dtypes that operators take.
enum class DTypeSet : std::uint8_t { floats, integers, numbers, booleans, integers_and_booleans, any };
std::string_view name_of(DTypeSet set);  // "a float", "an integer", …
bool contains(DTypeSet set, DType dtype);

// "add: MESSAGE", with the code invalid_model.
Error refuse(const InferContext& context, const std::string& message);
// The operand's name in the operator's list, quoted: "'x'".
std::string operand_name(const InferContext& context, std::size_t i);

Result<void> expect_dtype(const InferContext& context, std::size_t i, DTypeSet set);
Result<void> expect_same_dtype(const InferContext& context, std::size_t i, std::size_t j);
// The attribute as an axis of a tensor of this rank: 0 <= axis < rank.
Result<int> expect_axis(const InferContext& context, std::string_view attribute, int rank);
// One entry per axis.
Result<void> expect_entries(const InferContext& context, std::string_view attribute, std::size_t found, int rank);
// left == right, with "'x' axis 2 (H) must equal … (W)" as words; the result is whichever is a number.
Result<Dim> expect_equal(const InferContext& context, const Dim& left, const std::string& left_words, const Dim& right,
                         const std::string& right_words);

// numpy's broadcast of two operands' shapes: aligned at the last axis, sizes equal or 1.
Result<Shape> broadcast_operands(const InferContext& context, std::size_t i, std::size_t j);
Result<Shape> broadcast_shapes(const InferContext& context, const Shape& a, const std::string& a_words, const Shape& b,
                               const std::string& b_words);

// The view stretched to `sizes` by numpy's rule: missing and unit axes get stride 0.
TensorView broadcast_view(const TensorView& view, std::span<const std::int64_t> sizes);

}  // namespace polyphase

// Cutting: how an operator behaves where its operands are pieces of longer ones along one axis.
//
//   whole     0 . . . . . . a . . . . . . . . . b . . . . n
//   piece                   0 . . . . . . . . b-a
//                            low → x x o o o o x x ← high
//
// Place p of a value in the piece is place p + a * up / down of the whole value. The first `low` and the last `high`
// places of a piece (x) may differ from the whole's, because they have seen the piece's own end where the whole goes
// on; where a piece begins or ends with the whole they are right as well. A rule says what becomes of that from
// operands to results, or why the operator cannot be cut along the axis.
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/op.h"

namespace polyphase {

// One value of a network whose inputs are cut.
struct CutState {
  int axis = -1;          // that lies in pieces; -1: the value is the same in all of them
  std::int64_t up = 1;    // places per `down` places of the size that is cut, in lowest terms
  std::int64_t down = 1;  //
  std::int64_t low = 0;   // places that a piece's begin spoils
  std::int64_t high = 0;  // places that its end spoils
  bool is_cut() const { return axis >= 0; }
  bool operator==(const CutState&) const = default;
};

// A rule's answer: what the results are (all alike), or why there are none.
struct CutAnswer {
  CutAnswer(CutState result) : state(result) {}                // NOLINT(google-explicit-constructor): as Result does
  CutAnswer(std::string why) : refusal(std::move(why)) {}      // NOLINT(google-explicit-constructor)
  CutAnswer(const char* why) : CutAnswer(std::string(why)) {}  // NOLINT(google-explicit-constructor)
  CutState state;
  std::string refusal;  // completes "NODE cannot be cut: it …"
};

// A size that pieces must not fall below, or whose growth only numbers can show.
struct CutNeed {
  Dim size;
  std::int64_t least = 0;  // in every piece
  // size(n + down) = size(n) + up, for all multiples of the step; up = 0: nothing is said.
  std::int64_t up = 0;
  std::int64_t down = 1;
};

// What a rule sees: one use of an operator. Sizes are those of a piece that begins and ends inside of the whole: long,
// and a multiple of where pieces begin.
class CutContext {
 public:
  struct Operand {
    const Type* type = nullptr;  // null: absent
    CutState state;
  };
  static constexpr std::int64_t most_step = std::int64_t{1} << 16;
  struct Demands {
    std::vector<CutNeed> needs;
    std::int64_t step = 1;  // pieces begin at multiples of it; more than most_step: of no usable number
  };

  CutContext(const Attributes& attributes, std::span<const Operand> operands, const Type& result,
             std::string_view symbol, std::int64_t length, Demands& demands)
      : attributes_(attributes),
        operands_(operands),
        result_(result),
        symbol_(symbol),
        length_(length),
        demands_(demands) {}

  const Attributes& attributes() const { return attributes_; }
  std::size_t operand_count() const { return operands_.size(); }
  bool has_operand(std::size_t i) const { return i < operands_.size() && operands_[i].type != nullptr; }
  const Type& operand(std::size_t i) const { return *operands_[i].type; }
  const CutState& state(std::size_t i) const { return operands_[i].state; }
  const Type& result() const { return result_; }
  // Whether an operand but the first `from` ones lies in pieces.
  bool any_cut(std::size_t from) const;

  // Whether the size depends on the one that is cut.
  bool varies(const Dim& dim) const;
  // What it is in the piece; nothing where it depends on more than the size that is cut.
  std::optional<std::int64_t> in_piece(const Dim& dim) const;
  // How much it grows with the size that is cut, as a ratio; nothing where it depends on others or does not grow.
  std::optional<std::pair<std::int64_t, std::int64_t>> slope(const Dim& dim) const;
  // Of the axis that lies in pieces.
  std::optional<std::int64_t> operand_size(std::size_t i) const { return in_piece(operand(i).shape[state(i).axis]); }

  // Pieces shall begin where `count` places of this value begin.
  void align(const CutState& at, std::int64_t count) const;
  // The size is at least that in every piece.
  void need(const Dim& size, std::int64_t least) const;

 private:
  const Attributes& attributes_;
  std::span<const Operand> operands_;
  const Type& result_;
  std::string_view symbol_;
  std::int64_t length_;
  Demands& demands_;
};

// The state with places `times` as dense, or a `parts`-th as dense; low and high stay.
CutState scaled(CutState state, std::int64_t times, std::int64_t parts);
// "axis 2" with what happens to it.
std::string axis_words(const CutState& state);

// ------------------------------------------------------------ rules of many operators

// Elementwise with numpy's broadcast; also of a single operand.
CutAnswer cut_elementwise(const CutContext& context);
// The first operand, along any axis but the spatial ones behind the channels, and but them.
CutAnswer cut_batch_only(const CutContext& context);
// Operators that see a whole axis (attribute `axis`) and leave all others alone.
CutAnswer cut_beside_axis(const CutContext& context);
// The same for attributes `axes` and `keep`, or `axis` and `keep`.
CutAnswer cut_reduction(const CutContext& context);

CutAnswer cut_conv(const CutContext& context);
CutAnswer cut_conv_transpose(const CutContext& context);
CutAnswer cut_pool(const CutContext& context);

CutAnswer cut_concat(const CutContext& context);
CutAnswer cut_depth_to_space(const CutContext& context);
CutAnswer cut_expand(const CutContext& context);
CutAnswer cut_gather(const CutContext& context);
CutAnswer cut_pad(const CutContext& context);
CutAnswer cut_reshape(const CutContext& context);
CutAnswer cut_resize(const CutContext& context);
CutAnswer cut_slice(const CutContext& context);
CutAnswer cut_space_to_depth(const CutContext& context);
CutAnswer cut_tile(const CutContext& context);
CutAnswer cut_transpose(const CutContext& context);

}  // namespace polyphase

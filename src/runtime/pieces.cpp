// Where pieces begin and end.
#include "runtime/pieces.h"

#include <algorithm>

namespace polyphase {
namespace {

class PieceMaker {
 public:
  PieceMaker(const Engine& engine, const EngineCut& cut, const DimBindings& bindings, std::int64_t own)
      : engine_(engine), cut_(cut), bindings_(bindings), whole_(bindings.find(cut.symbol)->second) {
    own_ = std::min(whole_, std::max<std::int64_t>(1, own));
    own_ = up_to_step(own_);
  }

  Result<std::vector<Piece>> make() {
    TRY_VOID(measure_whole());
    std::vector<Piece> out;
    std::int64_t first = 0;
    do {
      // What is left at the end and is less than a step joins the piece before it.
      const std::int64_t rest = whole_ - first - own_;
      const std::int64_t last = rest < cut_.step ? whole_ : first + own_;
      TRY(Piece piece, one(first, last));
      if (piece.begin == 0 && piece.end == whole_) {  // it reads everything: then it may as well give everything
        TRY(Piece all, one(0, whole_));
        return std::vector<Piece>{std::move(all)};
      }
      out.push_back(std::move(piece));
      first = last;
    } while (first < whole_);
    return out;
  }

 private:
  std::optional<std::int64_t> at(const Dim& size, std::int64_t length) {
    bindings_[cut_.symbol] = length;
    return size.evaluate(bindings_);
  }

  const Dim& size_of(std::size_t port) const {
    const Shape& shape = engine_.values[static_cast<std::size_t>(engine_.outputs[port].value)].type.shape;
    return shape[cut_.outputs[port].axis];
  }

  Result<void> measure_whole() {
    for (std::size_t i = 0; i < cut_.outputs.size(); ++i) {
      sizes_.push_back(0);
      if (!cut_.outputs[i].is_cut()) continue;
      const auto size = at(size_of(i), whole_);
      if (!size.has_value() || *size < 0) {
        return Error{ErrorCode::shape_mismatch,
                     "the size of output '" + engine_.outputs[i].name + "' cannot be computed for " + cut_.symbol +
                         " = " + std::to_string(whole_) + ".",
                     "Give inputs of other sizes."};
      }
      sizes_.back() = *size;
    }
    return {};
  }

  std::int64_t down_to_step(std::int64_t place) const { return floor_div(place, cut_.step) * cut_.step; }
  std::int64_t up_to_step(std::int64_t place) const { return ceil_div(place, cut_.step) * cut_.step; }
  // Where place `place` of the size lies in an output.
  std::int64_t in_output(std::size_t port, std::int64_t place) const {
    return place == whole_ ? sizes_[port]
                           : std::min(sizes_[port], floor_div(place * cut_.outputs[port].up, cut_.outputs[port].down));
  }

  Result<Piece> one(std::int64_t first, std::int64_t last) {
    Piece piece{first, last, {}};
    for (const CutState& output : cut_.outputs) {
      if (output.is_cut())
        piece.begin = std::min(piece.begin, down_to_step(first - ceil_div(output.low * output.down, output.up)));
    }
    piece.begin = std::max<std::int64_t>(0, piece.begin);
    if (first == 0) piece.begin = 0;
    for (int i = 0; piece.end < whole_ && missing(piece, last) > 0; ++i) {
      const std::int64_t length = up_to_step(piece.length() + missing(piece, last));
      piece.end = i < most_tries ? std::min(whole_, piece.begin + length) : whole_;
    }
    for (std::int64_t more = cut_.step; piece.length() < whole_ && !suffices(piece); more *= 2) grow(piece, more);
    for (std::size_t i = 0; i < cut_.outputs.size(); ++i) {
      const CutState& output = cut_.outputs[i];
      if (!output.is_cut()) {
        piece.outputs.emplace_back();
        continue;
      }
      const std::int64_t start = piece.begin * output.up / output.down;
      Piece::Share share{in_output(i, first), in_output(i, last), 0};
      share.skip = share.first - start;
      piece.outputs.push_back(share);
    }
    return piece;
  }

  // By how many places of the size the piece ends too early for its outputs.
  std::int64_t missing(const Piece& piece, std::int64_t last) {
    std::int64_t most = 0;
    for (std::size_t i = 0; i < cut_.outputs.size(); ++i) {
      const CutState& output = cut_.outputs[i];
      if (!output.is_cut()) continue;
      const std::int64_t start = piece.begin * output.up / output.down;
      const std::int64_t right = start + at(size_of(i), piece.length()).value_or(0) - output.high;
      const std::int64_t less = in_output(i, last) - right;
      if (less > 0) most = std::max(most, ceil_div(less * output.down, output.up));
    }
    return most;
  }

  // Whether the program takes the piece, and every size of it is what the cut relies on.
  bool suffices(const Piece& piece) {
    bindings_[cut_.symbol] = piece.length();
    for (const DimCheck& check : engine_.checks) {
      const auto left = check.left.evaluate(bindings_);
      const auto right = check.right.evaluate(bindings_);
      if (left.has_value() && right.has_value() && !holds(check.relation, *left, *right)) return false;
    }
    return std::all_of(cut_.needs.begin(), cut_.needs.end(), [&](const CutNeed& need) {
      const auto size = at(need.size, piece.length());
      if (!size.has_value() || *size < need.least) return false;
      if (need.up == 0) return true;
      // Compared with the whole where the piece ends with it, else with a longer piece of whole steps.
      const std::int64_t steps = piece.end == whole_ ? piece.begin / need.down : most_steps;
      const auto longer = at(need.size, piece.length() + steps * need.down);
      return longer.has_value() && *longer - *size == steps * need.up;
    });
  }

  void grow(Piece& piece, std::int64_t more) const {
    if (piece.end < whole_) {
      piece.end = std::min(whole_, piece.end + more);
    } else {
      piece.begin = std::max<std::int64_t>(0, piece.begin - more);
    }
  }

  static constexpr std::int64_t most_steps = 4096;
  static constexpr int most_tries = 64;

  const Engine& engine_;
  const EngineCut& cut_;
  DimBindings bindings_;
  const std::int64_t whole_;
  std::int64_t own_ = 1;
  std::vector<std::int64_t> sizes_;  // of the whole outputs
};

}  // namespace

Result<std::vector<Piece>> pieces_of(const Engine& engine, const EngineCut& cut, const DimBindings& bindings,
                                     std::int64_t own) {
  return PieceMaker(engine, cut, bindings, own).make();
}

}  // namespace polyphase

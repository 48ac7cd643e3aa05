// What rules of cutting share, and those of whole families.
#include "ops/cut.h"

#include <algorithm>
#include <map>

namespace polyphase {

bool CutContext::any_cut(std::size_t from) const {
  for (std::size_t i = from; i < operands_.size(); ++i) {
    if (has_operand(i) && state(i).is_cut()) return true;
  }
  return false;
}

bool CutContext::varies(const Dim& dim) const {
  std::map<std::string, DimRange, std::less<>> symbols;
  dim.collect_symbols(symbols);
  return symbols.find(symbol_) != symbols.end();
}

std::optional<std::int64_t> CutContext::in_piece(const Dim& dim) const {
  DimBindings bindings;
  bindings.emplace(symbol_, length_);
  return dim.evaluate(bindings);
}

std::optional<std::pair<std::int64_t, std::int64_t>> CutContext::slope(const Dim& dim) const {
  DimBindings bindings;
  bindings.emplace(symbol_, 2 * length_);
  const auto twice = dim.evaluate(bindings);
  const auto once = in_piece(dim);
  if (!once.has_value() || !twice.has_value() || *twice <= *once) return std::nullopt;
  const std::int64_t common = std::gcd(*twice - *once, length_);
  return std::pair{(*twice - *once) / common, length_ / common};
}

void CutContext::align(const CutState& at, std::int64_t count) const {
  // step * up / down must be a multiple of count.
  if (demands_.step > most_step || count > most_step || at.down > most_step) {
    demands_.step = most_step + 1;  // further ones would leave int64
    return;
  }
  const std::int64_t unit = at.down * count / std::gcd(at.up, at.down * count);
  demands_.step = std::lcm(demands_.step, std::min(unit, most_step + 1));
}

void CutContext::need(const Dim& size, std::int64_t least) const { demands_.needs.push_back({size, least, 0, 1}); }

CutState scaled(CutState state, std::int64_t times, std::int64_t parts) {
  state.up *= times;
  state.down *= parts;
  const std::int64_t common = std::gcd(state.up, state.down);
  state.up /= common;
  state.down /= common;
  return state;
}

std::string axis_words(const CutState& state) { return "axis " + std::to_string(state.axis); }

namespace {

// Operands that meet place by place: their axes, counted in the result, and their places must agree.
std::string join(CutState& result, const CutState& more) {
  if (!result.is_cut()) {
    result = more;
    return {};
  }
  if (result.axis != more.axis) return "brings together operands that lie in pieces along different axes";
  if (result.up != more.up || result.down != more.down)
    return "brings together operands with different numbers of places per piece";
  result.low = std::max(result.low, more.low);
  result.high = std::max(result.high, more.high);
  return {};
}

}  // namespace

CutAnswer cut_elementwise(const CutContext& context) {
  CutState result;
  const int rank = context.result().shape.rank();
  for (std::size_t i = 0; i < context.operand_count(); ++i) {
    if (!context.has_operand(i) || !context.state(i).is_cut()) continue;
    CutState aligned = context.state(i);
    aligned.axis += rank - context.operand(i).shape.rank();
    const std::string conflict = join(result, aligned);
    if (!conflict.empty()) return conflict;
  }
  for (std::size_t i = 0; i < context.operand_count(); ++i) {
    if (!context.has_operand(i) || context.state(i).is_cut()) continue;
    const Shape& shape = context.operand(i).shape;
    const int axis = result.axis - (rank - shape.rank());
    if (axis >= 0 && !(shape[axis] == 1))
      return "has an operand of its own values for every place along " + axis_words(result) + ", of shape " +
             shape.text();
  }
  return result;
}

CutAnswer cut_batch_only(const CutContext& context) {
  const CutState& x = context.state(0);
  if (context.any_cut(1)) return "takes parameters that lie in pieces";
  if (x.axis == 0) return x;
  return "takes its mean and variance over the whole of " + axis_words(x);
}

CutAnswer cut_beside_axis(const CutContext& context) {
  const CutState& x = context.state(0);
  const Attribute& given = context.attributes().values().find("axis")->second;
  std::int64_t axis = 0;
  if (const auto* number = std::get_if<std::int64_t>(&given); number != nullptr) {
    axis = *number;
  } else {
    const Dim& dim = std::get<Dim>(given);
    if (!dim.is_constant()) return "works along an axis that only the sizes tell";
    axis = dim.value();
  }
  if (axis < 0) axis += context.operand(0).shape.rank();
  if (axis == x.axis) return "needs the whole of " + axis_words(x) + " for every element";
  return x;
}

CutAnswer cut_reduction(const CutContext& context) {
  CutState x = context.state(0);
  const auto& attributes = context.attributes().values();
  std::vector<std::int64_t> axes;
  if (const auto several = attributes.find("axes"); several != attributes.end()) {
    axes = std::get<std::vector<std::int64_t>>(several->second);
  } else {
    axes = {context.attributes().get<std::int64_t>("axis")};
  }
  if (std::find(axes.begin(), axes.end(), x.axis) != axes.end())
    return "reduces the whole of " + axis_words(x) + " to one value";
  if (context.attributes().get<bool>("keep")) return x;
  x.axis -= static_cast<int>(std::count_if(axes.begin(), axes.end(), [&](std::int64_t axis) { return axis < x.axis; }));
  return x;
}

CutAnswer cut_concat(const CutContext& context) {
  CutState result;
  for (std::size_t i = 0; i < context.operand_count(); ++i) {
    if (!context.state(i).is_cut()) continue;
    const std::string conflict = join(result, context.state(i));
    if (!conflict.empty()) return conflict;
  }
  if (context.attributes().get<std::int64_t>("axis") == result.axis)
    return "puts operands behind one another along " + axis_words(result);
  for (std::size_t i = 0; i < context.operand_count(); ++i) {
    if (!context.state(i).is_cut())
      return "has an operand of its own values for every place along " + axis_words(result) + ", of shape " +
             context.operand(i).shape.text();
  }
  return result;
}

}  // namespace polyphase

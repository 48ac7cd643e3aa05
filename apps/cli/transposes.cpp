// Who gives and who takes what a transpose moves.
#include "cli/transposes.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/terminal.h"

namespace polyphase::cli {
namespace {

class Finder {
 public:
  explicit Finder(const api::EngineInfo& engine) : engine_(engine) {}

  std::vector<Transpose> run() const {
    std::vector<Transpose> out;
    for (std::size_t i = 0; i < engine_.steps.size(); ++i) {
      const api::StepInfo& step = engine_.steps[i];
      const bool moves = step.kind == "copy" || step.operation == "identity" || step.operation == "transpose";
      if (!moves || step.inputs.empty() || step.outputs.empty() || step.inputs.front() < 0) continue;
      const api::ValueInfo& from = value(step.inputs.front());
      const api::ValueInfo& to = value(step.outputs.front());
      if (step.operation != "transpose" && from.layout == to.layout) continue;  // into another place, in the same order
      out.push_back({i, axes_text(from.layout), axes_text(to.layout), why(step)});
    }
    return out;
  }

 private:
  const api::ValueInfo& value(int index) const { return engine_.values[static_cast<std::size_t>(index)]; }

  // The value that owns the memory.
  int root(int index) const {
    while (value(index).alias_of >= 0 && value(index).alias_of != index) index = value(index).alias_of;
    return index;
  }

  static std::string called(const api::StepInfo& step) {
    return fmt::format("'{}' ({})", plain(step.node), step.operation.empty() ? step.kind : step.operation);
  }

  bool touches(const std::vector<int>& values, int wanted) const {
    return std::any_of(values.begin(), values.end(), [&](int index) { return index >= 0 && root(index) == wanted; });
  }

  std::string giver(int index) const {
    for (const api::StepInfo& step : engine_.steps) {
      if (touches(step.outputs, root(index))) return called(step);
    }
    return value(root(index)).storage == "constant" ? "a constant" : "the caller";
  }

  std::string taker(int index) const {
    for (const api::StepInfo& step : engine_.steps) {
      if (touches(step.inputs, root(index))) return called(step);
    }
    return "the caller";
  }

  std::string why(const api::StepInfo& step) const {
    const int from = step.inputs.front();
    const int to = step.outputs.front();
    if (step.operation == "transpose")
      return fmt::format("{} gives what {} takes with its axes in another order", giver(from), taker(to));
    return fmt::format("{} gives {}, {} takes {}", giver(from), axes_text(value(from).layout), taker(to),
                       axes_text(value(to).layout));
  }

  const api::EngineInfo& engine_;
};

}  // namespace

std::string axes_text(const std::string& layout) {
  std::vector<std::string> axes;
  for (std::size_t at = 0; at < layout.size(); at += 2) axes.push_back(layout.substr(at, 1));
  if (std::is_sorted(axes.begin(), axes.end())) return "row-major";
  std::rotate(axes.begin() + 1, axes.end() - 1, axes.end());
  return std::is_sorted(axes.begin(), axes.end()) ? "channels-last" : layout;
}

std::vector<Transpose> transposes_of(const api::EngineInfo& engine) { return Finder(engine).run(); }

}  // namespace polyphase::cli

// One operator alone: cut out of its model, compiled, run, and held against the interpreter.
//
//   model   … ── a ──┐                     cut   a (input) ──┐
//           w ───────┴─ conv_transpose ─ …       w ──────────┴─ conv_transpose ─ output
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "api/compat.h"
#include "api/report.h"
#include "lower/lower.h"
#include "passes/pipeline.h"

namespace polyphase::api {
namespace {

using Symbols = std::map<std::string, DimRange, std::less<>>;

bool is_known_size(const polyphase::Value& value) {
  return value.contents.has_value() && value.type.dtype == DType::i64 && value.type.shape.rank() <= 1;
}

// What the node itself says about sizes, its operands' shapes aside. Attributes of branches and loops name only sizes
// that are born there.
Symbols symbols_of(const Node& node) {
  Symbols out;
  for (const Part& part : node.parts()) {
    if (node.regions().empty()) part.attributes.collect_symbols(out);
  }
  for (const polyphase::Value* input : node.inputs()) {
    if (input == nullptr || !is_known_size(*input)) continue;
    for (const Dim& dim : *input->contents) dim.collect_symbols(out);
  }
  return out;
}

// How the sizes of the operands are written in the cut.
class SizeNames {
 public:
  enum class Way { numbers, own_symbols, fresh_symbols };

  SizeNames(const NodeUse& use, bool open) {
    const Symbols inner = symbols_of(*use.node);
    Symbols bound;
    bool any = false;
    for (std::size_t i = 0; i < use.operands.size(); ++i) {
      const polyphase::Value* input = use.node->inputs()[i];
      if (input == nullptr || use.constant[i] || is_known_size(*input)) continue;
      for (const Dim& dim : input->type.shape) {
        any = any || !dim.is_constant();
        if (dim.is_symbol()) dim.collect_symbols(bound);
      }
    }
    if (!open || !any) return;
    const bool all_bound =
        std::all_of(inner.begin(), inner.end(), [&](const auto& symbol) { return bound.count(symbol.first) != 0; });
    if (inner.empty() && use.node->regions().empty()) {
      way_ = Way::fresh_symbols;
    } else if (all_bound) {
      way_ = Way::own_symbols;
    }
  }

  Way way() const { return way_; }
  Shape shape(const polyphase::Value& value, const polyphase::Tensor& tensor) {
    if (way_ == Way::numbers) return Shape::from_sizes(tensor.sizes());
    if (way_ == Way::own_symbols) return value.type.shape;
    Shape out;
    for (const Dim& dim : value.type.shape) {
      if (dim.is_constant()) {
        out.push_back(dim);
        continue;
      }
      const auto found = names_.emplace(dim.text(), "size_" + std::to_string(names_.size())).first;
      const DimRange range = dim.range();
      out.push_back(Dim::symbol(found->second, {std::max<std::int64_t>(0, range.low), range.high}));
    }
    return out;
  }

 private:
  Way way_ = Way::numbers;
  std::map<std::string, std::string> names_;
};

class NodeCutter {
 public:
  NodeCutter(const NodeUse& use, const Registry& registry, bool open) : use_(use), names_(use, open) {
    cut_.graph = std::make_unique<Graph>(registry);
    cut_.open = names_.way() != SizeNames::Way::numbers;
  }

  Result<CutNode> run() {
    const Node& node = *use_.node;
    std::vector<polyphase::Value*> inputs;
    for (std::size_t i = 0; i < node.inputs().size(); ++i) {
      TRY(inputs.emplace_back(), operand(i));
    }
    std::vector<Part> parts = node.parts();
    if (names_.way() == SizeNames::Way::numbers && node.regions().empty()) {
      for (Part& part : parts) {
        auto attributes = part.attributes.evaluate(*use_.bindings);
        if (!attributes.has_value())
          return Error{ErrorCode::unsupported, "a size of the operator follows from data that was not seen.",
                       "Give sizes with --sizes."};
        part.attributes = std::move(*attributes);
      }
    }
    std::vector<std::unique_ptr<Graph>> regions;
    for (const auto& region : node.regions()) regions.push_back(clone(*region));
    TRY(const Node* const twin, cut_.graph->add_parts(std::move(parts), node.anchor(), std::move(inputs), node.name(),
                                                      nullptr, std::move(regions)));
    for (std::size_t i = 0; i < twin->outputs().size(); ++i)
      cut_.graph->add_output(twin->output(i), "output_" + std::to_string(i));
    return std::move(cut_);
  }

 private:
  Result<polyphase::Value*> operand(std::size_t i) {
    const polyphase::Value* value = use_.node->inputs()[i];
    if (value == nullptr) return nullptr;
    if (const auto known = twins_.find(value); known != twins_.end()) return known->second;
    polyphase::Value* twin = nullptr;
    if (is_known_size(*value)) {
      TRY(twin, known_sizes(*value));
    } else if (use_.constant[i]) {
      twin = cut_.graph->add_constant(use_.operands[i]);
    } else {
      twin = cut_.graph->add_input("operand_" + std::to_string(i),
                                   {value->type.dtype, names_.shape(*value, use_.operands[i])});
      cut_.inputs.push_back(i);
    }
    twins_[value] = twin;
    return twin;
  }

  Result<polyphase::Value*> known_sizes(const polyphase::Value& value) {
    std::vector<Dim> sizes = *value.contents;
    for (Dim& size : sizes) {
      if (names_.way() == SizeNames::Way::own_symbols) continue;
      const auto number = size.evaluate(*use_.bindings);
      if (!number.has_value())
        return Error{ErrorCode::unsupported, "a size that the operator reads follows from data that was not seen.",
                     "Give sizes with --sizes."};
      size = Dim(*number);
    }
    return cut_.graph->must_add("dims", Attributes({{"values", sizes}, {"scalar", value.type.shape.rank() == 0}}), {});
  }

  const NodeUse& use_;
  SizeNames names_;
  CutNode cut_;
  std::unordered_map<const polyphase::Value*, polyphase::Value*> twins_;
};

// The kernels of the steps that compute.
std::string kernels_of(const Report& report) {
  std::vector<std::string> names;
  for (const StepReport& step : report.steps) {
    if (step.row.empty()) continue;
    const std::string name = step.reference ? "reference loops" : step.row;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "view" : out;
}

struct Judge {
  const CompatOptions& options;
  CompatCase& result;

  void end(CompatOutcome outcome, std::string reason) const {
    result.outcome = outcome;
    result.reason = std::move(reason);
  }

  void compare(const std::vector<polyphase::Tensor>& found, const std::vector<polyphase::Tensor>& expected) const {
    const auto empty = [](const polyphase::Tensor& tensor) { return tensor.view().empty(); };
    if (std::all_of(expected.begin(), expected.end(), empty))
      return end(CompatOutcome::not_run, "its results have no elements with these inputs.");
    end(CompatOutcome::right, "");
    for (std::size_t i = 0; i < found.size(); ++i) {
      LayerResult layer;
      const DType dtype = expected[i].dtype();
      const double allowed = is_float(dtype) ? options.tolerance.value_or(compat_tolerance(dtype)) : 0;
      compare_values(found[i].view(), expected[i].view(), allowed, layer);
      result.tolerance = std::max(result.tolerance, allowed);
      result.error = std::max(result.error, layer.relative_rms);
      if (!layer.past_tolerance) continue;
      std::string said = layer.mismatch;
      if (said.empty() && layer.found_nan + layer.found_infinite != layer.expected_nan + layer.expected_infinite)
        said = "infinities or NaN are not where the reference has them";
      if (said.empty()) said = "the numbers differ from the reference's, by up to " + number(layer.largest_absolute);
      end(CompatOutcome::wrong, "result " + std::to_string(i) + ": " + said + ".");
      return;
    }
  }

  static std::string number(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g", value);
    return text.data();
  }
};

std::string words_of(const Error& error) { return error.message; }

}  // namespace

double compat_tolerance(DType dtype) {
  if (!is_float(dtype)) return 0;
  switch (dtype) {
    case DType::f64:
      return 1e-11;
    case DType::f32:
      return 1e-5;
    case DType::f16:
      return std::ldexp(1.0, -10);
    case DType::bf16:
      return std::ldexp(1.0, -7);
    default:  // float8: two or three bits
      return std::ldexp(1.0, -2);
  }
}

Result<CutNode> cut_node(const NodeUse& use, const Registry& registry, bool open) {
  return NodeCutter(use, registry, open).run();
}

struct Trial::Built {
  CutNode cut;
  std::shared_ptr<polyphase::Session> session;
  std::optional<Error> refusal;  // of the compiler
};

// Graphs whose sizes cannot stay open are built again with numbers.
Result<void> Trial::prepare(const NodeUse& use) {
  if (open_ != nullptr && open_->cut.open) return {};
  for (const bool open : {true, false}) {
    auto cut = cut_node(use, workshop_->registry(), open);
    if (!cut.ok() && open) continue;
    if (!cut.ok()) return std::move(cut).error();
    auto built = std::make_shared<Built>();
    built->cut = *std::move(cut);
    TRY(const Target target, target_of(compile_, *workshop_));
    const std::unique_ptr<Graph> graph = clone(*built->cut.graph);
    const auto compile = [&]() -> Result<void> {
      TRY_VOID(run_passes(*graph, target, pass_options_of({})));
      TRY(polyphase::Engine engine, lower(*graph, target));
      TRY(built->session, make_session(Access::engine(workshop_, std::move(engine)), options_.session, false));
      return {};
    };
    if (auto done = compile(); !done.ok()) {
      if (open && built->cut.open && done.error().code != ErrorCode::out_of_memory) continue;
      built->refusal = std::move(done).error();
    }
    open_ = std::move(built);
    return {};
  }
  return {};
}

void Trial::run(const NodeUse& use, CompatCase& result) {
  const Judge judge{options_, result};
  for (const polyphase::Tensor& operand : use.operands)
    result.operands.push_back(operand.valid() ? operand.sizes() : std::vector<std::int64_t>());
  if (auto done = prepare(use); !done.ok()) return judge.end(CompatOutcome::not_run, words_of(done.error()));
  const Built& built = *open_;
  if (built.refusal.has_value()) {
    const bool alone = built.cut.open || use.node->regions().empty();  // symbols of regions may need the rest
    return judge.end(alone ? CompatOutcome::refused : CompatOutcome::not_run,
                     (alone ? "" : "it cannot stand alone: ") + words_of(*built.refusal));
  }
  RunRequest request;
  std::vector<polyphase::Tensor> inputs;
  std::vector<std::vector<std::int64_t>> sizes;
  for (const std::size_t operand : built.cut.inputs) {
    inputs.push_back(use.operands[operand]);
    sizes.push_back(inputs.back().sizes());
    request.inputs.push_back(inputs.back().view());
  }
  double operations = 0;
  if (const auto plan = built.session->plan_for(sizes); plan.ok()) {
    const Report report = report_of(*built.session, {*plan});
    for (const StepReport& step : report.steps) operations += step.flops / 2;
  }
  if (operations > options_.most_operations)
    return judge.end(CompatOutcome::not_run,
                     "its reference would take " + Judge::number(operations) + " multiply-adds, and no more than " +
                         Judge::number(options_.most_operations) + " are allowed; smaller sizes show the same.");
  LevelPlans plans;
  request.plans = &plans;
  const auto found = built.session->run(request);
  if (found.ok()) result.kernel = kernels_of(report_of(*built.session, plans));
  const auto expected = interpret(*built.cut.graph, inputs);
  if (found.ok() && expected.ok()) return judge.compare(*found, *expected);
  if (found.ok())
    return judge.end(CompatOutcome::wrong, "it runs, where the reference refuses: " + words_of(expected.error()));
  if (expected.ok()) return judge.end(CompatOutcome::wrong, "it is refused when it runs: " + words_of(found.error()));
  judge.end(CompatOutcome::not_run,
            "neither it nor the reference takes what flows there: " + words_of(expected.error()));
}

}  // namespace polyphase::api

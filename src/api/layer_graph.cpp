// The tensors of a model that a plan does not hold, computed from those that it does.
//
//   imported    x ── conv ── t ── relu ── y ── …        the run showed x and y
//   cut         x ── conv ── t (output)                  y is an input here, for whoever reads it
//
// A norm that went into a convolution's weights is turned round, where that loses nothing, instead of computing the
// convolution a second time:
//
//   imported    x ── conv ── t ── batch_norm ── y ── …  the run showed x and y
//   cut         y ── mul ── add ── t (output)            t = (y - bias) / s + mean,  s = scale / sqrt(variance + eps)
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>

#include "api/layers.h"
#include "base/shape_binding.h"
#include "lower/lower.h"
#include "passes/pipeline.h"
#include "passes/rewrite.h"
#include "runtime/session.h"

namespace polyphase::api {
namespace {

// Roundings of a norm's result grow by no more than this when the norm is turned round.
constexpr double most_growth = 8;

class Cutter {
 public:
  Cutter(const Graph& imported, const Captures& captures, Graph& cut)
      : imported_(imported), captures_(captures), cut_(cut) {}

  void run(std::span<const polyphase::Tensor> inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const polyphase::Value* input = imported_.inputs()[i].get();
      learn(input->type.shape, inputs[i].sizes());
      twins_[input] = add_input(input->name, inputs[i]);
    }
    // Sizes that data gave show in the shapes of what the run held.
    learn_all(imported_, "");
    walk(imported_, "");
  }
  // Null: it cannot be computed here.
  polyphase::Value* twin(const polyphase::Value* value) const {
    const auto found = twins_.find(value);
    return found == twins_.end() ? nullptr : found->second;
  }
  const std::vector<polyphase::Tensor>& inputs() const { return inputs_; }
  // Captured values that have the name of a value of the model and are something else.
  const std::vector<Place>& others() const { return others_; }

 private:
  void learn(const Shape& shape, const std::vector<std::int64_t>& sizes) {
    DimBindings tried = bindings_;
    if (!bind_shape(shape, sizes, "", tried).ok()) return;
    solve_shape(shape, sizes, tried);
    bindings_ = std::move(tried);
  }

  void learn_all(const Graph& graph, const Place& prefix) {
    for (const auto& node : graph.nodes()) {
      for (const auto& output : node->outputs()) {
        const auto found = captures_.find(prefix + output->name);
        if (found != captures_.end() && !output->type.shape.is_static())
          learn(output->type.shape, found->second.tensor.sizes());
      }
      for (std::size_t i = 0; i < node->regions().size(); ++i)
        learn_all(*node->regions()[i], prefix + node->name() + "/" + std::to_string(i) + ":");
    }
  }

  // An input as it lies in memory, and its axes put in order: the compiler sees the layout, no run converts it.
  polyphase::Value* add_input(const std::string& name, const polyphase::Tensor& tensor) {
    const polyphase::TensorView& view = tensor.view();
    std::vector<std::int64_t> axes(static_cast<std::size_t>(view.rank));
    std::iota(axes.begin(), axes.end(), 0);
    const auto stride = [&](std::int64_t axis) { return view.strides[static_cast<std::size_t>(axis)]; };
    std::stable_sort(axes.begin(), axes.end(), [&](auto a, auto b) { return stride(a) > stride(b); });
    polyphase::TensorView lying = view;
    std::vector<std::int64_t> order(axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto axis = static_cast<std::size_t>(axes[i]);
      lying.sizes[i] = view.sizes[axis];
      lying.strides[i] = view.strides[axis];
      order[axis] = static_cast<std::int64_t>(i);
    }
    if (view.is_row_major() || !lying.is_row_major()) {
      inputs_.push_back(tensor);
      return cut_.add_input(name, tensor.type());
    }
    inputs_.emplace_back(tensor.buffer(), lying);
    polyphase::Value* input = cut_.add_input(name, inputs_.back().type());
    return cut_.must_add("transpose", Attributes({{"order", order}}), {input});
  }

  // The captured tensor of a value, if it is what the value's type says.
  const polyphase::Tensor* held(const polyphase::Value& value, const Place& prefix) const {
    const auto found = captures_.find(prefix + value.name);
    if (found == captures_.end()) return nullptr;
    const polyphase::Tensor& tensor = found->second.tensor;
    const auto sizes = value.type.shape.evaluate(bindings_);
    const bool same = tensor.dtype() == value.type.dtype && (!sizes.has_value() || *sizes == tensor.sizes());
    return same ? &tensor : nullptr;
  }

  void walk(const Graph& graph, const Place& prefix) {
    for (const auto& node : graph.nodes()) {
      if (!node->regions().empty()) enter_region(*node, prefix);
      bool all_held = true;
      for (const auto& output : node->outputs()) {
        const polyphase::Tensor* tensor = held(*output, prefix);
        if (tensor == nullptr && captures_.count(prefix + output->name) != 0) others_.push_back(prefix + output->name);
        if (tensor != nullptr) twins_[output.get()] = add_input(prefix + output->name, *tensor);
        all_held = all_held && tensor != nullptr;
      }
      if (!all_held && node->regions().empty()) compute(*node);
      if (all_held && node->is("batch_norm")) turn_round(*node);
    }
  }

  // The branch that ran, in place.
  void enter_region(const Node& node, const Place& prefix) {
    if (!node.is("if")) return;
    for (std::size_t i = 0; i < node.regions().size(); ++i) {
      const Place inner = prefix + node.name() + "/" + std::to_string(i) + ":";
      const auto first = captures_.lower_bound(inner);
      if (first == captures_.end() || first->first.compare(0, inner.size(), inner) != 0) continue;
      const Graph& region = *node.regions()[i];
      for (std::size_t k = 0; k < region.inputs().size(); ++k) {
        if (polyphase::Value* value = twin(node.input(k + 1)); value != nullptr)
          twins_[region.inputs()[k].get()] = value;
      }
      walk(region, inner);
      for (std::size_t k = 0; k < node.outputs().size(); ++k) {
        if (polyphase::Value* value = twin(region.outputs()[k]); value != nullptr) twins_[node.output(k)] = value;
      }
    }
  }

  // The operand of a norm from its result, which the run showed.
  void turn_round(const Node& norm) {
    const polyphase::Value* operand = norm.input(0);
    const polyphase::Value* computed = twin(operand);
    const bool worth = computed != nullptr && computed->producer != nullptr &&
                       (computed->producer->anchors("conv") || computed->producer->anchors("conv_transpose"));
    if (!worth || operand->type.dtype != DType::f32) return;
    std::array<std::vector<double>, 4> parameters;  // scale, bias, mean, variance
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const polyphase::Tensor* tensor = constant_of(twin(norm.input(i + 1)));
      if (tensor == nullptr) return;
      parameters[i] = elements_of(*tensor);
    }
    const auto& [scale, bias, mean, variance] = parameters;
    const double epsilon = norm.attributes().get<double>("epsilon");
    std::vector<double> factors;
    std::vector<double> shifts;
    for (std::size_t c = 0; c < scale.size(); ++c) {
      const double deviation = std::sqrt(variance[c] + epsilon);
      const double s = scale[c] / deviation;
      // What a rounding of the result is worth in the operand: both have about these sizes.
      const double growth = std::hypot(bias[c] / s, deviation) / std::hypot(mean[c], deviation);
      if (!(growth <= most_growth)) return;
      factors.push_back(1 / s);
      shifts.push_back(mean[c] - bias[c] / s);
    }
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(operand->type.shape.rank() - 1), 1);
    sizes.front() = static_cast<std::int64_t>(scale.size());
    const auto table = [&](const std::vector<double>& values) {
      return cut_.add_constant(polyphase::Tensor::from_values(DType::f32, sizes, values));
    };
    polyphase::Value* scaled = cut_.must_add("mul", {}, {twin(norm.output()), table(factors)});
    twins_[operand] = cut_.must_add("add", {}, {scaled, table(shifts)});
  }

  void compute(const Node& node) {
    const polyphase::Value* result = node.output();
    if (result->contents.has_value() && result->type.dtype == DType::i64) {
      std::vector<Dim> sizes;
      for (const Dim& dim : *result->contents) {
        const auto size = dim.evaluate(bindings_);
        if (!size.has_value()) break;
        sizes.emplace_back(*size);
      }
      const int rank = result->type.shape.rank();
      if (sizes.size() == result->contents->size() && rank <= 1) {
        twins_[result] = cut_.must_add("dims", Attributes({{"values", sizes}, {"scalar", rank == 0}}), {});
        return;
      }
    }
    std::vector<polyphase::Value*> inputs;
    for (const polyphase::Value* input : node.inputs()) {
      inputs.push_back(input == nullptr ? nullptr : twin(input));
      if (input != nullptr && inputs.back() == nullptr) return;
    }
    if (node.anchors("bind")) {
      twins_[result] = inputs[0];
      return;
    }
    std::vector<Part> parts = node.parts();
    for (Part& part : parts) {
      auto attributes = part.attributes.evaluate(bindings_);
      if (!attributes.has_value()) return;
      part.attributes = std::move(*attributes);
    }
    auto added = cut_.add_parts(std::move(parts), node.anchor(), std::move(inputs), node.name());
    if (!added.ok()) return;
    for (std::size_t i = 0; i < node.outputs().size(); ++i) {
      if (twins_.count(node.output(i)) == 0) twins_[node.output(i)] = (*added)->output(i);
    }
  }

  const Graph& imported_;
  const Captures& captures_;
  Graph& cut_;
  DimBindings bindings_;
  std::unordered_map<const polyphase::Value*, polyphase::Value*> twins_;
  std::vector<polyphase::Tensor> inputs_;
  std::vector<Place> others_;
};

// Values and constants of the graph that depend on an input of it.
void mark_dependent(const Graph& graph, std::unordered_map<const polyphase::Value*, bool>& dependent) {
  for (const auto& node : graph.nodes()) {
    bool any = node->anchors("bind");
    for (const polyphase::Value* input : node->inputs()) any = any || (input != nullptr && dependent[input]);
    for (const auto& region : node->regions()) {
      for (std::size_t k = 0; k < region->inputs().size(); ++k)
        dependent[region->inputs()[k].get()] =
            node->is("loop") || (node->input(k + 1) != nullptr && dependent[node->input(k + 1)]);
      mark_dependent(*region, dependent);
    }
    for (const auto& output : node->outputs()) dependent[output.get()] = any && !output->contents.has_value();
  }
}

void place_all(const Graph& graph, const Place& prefix, std::unordered_map<const polyphase::Value*, Place>& out) {
  for (const auto& input : graph.inputs()) out[input.get()] = prefix + input->name;
  for (const auto& node : graph.nodes()) {
    for (const auto& output : node->outputs()) out[output.get()] = prefix + output->name;
    for (std::size_t i = 0; i < node->regions().size(); ++i)
      place_all(*node->regions()[i], prefix + node->name() + "/" + std::to_string(i) + ":", out);
  }
}

void collect(const Graph& graph, std::map<std::pair<std::string, std::string>, const polyphase::Value*>& out) {
  for (const auto& node : graph.nodes()) {
    for (const auto& region : node->regions()) collect(*region, out);
    for (const auto& output : node->outputs()) out.emplace(std::pair(graph.name, output->name), output.get());
  }
}

}  // namespace

std::unordered_map<const polyphase::Value*, Place> places_of(const Graph& graph) {
  std::unordered_map<const polyphase::Value*, Place> out;
  place_all(graph, "", out);
  return out;
}

std::unordered_map<const polyphase::Value*, bool> dependent_values(const Graph& graph) {
  std::unordered_map<const polyphase::Value*, bool> out;
  for (const auto& input : graph.inputs()) out[input.get()] = true;
  mark_dependent(graph, out);
  return out;
}

std::vector<LogicalTensor> logical_tensors(const ImportedModel& model) {
  std::unordered_map<const polyphase::Value*, bool> dependent = dependent_values(*model.graph);
  std::map<std::pair<std::string, std::string>, const polyphase::Value*> values;
  collect(*model.graph, values);
  const auto places = places_of(*model.graph);
  std::vector<LogicalTensor> out;
  std::set<std::string_view> seen;
  for (const ImportedTensor& tensor : model.tensors) {
    const auto found = values.find(std::pair(tensor.graph, tensor.value));
    if (found == values.end() || !dependent[found->second] || !seen.insert(tensor.name).second) continue;
    out.push_back({tensor.name, places.at(found->second), found->second});
  }
  return out;
}

Result<double> compute_swallowed(const Graph& imported, const std::vector<LogicalTensor>& wanted,
                                 std::span<const polyphase::Tensor> inputs, const CompileOptions& compile,
                                 const LayerOptions& options, Captures& captures) {
  TRY(const auto workshop, workshop_of(compile.plugins));
  TRY(const Target target, target_of(compile, *workshop));
  Graph cut(workshop->registry());
  Cutter cutter(imported, captures, cut);
  cutter.run(inputs);
  for (const Place& place : cutter.others()) captures.erase(place);
  std::vector<Place> places;
  for (const LogicalTensor& tensor : wanted) {
    if (captures.count(tensor.place) != 0) continue;
    polyphase::Value* twin = cutter.twin(tensor.value);
    if (twin == nullptr) continue;
    cut.add_output(twin, std::to_string(places.size()));
    places.push_back(tensor.place);
  }
  if (places.empty()) return 0.0;
  TRY_VOID(run_passes(cut, target));
  TRY(polyphase::Engine engine, lower(cut, target));
  TRY(const Session session, Session::create(Access::engine(workshop, std::move(engine)), options.session));
  RunRequest request;
  for (const polyphase::Tensor& input : cutter.inputs()) request.inputs.push_back(input.view());
  if (options.measure) TRY_VOID(Access::session_of(session).run(request));  // plans
  const auto start = std::chrono::steady_clock::now();
  TRY(const std::vector<polyphase::Tensor> outputs, Access::session_of(session).run(request));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  for (std::size_t i = 0; i < outputs.size(); ++i) captures[places[i]] = {outputs[i], -1, ""};
  return seconds.count();
}

}  // namespace polyphase::api

// What flows through a model on random inputs, and the sizes that it is run at.
#include <algorithm>
#include <random>
#include <set>

#include "api/compat.h"
#include "base/shape_binding.h"
#include "lower/lower.h"
#include "passes/pipeline.h"

namespace polyphase::api {
namespace {

constexpr std::int64_t tries = 64;  // steps from the wished size to one that the model takes

// An open size of the inputs, and about how large it may become in a test.
struct OpenSize {
  DimRange range;
  std::int64_t growth = 64;  // from the least
  bool batch = true;         // it stands on first axes alone
};

std::map<std::string, OpenSize> open_sizes_of(const Graph& graph) {
  std::map<std::string, OpenSize> out;
  for (const auto& input : graph.inputs()) {
    const Shape& shape = input->type.shape;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      std::map<std::string, DimRange, std::less<>> symbols;
      shape[axis].collect_symbols(symbols);
      for (const auto& [name, range] : symbols) {
        OpenSize& size = out[name];
        size.range = range;
        size.batch = size.batch && axis == 0 && shape.rank() > 1;
        if (shape.rank() >= 5) size.growth = 16;
      }
    }
  }
  return out;
}

enum Which { least, middle, odd };

std::int64_t wished(const OpenSize& size, int which, std::int64_t step) {
  const std::int64_t low = std::max<std::int64_t>(1, size.range.low);
  const std::int64_t high = std::max(low, size.range.high);
  const auto within = [&](std::int64_t value) { return std::clamp(value, low, high); };
  if (size.batch) return within(low + which);
  const std::int64_t span = std::min(size.growth, high - low);
  if (which == least) return within(low + step);
  std::int64_t value = low + span / 2;
  if (which == middle) return within(value / 2 * 2 + step);
  value += span / 8 + 2 * step;
  value += value % 2 == 0 ? 1 : 0;
  return value <= high ? within(value) : within(high - (high % 2 == 0 ? 1 : 0));
}

}  // namespace

void learn_sizes(const Shape& shape, const std::vector<std::int64_t>& sizes, DimBindings& bindings) {
  DimBindings tried = bindings;
  if (!bind_shape(shape, sizes, "", tried).ok()) return;
  solve_shape(shape, sizes, tried);
  bindings = std::move(tried);
}

Result<std::vector<Tensor>> random_inputs(std::span<const Port> ports,
                                          const std::vector<std::vector<std::int64_t>>& sizes, std::uint64_t seed) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  std::uniform_real_distribution<float> real(-1.0F, 1.0F);
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const DType dtype = ports[i].dtype;
    TRY(Tensor tensor, Tensor::allocate(dtype, sizes[i]));
    auto* const bytes = static_cast<std::byte*>(tensor.data());
    const std::int64_t count = tensor.element_count();
    for (std::int64_t at = 0; at < count; ++at) {
      const double value = static_cast<double>(real(random));
      std::byte* const element = bytes + at * static_cast<std::int64_t>(size_bytes(dtype));
      if (is_float(dtype)) {
        store_double(element, dtype, value);
      } else {
        store_integer(element, dtype, value < 0 ? 0 : 1);  // a legal index and a legal bool
      }
    }
    out.push_back(std::move(tensor));
  }
  return out;
}

Result<Flow> Flow::create(const Graph& graph, std::vector<const polyphase::Value*> wanted,
                          std::shared_ptr<const Workshop> workshop, const CompileOptions& compile,
                          const CompatOptions& options, std::vector<std::string>& notes) {
  Flow out;
  out.graph_ = &graph;
  out.wanted_ = std::move(wanted);
  out.options_ = &options;
  for (const auto& input : graph.inputs())
    out.ports_.push_back({input->name, input->type.dtype, sizes_text(input->type.shape), -1});
  const std::unique_ptr<Graph> copy = clone(graph);
  std::unordered_map<std::string_view, polyphase::Value*> by_name;
  for (const auto& node : copy->nodes()) {
    for (const auto& output : node->outputs()) by_name[output->name] = output.get();
  }
  out.first_wanted_ = copy->outputs().size();
  for (std::size_t i = 0; i < out.wanted_.size(); ++i)
    copy->add_output(by_name.at(out.wanted_[i]->name), "polyphase_wanted_" + std::to_string(i));
  TRY(const Target target, target_of(compile, *workshop));
  const auto build = [&]() -> Result<void> {
    TRY_VOID(run_passes(*copy, target, pass_options_of(compile)));
    TRY(polyphase::Engine engine, lower(*copy, target));
    TRY(out.session_, make_session(Access::engine(workshop, std::move(engine)), options.session, false));
    return {};
  };
  if (auto built = build(); !built.ok()) {
    if (built.error().code == ErrorCode::invalid_argument || built.error().code == ErrorCode::cancelled)
      return std::move(built).error();
    notes.push_back("The model as a whole cannot be compiled, so the interpreter ran it: " + built.error().message);
  }
  return out;
}

Result<std::vector<std::vector<std::int64_t>>> Flow::input_sizes(const OpenSizes& sizes) const {
  std::vector<std::vector<std::int64_t>> out;
  for (const auto& input : graph_->inputs()) {
    auto known = input->type.shape.evaluate(sizes);
    if (!known.has_value())
      return Error{
          ErrorCode::invalid_argument,
          "the shape of input '" + input->name + "', " + input->type.shape.text() + ", has a size that nobody gave.",
          "Give it with --sizes."};
    out.push_back(*std::move(known));
  }
  return out;
}

Result<void> Flow::fits(const OpenSizes& sizes) const {
  if (session_ == nullptr) return {};
  TRY(const auto numbers, input_sizes(sizes));
  TRY_VOID(session_->plan_for(numbers));
  return {};
}

// Nothing: the model takes no such sizes.
std::optional<OpenSizes> Flow::choose(int which, std::vector<std::string>& notes) const {
  const auto open = open_sizes_of(*graph_);
  std::optional<Error> last;
  for (std::int64_t step = 0; step < tries; ++step) {
    OpenSizes sizes;
    for (const auto& [name, size] : open) sizes[name] = wished(size, which, step);
    auto fitting = fits(sizes);
    if (fitting.ok()) return sizes;
    if (!last.has_value()) last = std::move(fitting).error();
  }
  constexpr const char* words[] = {"least", "middle", "odd"};
  notes.push_back("No " + std::string(words[which]) +
                  " sizes were found that the model takes (--sizes gives some): " + last->message);
  return std::nullopt;
}

Result<std::vector<OpenSizes>> Flow::size_sets(std::vector<std::string>& notes) const {
  const auto open = open_sizes_of(*graph_);
  std::size_t given = 0;
  for (const auto& [name, values] : options_->sizes) {
    if (open.count(name) == 0) {
      std::string known;
      for (const auto& entry : open) known += (known.empty() ? "" : ", ") + entry.first;
      return Error{ErrorCode::invalid_argument,
                   "sizes are given for '" + name + "', which is no open size of the model.",
                   known.empty() ? "All sizes of the model are fixed." : "The open sizes are " + known + "."};
    }
    given = std::max(given, values.size());
  }
  std::vector<OpenSizes> out;
  if (open.empty()) return std::vector<OpenSizes>{{}};
  if (given > 0) {
    for (std::size_t i = 0; i < given; ++i) {
      OpenSizes sizes;
      for (const auto& [name, size] : open) {
        const auto found = options_->sizes.find(name);
        sizes[name] = found == options_->sizes.end() ? wished(size, middle, 0)
                                                     : found->second[std::min(i, found->second.size() - 1)];
      }
      if (auto fitting = fits(sizes); !fitting.ok()) return std::move(fitting).error();
      out.push_back(std::move(sizes));
    }
    return out;
  }
  for (const int which : {least, middle, odd}) {
    const auto sizes = choose(which, notes);
    if (sizes.has_value() && std::find(out.begin(), out.end(), *sizes) == out.end()) out.push_back(*sizes);
  }
  return out;
}

Result<Flow::Seen> Flow::run(const OpenSizes& sizes) const {
  TRY(const auto numbers, input_sizes(sizes));
  Seen seen;
  seen.bindings = sizes;
  TRY(const std::vector<Tensor> made, random_inputs(ports_, numbers, options_->seed));
  std::vector<polyphase::Tensor> inputs;
  RunRequest request;
  for (std::size_t i = 0; i < made.size(); ++i) {
    TRY(const polyphase::TensorView view, inner_view(made[i].view(), "input " + std::to_string(i)));
    TRY(inputs.emplace_back(), polyphase::Tensor::allocate(view.dtype, view.size_span()));
    copy_elements(view, inputs.back().view());
    request.inputs.push_back(inputs.back().view());
    seen.tensors[graph_->inputs()[i].get()] = inputs.back();
  }
  bool complete = false;
  if (session_ != nullptr) {
    const auto ran = session_->run(request);
    complete = ran.ok();
    for (std::size_t i = 0; complete && i < wanted_.size(); ++i) seen.tensors[wanted_[i]] = (*ran)[first_wanted_ + i];
  }
  if (!complete) {  // what comes before a failure is seen
    const std::set<const polyphase::Value*> wanted(wanted_.begin(), wanted_.end());
    const auto done = interpret(*graph_, inputs, [&](const polyphase::Value& value, const polyphase::Tensor& tensor) {
      if (wanted.count(&value) != 0) seen.tensors[&value] = tensor;
    });
    if (!done.ok()) seen.failure = done.error().message;
  }
  for (const auto& [value, tensor] : seen.tensors) learn_sizes(value->type.shape, tensor.sizes(), seen.bindings);
  return seen;
}

}  // namespace polyphase::api

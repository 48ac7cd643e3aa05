// Puts changes of layout at a graph's ends.
#include "import/border_layouts.h"

#include <algorithm>

#include "base/layout_name.h"

namespace polyphase {
namespace {

std::string say(const std::string& kind, const std::string& port) {
  return "the layout given for " + kind + " '" + port + "'";
}

constexpr const char* how =
    "Write NHWC, or NCHW:NHWC where the model itself does not have NCHW: the caller's layout, then the model's.";

// "NCHW" of a tensor that the model does not say more about.
Result<LayoutName> plain_layout(int rank, const std::string& kind, const std::string& port) {
  if (rank >= 3 && rank <= 5) return LayoutName::parse(LayoutName::channels_first(rank - 2));
  return Error{ErrorCode::invalid_argument,
               say(kind, port) + " does not say how the model has its " + std::to_string(rank) +
                   " axes, which are those of no image, sound or volume.",
               "Give both layouts, the caller's and the model's: CN:NC."};
}

struct Both {
  LayoutName callers;
  LayoutName models;
};

Result<Both> layouts_of(const BorderLayout& given, const Shape& shape, const std::string& kind,
                        const std::string& port) {
  auto callers = LayoutName::parse(given.callers);
  if (!callers.ok()) return std::move(callers).error().within("in " + say(kind, port));
  auto models = given.models.empty() ? plain_layout(shape.rank(), kind, port) : LayoutName::parse(given.models);
  if (!models.ok()) return std::move(models).error().within("in " + say(kind, port));
  if (models->is_blocked() || models->rank() != shape.rank() || !callers->names_the_same_axes(*models)) {
    return Error{ErrorCode::invalid_argument,
                 say(kind, port) + " is '" + callers->text() + "' and the model's is '" + models->text() +
                     "'; the tensor has " + std::to_string(shape.rank()) + " axes in the model.",
                 "Both name the same axes, as many as the tensor has; the caller's may be in blocks (NCHW16c). " +
                     std::string(how)};
  }
  return Both{std::move(callers).value(), std::move(models).value()};
}

Error no_such_port(const std::string& kind, const std::string& name, const std::string& known) {
  return Error{ErrorCode::invalid_argument, say(kind, name) + " is of no " + kind + " of the model.",
               "The model's " + kind + "s are: " + known + "."};
}

// The type of a tensor of this type that lies as the caller has it.
Type callers_type(const Type& type, const Both& layouts) {
  Type out{type.dtype, {}};
  for (const char axis : layouts.callers.axes())
    out.shape.push_back(type.shape[static_cast<int>(layouts.models.place_of(axis))]);
  if (!layouts.callers.is_blocked()) return out;
  Dim& blocked = out.shape[static_cast<int>(layouts.callers.blocked_axis())];
  blocked = ceil_div(blocked, Dim(layouts.callers.block()));
  out.shape.push_back(Dim(layouts.callers.block()));
  return out;
}

Result<void> set_input(ImportedModel& model, Value& input, const Both& layouts) {
  Graph& graph = *model.graph;
  const Type inside = input.type;
  const std::vector<Node*> users = input.users;
  input.type = callers_type(inside, layouts);
  input.contents.reset();
  Dim channels = 0;
  if (layouts.callers.is_blocked()) {
    const char axis = layouts.callers.axes()[layouts.callers.blocked_axis()];
    channels = inside.shape[static_cast<int>(layouts.models.place_of(axis))];
  }
  Node* first = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  TRY(Node * change, graph.add("layout_transform",
                               Attributes({{"from_layout", layouts.callers.text()},
                                           {"to_layout", layouts.models.text()},
                                           {"channels", channels}}),
                               {&input}, input.name + ".layout", first));
  for (Node* user : users) {
    for (std::size_t i = 0; i < user->inputs().size(); ++i) {
      if (user->input(i) == &input) graph.set_input(user, i, change->output());
    }
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    if (graph.outputs()[i] == &input) graph.set_output(i, change->output());
  }
  for (ImportedTensor& tensor : model.tensors) {
    if (tensor.graph == graph.name && tensor.value == input.name) tensor.value = change->output()->name;
  }
  return {};
}

Result<void> set_output(Graph& graph, std::size_t i, const Both& layouts) {
  TRY(Node * change,
      graph.add("layout_transform",
                Attributes({{"from_layout", layouts.models.text()}, {"to_layout", layouts.callers.text()}}),
                {graph.outputs()[i]}, graph.output_names()[i] + ".layout"));
  graph.set_output(i, change->output());
  return {};
}

}  // namespace

Result<BorderLayout> read_border_layout(std::string_view text, const std::string& port) {
  const std::size_t colon = text.find(':');
  BorderLayout out{std::string(text.substr(0, colon)),
                   colon == std::string_view::npos ? std::string() : std::string(text.substr(colon + 1))};
  if (!out.callers.empty() && (colon == std::string_view::npos || !out.models.empty())) return out;
  return Error{ErrorCode::invalid_argument, say("tensor", port) + " is '" + std::string(text.substr(0, 60)) + "'.",
               how};
}

Result<std::vector<Dim>> in_models_order(const std::vector<Dim>& sizes, const BorderLayout& layout,
                                         const std::string& input) {
  const auto callers = LayoutName::parse(layout.callers);
  if (callers.ok() && callers->is_blocked()) {
    return Error{ErrorCode::invalid_argument,
                 "sizes are given for input '" + input + "' in the layout '" + callers->text() +
                     "', which do not tell how many channels there are.",
                 "Leave its sizes out, or give ranges and values of its named sizes (--dim H=64)."};
  }
  TRY(const Both both, layouts_of(layout, Shape(sizes), "input", input));
  std::vector<Dim> out;
  for (const char axis : both.models.axes()) out.push_back(sizes[both.callers.place_of(axis)]);
  return out;
}

Result<void> set_border_layouts(ImportedModel& model, const BorderLayouts& inputs, const BorderLayouts& outputs) {
  Graph& graph = *model.graph;
  std::string known;
  for (const auto& input : graph.inputs()) known += (known.empty() ? "" : ", ") + input->name;
  for (const auto& entry : inputs) {
    const auto& [name, layout] = entry;
    const auto found = std::find_if(graph.inputs().begin(), graph.inputs().end(),
                                    [&](const auto& input) { return input->name == entry.first; });
    if (found == graph.inputs().end()) return no_such_port("input", name, known);
    TRY(const Both both, layouts_of(layout, (*found)->type.shape, "input", name));
    TRY_VOID(set_input(model, **found, both));
  }
  known.clear();
  for (const std::string& output : graph.output_names()) known += (known.empty() ? "" : ", ") + output;
  for (const auto& [name, layout] : outputs) {
    const auto found = std::find(graph.output_names().begin(), graph.output_names().end(), name);
    if (found == graph.output_names().end()) return no_such_port("output", name, known);
    const auto i = static_cast<std::size_t>(found - graph.output_names().begin());
    TRY(const Both both, layouts_of(layout, graph.outputs()[i]->type.shape, "output", name));
    TRY_VOID(set_output(graph, i, both));
  }
  return {};
}

}  // namespace polyphase

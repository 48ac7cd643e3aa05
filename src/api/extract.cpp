// extract: a part of a model with its types, and what flows over its borders.
#include "api/layers.h"
#include "import/onnx/import_onnx.h"
#include "wire/cut_model.h"

namespace polyphase::api {
namespace {

// Sizes that are expressions get names of their own: an ONNX file has only numbers and names.
class Borders {
 public:
  explicit Borders(const ImportedModel& model) {
    std::map<std::pair<std::string, std::string>, const polyphase::Value*> values;
    for (const auto& node : model.graph->nodes()) {
      for (const auto& output : node->outputs()) values[{model.graph->name, output->name}] = output.get();
    }
    for (const auto& input : model.graph->inputs()) values_[input->name] = input.get();
    for (const ImportedTensor& tensor : model.tensors) {
      const auto found = values.find({tensor.graph, tensor.value});
      if (found != values.end()) values_[tensor.name] = found->second;
    }
  }

  Result<wire::BorderTensor> border(const std::string& name) {
    const auto found = values_.find(name);
    if (found == values_.end()) {
      return Error{ErrorCode::invalid_argument,
                   "the model's main graph has no tensor '" + name + "', or its type is not known.",
                   "polyphase compare MODEL --layers --all lists the tensors."};
    }
    wire::BorderTensor out{name, found->second->type.dtype, {}};
    for (const Dim& dim : found->second->type.shape) out.sizes.push_back(size_text(dim));
    return out;
  }
  const polyphase::Value* value(const std::string& name) const { return values_.at(name); }

 private:
  std::string size_text(const Dim& dim) {
    const std::string text = dim.text();
    if (dim.is_constant() || dim.is_symbol()) return text;
    return names_.emplace(text, "size_" + std::to_string(names_.size())).first->second;
  }

  std::map<std::string, const polyphase::Value*> values_;
  std::map<std::string, std::string> names_;
};

Result<void> add_data(const ImportedModel& model, const Borders& borders, const ExtractOptions& options,
                      std::span<const TensorView> inputs, Extracted& out) {
  std::vector<polyphase::Tensor> given;
  for (const TensorView& input : inputs) {
    TRY(const polyphase::TensorView view, inner_view(input, "input " + std::to_string(given.size())));
    TRY(given.emplace_back(), polyphase::Tensor::allocate(view.dtype, view.size_span()));
    copy_elements(view, given.back().view());
  }
  std::unordered_map<const polyphase::Value*, polyphase::Tensor> seen;
  for (std::size_t i = 0; i < given.size() && i < model.graph->inputs().size(); ++i)
    seen[model.graph->inputs()[i].get()] = given[i];
  std::set<const polyphase::Value*> wanted;
  for (const auto* names : {&options.from, &options.to}) {
    for (const std::string& name : *names) wanted.insert(borders.value(name));
  }
  TRY_VOID(interpret(*model.graph, given, [&](const polyphase::Value& value, const polyphase::Tensor& tensor) {
    if (wanted.count(&value) != 0) seen[&value] = tensor;
  }));
  for (const std::string& name : options.from) out.inputs[name] = Access::tensor(seen.at(borders.value(name)));
  for (const std::string& name : options.to) out.outputs[name] = Access::tensor(seen.at(borders.value(name)));
  return {};
}

Result<Extracted> extract_part(const std::string& path, const ExtractOptions& options, const CompileOptions& compile) {
  auto workshop = built_in_workshop();
  TRY(ImportOptions import, import_options_of(compile));
  OperatorSurvey survey;
  if (!options.with_data) import.survey = &survey;  // what is missing elsewhere does not matter
  TRY(ImportedModel model, import_onnx(std::filesystem::path(path), workshop->registry(), import));
  Borders borders(model);
  std::vector<wire::BorderTensor> from;
  std::vector<wire::BorderTensor> to;
  for (const std::string& name : options.from) {
    TRY(from.emplace_back(), borders.border(name));
  }
  for (const std::string& name : options.to) {
    TRY(to.emplace_back(), borders.border(name));
  }
  Extracted out;
  wire::ExternalData external(std::filesystem::path(path).parent_path());
  TRY(wire::ModelPointer whole, wire::read_model(path));
  TRY(out.model, wire::cut_model(std::move(whole), from, to, external));
  if (!options.with_data) return out;
  ImportedModel copy;
  copy.graph = clone(*model.graph);
  TRY(const Engine engine, compile_graph(std::move(copy), workshop, compile));
  TRY(const std::vector<Tensor> inputs, options.make_inputs(engine));
  std::vector<TensorView> views;
  for (const Tensor& tensor : inputs) views.push_back(tensor.view());
  TRY_VOID(add_data(model, borders, options, views, out));
  return out;
}

}  // namespace

Result<Extracted> extract(const std::string& path, const ExtractOptions& options, const CompileOptions& compile) {
  if (options.from.empty() || options.to.empty())
    return Error{ErrorCode::invalid_argument, "a part begins at one tensor at least and ends at one.",
                 "Name them with --from and --to."};
  if (options.with_data && !options.make_inputs)
    return Error{ErrorCode::invalid_argument, "with_data needs make_inputs, which gives the model's inputs.",
                 "Set make_inputs."};
  return without_throwing([&] { return extract_part(path, options, compile); });
}

}  // namespace polyphase::api

// Network's public face over the builder.
#include "polyphase/network.h"

#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "api/compile.h"
#include "api/network_attributes.h"
#include "api/state.h"
#include "ops/custom.h"

namespace polyphase::api {

struct AddedParameter {
  std::shared_ptr<const void> key;  // keeps its address its own
  Tensor elements;
  int number = -1;
};

struct NetworkState {
  std::shared_ptr<const Workshop> workshop;
  NetworkBuilder builder;
  std::optional<Error> plugin_error = {};  // why the plugins of the options cannot be used together
  std::map<std::pair<std::string, std::string>, int> weights = {};  // file and name → the constant
  std::map<const void*, AddedParameter> parameters = {};            // by key
  std::set<std::string, std::less<>> parameter_names = {};
};

std::optional<std::int64_t> Size::number() const {
  std::int64_t number = 0;
  const char* end = text_.data() + text_.size();
  const auto [stopped, error] = std::from_chars(text_.data(), end, number);
  if (error == std::errc() && stopped == end) return number;
  const auto parsed = parse_dim(text_);
  return parsed.ok() ? parsed->constant() : std::nullopt;
}

Size Size::normal() const {
  const auto parsed = parse_dim(text_);
  return parsed.ok() ? Size(parsed->text()) : *this;
}

const std::string& NetworkTensor::name() const {
  static const std::string nobody;
  return network_ == nullptr ? nobody : network_->builder.name_of(number_);
}
DType NetworkTensor::dtype() const {
  return network_ == nullptr ? DType::f32 : network_->builder.type_of(number_).dtype;
}
int NetworkTensor::rank() const { return network_ == nullptr ? 0 : network_->builder.type_of(number_).shape.rank(); }
std::vector<Size> NetworkTensor::shape() const {
  std::vector<Size> out;
  if (network_ == nullptr) return out;
  for (const Dim& dim : network_->builder.type_of(number_).shape) out.emplace_back(dim.text());
  return out;
}
Size NetworkTensor::size(int axis) const {
  const int all = rank();
  if (axis < -all || axis >= all) return {};
  return Size(network_->builder.type_of(number_).shape[axis < 0 ? axis + all : axis].text());
}

Operand::Operand(const Result<NetworkTensor>& result) {
  if (result.ok()) {
    value_ = *result;
  } else {
    value_ = result.error();
  }
}

// Handles of callers as numbers of the builder, and back.
struct NetworkBase::Access {
  static Result<GivenOperand> given(const NetworkBase& network, const Operand& operand, std::string_view layer) {
    if (const auto* error = std::get_if<Error>(&operand.value_); error != nullptr) return Error(*error);
    if (const auto* number = std::get_if<bool>(&operand.value_); number != nullptr) return GivenOperand(*number);
    if (const auto* number = std::get_if<std::int64_t>(&operand.value_); number != nullptr)
      return GivenOperand(*number);
    if (const auto* number = std::get_if<double>(&operand.value_); number != nullptr) return GivenOperand(*number);
    const auto* tensor = std::get_if<NetworkTensor>(&operand.value_);
    if (tensor == nullptr) return GivenOperand();
    if (tensor->network_ != network.state_) {
      return Error{ErrorCode::invalid_argument,
                   tensor->network_ == nullptr
                       ? "an operand is a NetworkTensor that no network gave."
                       : "the operand is tensor '" + tensor->name() + "' of another network, '" +
                             tensor->network_->builder.name() + "'.",
                   "Use tensors that add_input, add_constant and layers of this network gave."}
          .at_node(layer);
    }
    return GivenOperand(TensorNumber{tensor->number_});
  }
  static Result<GivenOperands> given(const NetworkBase& network, const std::vector<Operand>& operands,
                                     std::string_view layer) {
    GivenOperands out;
    for (const Operand& operand : operands) {
      TRY(out.emplace_back(), given(network, operand, layer));
    }
    return out;
  }
  static Result<int> tensor_number(const NetworkBase& network, const Operand& operand) {
    TRY(const GivenOperand found, given(network, operand, {}));
    if (const auto* tensor = std::get_if<TensorNumber>(&found); tensor != nullptr) return tensor->number;
    return Error{ErrorCode::invalid_argument, "a number, or nothing, is given where a tensor is needed.",
                 "Give a tensor that add_input, add_constant or a layer of this network gave."};
  }
  static const std::shared_ptr<NetworkState>& state(const NetworkTensor& tensor) { return tensor.network_; }
  static NetworkTensor tensor(const NetworkBase& network, int number) {
    NetworkTensor out;
    out.network_ = network.state_;
    out.number_ = number;
    return out;
  }
  static std::vector<NetworkTensor> tensors(const NetworkBase& network, const TensorNumbers& numbers) {
    std::vector<NetworkTensor> out;
    for (const int number : numbers) out.push_back(tensor(network, number));
    return out;
  }
};

Result<std::vector<NetworkTensor>> NetworkBase::add_layer(std::string_view op, std::vector<Operand> operands,
                                                          AttributeList attributes, std::string_view name) {
  return without_throwing([&]() -> Result<std::vector<NetworkTensor>> {
    const std::string layer(name.empty() ? op : name);
    TRY(const GivenOperands given, Access::given(*this, operands, layer));
    const OpDef* found = state_->workshop->registry().find(op);
    Attributes plain;
    if (found != nullptr) {
      TRY(plain, attributes_of(state_->builder, *found, attributes, layer));
    }
    TRY(const TensorNumbers made, state_->builder.add_layer(op, given, std::move(plain), name));
    return Access::tensors(*this, made);
  });
}

Result<NetworkTensor> NetworkBase::result(const Result<std::vector<NetworkTensor>>& results, std::size_t i) {
  if (!results.ok()) return Error(results.error());
  return results->at(i);
}

Network::Network(const NetworkOptions& options)
    : NetworkLayers([&] {
        auto with_plugins = workshop_of(options.plugins);
        auto workshop = with_plugins.ok() ? *with_plugins : built_in_workshop();
        const Registry& registry = workshop->registry();
        auto state = std::make_shared<NetworkState>(NetworkState{
            std::move(workshop),
            NetworkBuilder(
                registry, {.name = options.name, .strongly_typed = options.strongly_typed, .limits = options.limits})});
        if (!with_plugins.ok()) state->plugin_error = with_plugins.error();
        return state;
      }()) {}

Result<Network> Network::of(const std::vector<Operand>& operands) {
  return without_throwing([&]() -> Result<Network> {
    std::shared_ptr<NetworkState> state;
    for (const Operand& operand : operands) {
      if (operand.error() != nullptr) return Error(*operand.error());
      const auto its = operand.tensor() == nullptr ? nullptr : Access::state(*operand.tensor());
      if (its == nullptr) continue;
      if (state != nullptr && state != its) {
        return Error{
            ErrorCode::invalid_argument,
            "tensors of two networks are given, '" + state->builder.name() + "' and '" + its->builder.name() + "'.",
            "Give tensors of one."};
      }
      state = its;
    }
    if (state != nullptr) return Network(std::move(state));
    return Error{ErrorCode::invalid_argument, "none of the operands is a tensor of a network, so they name none.",
                 "Give a tensor that add_input, add_constant or a layer gave."};
  });
}

Result<std::vector<NetworkTensor>> Network::add_plugin(std::string_view op, std::vector<Operand> operands,
                                                       AttributeList attributes, std::string_view name) {
  if (state_->plugin_error.has_value()) return Error(*state_->plugin_error);
  const OpDef* found = state_->workshop->registry().find(op);
  if (found != nullptr && found->custom != nullptr)
    return add_layer(op, std::move(operands), std::move(attributes), name);
  std::string known;
  for (const auto& [one, definition] : state_->workshop->registry().all()) {
    if (definition->custom != nullptr) known += (known.empty() ? "" : ", ") + one;
  }
  return Error{
      ErrorCode::invalid_argument,
      "no plugin of this network has an operator '" + std::string(op.substr(0, 120)) + "'.",
      known.empty() ? "Give the plugins that it uses in the network's options." : "Its plugins have: " + known + "."}
      .at_node(name.empty() ? op.substr(0, 120) : name);
}

Result<void> Network::set_range(const std::string& size, SizeRange range) {
  return state_->builder.set_range(size, {range.low, range.high});
}

Result<NetworkTensor> Network::add_input(std::string_view name, DType dtype, const std::vector<Size>& sizes) {
  return without_throwing([&]() -> Result<NetworkTensor> {
    std::vector<std::string> texts;
    for (const Size& size : sizes) texts.push_back(size.text());
    TRY(const int made, state_->builder.add_input(name, dtype, texts));
    return Access::tensor(*this, made);
  });
}

namespace {

Result<int> add_elements(NetworkBuilder& builder, const TensorView& view, std::shared_ptr<void> owner,
                         std::string_view name) {
  TRY(ConstantElements elements, elements_of(view, std::move(owner), "constant '" + std::string(name) + "'"));
  return builder.add_constant(std::move(elements.tensor), name, elements.lent);
}

}  // namespace

Result<NetworkTensor> Network::add_constant(const Tensor& tensor, std::string_view name) {
  return without_throwing([&]() -> Result<NetworkTensor> {
    TRY(const int made, add_elements(state_->builder, tensor.view(), api::Access::owner(tensor), name));
    return Access::tensor(*this, made);
  });
}

Result<NetworkTensor> Network::add_constant(const TensorView& view, std::string_view name) {
  return without_throwing([&]() -> Result<NetworkTensor> {
    TRY(const int made, add_elements(state_->builder, view, nullptr, name));
    return Access::tensor(*this, made);
  });
}

Result<NetworkTensor> Network::add_weight(const WeightFile& file, std::string_view name) {
  return without_throwing([&]() -> Result<NetworkTensor> {
    const auto added = state_->weights.find({file.path(), std::string(name)});
    if (added != state_->weights.end()) return Access::tensor(*this, added->second);
    auto tensor = file.tensor(name);
    if (!tensor.ok()) return std::move(tensor).error().at_node(name);
    // Lent, though the tensor keeps the file: an engine shall not.
    TRY(ConstantElements elements, elements_of(tensor->view(), api::Access::owner(*tensor), "the weight"));
    TRY(const int made, state_->builder.add_constant(std::move(elements.tensor), name, true));
    state_->weights.emplace(std::pair(file.path(), std::string(name)), made);
    return Access::tensor(*this, made);
  });
}

Result<NetworkTensor> Network::add_parameter(const std::shared_ptr<const void>& key, const Tensor& elements,
                                             std::optional<DType> dtype, std::string_view name) {
  const auto added = state_->parameters.find(key.get());
  const bool is_known = added != state_->parameters.end();
  if (is_known && added->second.elements.data() == elements.data()) return Access::tensor(*this, added->second.number);
  // Lent, though the tensor keeps its memory: an engine shall not.
  TRY(ConstantElements made, elements_of(elements.view(), api::Access::owner(elements), "the parameter"));
  std::string own = is_known ? "" : std::string(name);  // layers by themselves all have a 'weight'
  for (int again = 2; !own.empty() && state_->parameter_names.count(own) != 0; ++again)
    own = std::string(name) + "." + std::to_string(again);
  TRY(const int number, state_->builder.add_constant(std::move(made.tensor), own, true));
  state_->parameter_names.insert(own);
  NetworkTensor constant = Access::tensor(*this, number);
  if (dtype.has_value() && constant.dtype() != *dtype) {
    TRY(constant, cast(constant, {.to = *dtype}));
  }
  TRY(const int last, Access::tensor_number(*this, constant));
  state_->parameters.insert_or_assign(key.get(), AddedParameter{key, elements, last});
  return constant;
}

namespace {

template <typename Settings>
Result<void> read_settings(NetworkBuilder& builder, const Settings& settings, const std::string& layer,
                           GivenConvolution& out) {
  out.kernel = settings.kernel;
  out.stride = settings.stride;
  out.dilation = settings.dilation;
  out.groups = settings.groups;
  TRY(out.pre_padding, dims_of(builder, settings.pre_padding, layer));
  TRY(out.post_padding, dims_of(builder, settings.post_padding, layer));
  out.mode = static_cast<polyphase::PaddingMode>(settings.padding_mode);
  out.layouts = {.data = settings.data_layout, .kernel = settings.kernel_layout, .result = settings.out_layout};
  return {};
}

}  // namespace

Result<NetworkTensor> Network::add_convolution_nd(const Operand& x, const Operand& weight, const Operand& bias,
                                                  const ConvolutionSettings& settings, std::string_view name) {
  return without_throwing([&]() -> Result<NetworkTensor> {
    const std::string layer(name.empty() ? "conv" : name);
    TRY(const GivenOperands operands, Access::given(*this, std::vector{x, weight, bias}, layer));
    GivenConvolution given;
    TRY_VOID(read_settings(state_->builder, settings, layer, given));
    TRY(const int made, state_->builder.add_convolution(operands, given, name));
    return Access::tensor(*this, made);
  });
}

Result<NetworkTensor> Network::add_deconvolution_nd(const Operand& x, const Operand& weight, const Operand& bias,
                                                    const DeconvolutionSettings& settings, std::string_view name) {
  return without_throwing([&]() -> Result<NetworkTensor> {
    const std::string layer(name.empty() ? "conv_transpose" : name);
    TRY(const GivenOperands operands, Access::given(*this, std::vector{x, weight, bias}, layer));
    GivenDeconvolution given;
    TRY_VOID(read_settings(state_->builder, settings, layer, given));
    TRY(given.output_padding, dims_of(state_->builder, settings.output_padding, layer));
    TRY(given.output_size, dims_of(state_->builder, settings.output_size, layer));
    TRY(const int made, state_->builder.add_deconvolution(operands, given, name));
    return Access::tensor(*this, made);
  });
}

namespace {

Error no_function(const std::string& layer) {
  return Error{ErrorCode::invalid_argument, "a body is given as a function that is empty.",
               "Give a function that writes the body's layers."}
      .at_node(layer);
}

}  // namespace

Result<std::vector<NetworkTensor>> Network::add_if(const Operand& condition, const Branch& then_branch,
                                                   const Branch& else_branch, std::string_view name) {
  return without_throwing([&]() -> Result<std::vector<NetworkTensor>> {
    const std::string layer(name.empty() ? "if" : name);
    TRY(const GivenOperand chooses, Access::given(*this, condition, layer));
    const auto inner = [&](const Branch& branch) -> NetworkBuilder::Branch {
      return [&]() -> Result<GivenOperands> {
        if (!branch) return no_function(layer);
        TRY(const std::vector<Operand> results, branch());
        return Access::given(*this, results, layer);
      };
    };
    TRY(const TensorNumbers made, state_->builder.add_if(chooses, inner(then_branch), inner(else_branch), name));
    return Access::tensors(*this, made);
  });
}

Result<std::vector<NetworkTensor>> Network::add_loop(const Operand& trip_count, const Operand& condition,
                                                     const std::vector<Operand>& carried, const LoopBody& body,
                                                     std::string_view name) {
  return without_throwing([&]() -> Result<std::vector<NetworkTensor>> {
    const std::string layer(name.empty() ? "loop" : name);
    TRY(const GivenOperands ends, Access::given(*this, std::vector{trip_count, condition}, layer));
    TRY(const GivenOperands first, Access::given(*this, carried, layer));
    const auto inner = [&](int iteration, const TensorNumbers& inside) -> Result<polyphase::LoopTurn> {
      if (!body) return no_function(layer);
      TRY(const LoopTurn turn, body(Access::tensor(*this, iteration), Access::tensors(*this, inside)));
      polyphase::LoopTurn out;
      TRY(out.again, Access::given(*this, turn.again, layer));
      TRY(out.carried, Access::given(*this, turn.carried, layer));
      TRY(out.rows, Access::given(*this, turn.rows, layer));
      return out;
    };
    TRY(const TensorNumbers made, state_->builder.add_loop(ends[0], ends[1], first, inner, name));
    return Access::tensors(*this, made);
  });
}

Result<void> Network::set_name(const Operand& tensor, std::string_view name) {
  return without_throwing([&]() -> Result<void> {
    TRY(const int number, Access::tensor_number(*this, tensor));
    return state_->builder.set_name(number, name);
  });
}

Result<void> Network::mark_output(const Operand& tensor, std::string_view name) {
  return without_throwing([&]() -> Result<void> {
    TRY(const int number, Access::tensor_number(*this, tensor));
    return state_->builder.mark_output(number, name);
  });
}

Result<void> Network::with_precision(DType dtype, const std::function<Result<void>()>& write) {
  return without_throwing([&]() -> Result<void> {
    TRY_VOID(push_precision(dtype));
    const struct End {
      Network& network;
      ~End() { network.pop_precision(); }
    } end{*this};
    return write ? write() : no_function({});
  });
}

Result<void> Network::push_precision(DType dtype) {
  return without_throwing([&] { return state_->builder.push_precision(dtype); });
}

void Network::pop_precision() { state_->builder.pop_precision(); }

std::string Network::text() const {
  PrintOptions options;
  options.max_constant_elements = 16;
  return print(state_->builder.graph(), options);
}

std::vector<OperatorInfo> operators() {
  std::vector<OperatorInfo> out;
  const auto workshop = built_in_workshop();
  for (const auto& [name, op] : workshop->registry().all()) {
    OperatorInfo info{.name = name, .doc = op->doc, .bodies = op->region_count};
    for (const OperandSpec& one : op->inputs) info.operands.push_back({one.name, one.doc, one.optional, one.variadic});
    for (const OperandSpec& one : op->outputs) info.results.push_back({one.name, one.doc, one.optional, one.variadic});
    for (const AttributeSpec& spec : op->attributes) {
      OperatorInfo::Attribute attribute{.name = spec.name, .kind = std::string(name_of(spec.kind)), .doc = spec.doc};
      attribute.required = !spec.default_value.has_value();
      if (!attribute.required) attribute.default_text = print_attribute(*spec.default_value);
      attribute.words = spec.words;
      info.attributes.push_back(std::move(attribute));
    }
    out.push_back(std::move(info));
  }
  return out;
}

std::vector<LimitInfo> limits() {
  std::vector<LimitInfo> out;
  for (const TargetLimits& target : target_limits()) {
    for (const TargetLimit& limit : target.limits) {
      out.push_back({std::string(target.target), std::string(target.versions), std::string(limit.name),
                     std::string(limit.op), std::string(limit.rule), std::string(limit.rewrite),
                     std::string(limit.source)});
    }
  }
  return out;
}

// What compile(Network) may see.
struct NetworkCompiler {
  static Result<Engine> compile(const Network& network, const CompileOptions& options) {
    const NetworkState& state = network.state();
    if (state.plugin_error.has_value()) return Error(*state.plugin_error);
    TRY(const ImportOptions import, import_options_of(options));
    TRY(ImportedModel model, state.builder.finish(import));
    return compile_graph(std::move(model), state.workshop, options);
  }
};

Result<Engine> compile(const Network& network, const CompileOptions& options) {
  return without_throwing([&]() -> Result<Engine> {
    if (options.progress) options.progress("import", 0);
    return NetworkCompiler::compile(network, options);
  });
}

}  // namespace polyphase::api

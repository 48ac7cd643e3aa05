// Model sizes meet the caller's: a named size that the caller fixes or renames anywhere is so everywhere.
#include "import/onnx/input_shapes.h"

#include <algorithm>
#include <optional>

#include "import/compose/symbol_name.h"
#include "onnx/onnx.pb.h"
#include "wire/dtype_map.h"
#include "wire/printable.h"

namespace polyphase {

namespace {

Error option_error(std::string message, std::string hint) {
  return Error{ErrorCode::invalid_argument, std::move(message), std::move(hint)};
}

// One axis as the model has it.
struct ModelSize {
  std::optional<std::int64_t> number;
  std::string parameter;  // "" and no number: unnamed
};

struct ModelInput {
  std::string name;
  DType dtype = DType::f32;
  bool has_shape = false;
  std::vector<ModelSize> sizes;
};

Result<ModelSize> model_size(const onnx::TensorShapeProto::Dimension& dimension, const std::string& input,
                             std::vector<std::string>& warnings) {
  ModelSize size;
  if (dimension.has_dim_param()) size.parameter = dimension.dim_param();
  if (!dimension.has_dim_value()) return size;
  if (dimension.dim_value() >= 0) {
    size.number = dimension.dim_value();
  } else if (dimension.dim_value() == -1) {
    warnings.push_back("input '" + wire::printable(input) +
                       "' has the size -1; taken as a size that is known at run time");
  } else {
    return Error{
        ErrorCode::invalid_model,
        "input '" + wire::printable(input) + "' has the negative size " + std::to_string(dimension.dim_value()) + ".",
        "Give its shape: --shape NAME=1x3xHxW."};
  }
  return size;
}

Result<ModelInput> model_input(const onnx::ValueInfoProto& info, std::vector<std::string>& warnings) {
  ModelInput input;
  input.name = info.name();
  const std::string quoted = "input '" + wire::printable(info.name()) + "'";
  if (!info.has_type() || !info.type().has_tensor_type()) {
    const bool other = info.has_type() && info.type().value_case() != onnx::TypeProto::VALUE_NOT_SET;
    return Error{other ? ErrorCode::unsupported : ErrorCode::invalid_model,
                 quoted + (other ? " is not a tensor (a sequence, map, optional or sparse tensor)." : " has no type."),
                 "Export the model so that every input is a tensor with a type."};
  }
  auto dtype = wire::dtype_from_onnx(info.type().tensor_type().elem_type());
  if (!dtype.ok()) {
    dtype.error().message = quoted + ": " + dtype.error().message;
    return std::move(dtype).error();
  }
  input.dtype = *dtype;
  input.has_shape = info.type().tensor_type().has_shape();
  const auto& shape = info.type().tensor_type().shape();
  if (shape.dim_size() > max_rank) {
    return Error{ErrorCode::unsupported,
                 quoted + " has rank " + std::to_string(shape.dim_size()) + "; the highest rank is " +
                     std::to_string(max_rank) + ".",
                 "Export the model with fewer axes."};
  }
  for (const auto& dimension : shape.dim()) {
    TRY(ModelSize size, model_size(dimension, info.name(), warnings));
    input.sizes.push_back(std::move(size));
  }
  return input;
}

class AskedSizes {
 public:
  AskedSizes(const ImportOptions& options, std::set<std::string, std::less<>>& used)
      : options_(options), used_(used), seen_(options.shape_names) {}

  // What the caller's --shape says about the model's named sizes.
  Result<void> adopt(const ModelInput& input) {
    const auto given = options_.shapes.find(input.name);
    if (given == options_.shapes.end()) return {};
    const std::vector<Dim>& sizes = given->second;
    if (input.has_shape && sizes.size() != input.sizes.size()) {
      return option_error("the shape given for input '" + wire::printable(input.name) + "' has " +
                              std::to_string(sizes.size()) + " sizes, but the model's has " +
                              std::to_string(input.sizes.size()) + ".",
                          "Give one size per axis: numbers, or names for sizes that stay open.");
    }
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      std::map<std::string, DimRange, std::less<>> symbols;
      sizes[axis].collect_symbols(symbols);
      for (const auto& [name, range] : symbols) used_.insert(name);
      if (!input.has_shape) continue;
      const ModelSize& model = input.sizes[axis];
      if (model.number.has_value() && sizes[axis] != Dim(*model.number)) {
        return option_error("the shape given for input '" + wire::printable(input.name) + "' has " +
                                sizes[axis].text() + " on axis " + std::to_string(axis) +
                                ", but the model fixes it at " + std::to_string(*model.number) + ".",
                            "Export the model with this axis dynamic (dynamic_axes or dynamic_shapes), or give " +
                                std::to_string(*model.number) + ".");
      }
      if (model.parameter.empty() || model.number.has_value()) continue;
      const auto [found, fresh] = named_.try_emplace(model.parameter, sizes[axis]);
      if (!fresh && !(found->second == sizes[axis])) {
        return option_error("the model's size '" + wire::printable(model.parameter) + "' is given as " +
                                found->second.text() + " and as " + sizes[axis].text() + ".",
                            "It is one size: give one value for it.");
      }
    }
    return {};
  }

  // Names for the model's plain parameters first, so that expressions over them ("2*H") can be read.
  void name_parameters(const std::vector<ModelInput>& inputs) {
    for (const ModelInput& input : inputs) {
      for (const ModelSize& size : input.sizes) {
        if (size.number.has_value() || size.parameter.empty() || !is_plain(size.parameter)) continue;
        if (named_.count(size.parameter) == 0) named_.emplace(size.parameter, symbol(size.parameter));
      }
    }
    for (const ModelInput& input : inputs) {
      for (const ModelSize& size : input.sizes) {
        if (size.number.has_value() || size.parameter.empty() || named_.count(size.parameter) != 0) continue;
        named_.emplace(size.parameter, expression(size.parameter));
      }
    }
  }

  Result<Dim> size_of(const ModelInput& input, std::size_t axis) {
    const auto given = options_.shapes.find(input.name);
    if (given != options_.shapes.end()) return with_ranges(given->second[axis]);
    const ModelSize& model = input.sizes[axis];
    if (model.number.has_value()) return Dim(*model.number);
    if (model.parameter.empty()) return with_ranges(symbol(input.name + "_" + std::to_string(axis)));
    return with_ranges(named_.at(model.parameter));
  }

  // --dim for a name that nothing has.
  Result<void> check_all_used() const {
    for (const auto& [name, range] : options_.dims) {
      if (seen_.count(name) != 0) continue;
      std::string known;
      for (const std::string& one : seen_) known += (known.empty() ? "" : ", ") + one;
      return option_error("no input of the model has a size named '" + wire::printable(name) + "'.",
                          known.empty() ? "All sizes of its inputs are fixed." : "Its open sizes are: " + known + ".");
    }
    return {};
  }

 private:
  static bool is_plain(const std::string& text) {
    return std::all_of(
               text.begin(), text.end(),
               [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }) &&
           std::isdigit(static_cast<unsigned char>(text.front())) == 0;
  }

  Dim symbol(const std::string& wish) { return Dim::symbol(unique_symbol(wish, used_)); }

  // "2*H" with H the name of another input size, or else a size of its own.
  Dim expression(const std::string& text) {
    if (text.size() <= 200) {
      const auto parsed = parse_dim(text);
      std::map<std::string, DimRange, std::less<>> symbols;
      if (parsed.ok()) parsed->collect_symbols(symbols);
      std::map<std::string, Dim, std::less<>> replacements;
      for (const auto& [name, range] : symbols) {
        const auto found = named_.find(name);
        if (found == named_.end()) return symbol(text);
        replacements.emplace(name, found->second);
      }
      if (parsed.ok() && !symbols.empty()) return parsed->substitute(replacements);
    }
    return symbol(text);
  }

  // Puts the caller's ranges and fixed values into a size.
  Result<Dim> with_ranges(const Dim& size) {
    std::map<std::string, DimRange, std::less<>> symbols;
    size.collect_symbols(symbols);
    std::map<std::string, Dim, std::less<>> replacements;
    for (const auto& [name, range] : symbols) {
      seen_.insert(name);
      const auto given = options_.dims.find(name);
      if (given == options_.dims.end()) continue;
      if (given->second.low < 0 || given->second.low > given->second.high) {
        return option_error("the range " + std::to_string(given->second.low) + ".." +
                                std::to_string(given->second.high) + " for the size '" + name +
                                "' is empty or negative.",
                            "Write it as NAME=LOW..HIGH or NAME=NUMBER.");
      }
      replacements.emplace(
          name, given->second.low == given->second.high ? Dim(given->second.low) : Dim::symbol(name, given->second));
    }
    return size.substitute(replacements);
  }

  const ImportOptions& options_;
  std::set<std::string, std::less<>>& used_;
  std::map<std::string, Dim, std::less<>> named_;  // the model's parameter → what it is here
  std::set<std::string, std::less<>> seen_;        // symbols of the inputs
};

}  // namespace

Result<std::vector<Type>> input_types(const std::vector<const onnx::ValueInfoProto*>& inputs,
                                      const ImportOptions& options, std::set<std::string, std::less<>>& used,
                                      std::vector<std::string>& warnings) {
  std::vector<ModelInput> models;
  std::string names;
  for (const onnx::ValueInfoProto* info : inputs) {
    TRY(ModelInput model, model_input(*info, warnings));
    if (models.size() < 20) names += (names.empty() ? "'" : ", '") + wire::printable(model.name) + "'";
    models.push_back(std::move(model));
  }
  for (const auto& [name, sizes] : options.shapes) {
    if (std::none_of(models.begin(), models.end(),
                     [&, &wanted = name](const ModelInput& model) { return model.name == wanted; })) {
      return option_error("the model has no input '" + wire::printable(name) + "' to give a shape to.",
                          "Its inputs are: " + names + ".");
    }
  }
  AskedSizes sizes(options, used);
  for (const ModelInput& model : models) TRY_VOID(sizes.adopt(model));
  sizes.name_parameters(models);
  std::vector<Type> types;
  for (const ModelInput& model : models) {
    const auto given = options.shapes.find(model.name);
    if (!model.has_shape && given == options.shapes.end()) {
      return Error{
          ErrorCode::unsupported, "input '" + wire::printable(model.name) + "' has no shape, not even a rank.",
          "Give one: --shape " + wire::printable(model.name) + "=1x3xHxW, with a name for each size that stays open."};
    }
    Type type{model.dtype, {}};
    const std::size_t rank = given != options.shapes.end() ? given->second.size() : model.sizes.size();
    for (std::size_t axis = 0; axis < rank; ++axis) {
      TRY(Dim size, sizes.size_of(model, axis));
      type.shape.push_back(std::move(size));
    }
    if (type.shape.rank() > max_rank)
      return option_error("the shape given for input '" + wire::printable(model.name) + "' has too many axes.",
                          "The highest rank is 8.");
    types.push_back(std::move(type));
  }
  TRY_VOID(sizes.check_all_used());
  return types;
}

}  // namespace polyphase

// Where values live: roots of aliases, bytes of constants, ports.
#include "runtime/program_parts.h"

#include <algorithm>

namespace polyphase {
namespace {

class Values {
 public:
  explicit Values(Program& program) : program_(program) {}

  Result<void> find() {
    const Engine& e = engine();
    program_.values.resize(e.values.size());
    for (std::size_t i = 0; i < e.values.size(); ++i) {
      const EngineValue& value = e.values[i];
      ProgramValue& place = program_.values[i];
      place.root = static_cast<int>(i);
      if (value.layout.rank() != value.type.shape.rank())
        return damaged_engine("value '" + value.name + "' has a layout of another rank");
      place.strides = value.layout.dense_strides(value.type.shape.dims());
      if (value.storage == Storage::alias) {
        place.root = value.alias.value;
        place.strides = value.alias.strides;
        if (!is_value(place.root) || value_at(place.root).storage == Storage::alias ||
            static_cast<int>(place.strides.size()) != value.type.shape.rank()) {
          return damaged_engine("value '" + value.name + "' is an alias of nothing");
        }
      }
      if (value.storage == Storage::constant) TRY_VOID(find_constant(value, place));
    }
    for (std::size_t i = 0; i < e.values.size(); ++i) {
      if (e.values[i].storage == Storage::alias) TRY_VOID(view_constant(e.values[i], program_.values[i]));
    }
    TRY_VOID(find_ports(e.inputs, Storage::input, "input"));
    return find_ports(e.outputs, Storage::output, "output");
  }

 private:
  const Engine& engine() const { return *program_.engine; }
  bool is_value(int value) const { return value >= 0 && static_cast<std::size_t>(value) < engine().values.size(); }
  const EngineValue& value_at(int value) const { return engine().values[static_cast<std::size_t>(value)]; }
  ProgramValue& place_of(int value) { return program_.values[static_cast<std::size_t>(value)]; }

  Result<void> find_constant(const EngineValue& value, ProgramValue& place) {
    if (!value.type.shape.is_static()) return damaged_engine("constant '" + value.name + "' has no fixed shape");
    const auto sizes = value.type.shape.evaluate({});
    if (!sizes.has_value()) return damaged_engine("constant '" + value.name + "' has no fixed shape");
    const TensorDesc desc(value.type.dtype, *sizes, value.layout);
    place.is_constant = true;
    place.constant = TensorView(desc, nullptr);
    if (value.constant < 0) return {};
    if (static_cast<std::size_t>(value.constant) >= engine().constants.size())
      return damaged_engine("constant '" + value.name + "' has no bytes");
    const EngineConstant& constant = engine().constants[static_cast<std::size_t>(value.constant)];
    if (constant.bytes == nullptr || !constant.format.empty() ||
        constant.bytes->size_bytes() < static_cast<std::size_t>(desc.element_count()) * size_bytes(desc.dtype)) {
      return damaged_engine("constant '" + value.name + "' has too few bytes");
    }
    place.constant.data = constant.bytes->data();
    return {};
  }

  // A view of a constant is a constant too, unless it depends on sizes: then it is placed with them.
  Result<void> view_constant(const EngineValue& value, ProgramValue& place) {
    if (value_at(place.root).storage != Storage::constant) return {};
    const TensorView& root = place_of(place.root).constant;
    const auto sizes = value.type.shape.evaluate({});
    const auto strides = Shape(place.strides).evaluate({});
    const auto offset = value.alias.offset.evaluate({});
    place.is_constant = sizes.has_value() && strides.has_value() && offset.has_value();
    if (!place.is_constant) {
      if (root.data != nullptr && value.type.dtype == root.dtype) return {};
      return damaged_engine("the view '" + value.name + "' looks at a constant of another type or without elements");
    }
    if (root.data == nullptr) return {};
    if (value.type.dtype != root.dtype)
      return damaged_engine("the view '" + value.name + "' of a constant has another type");
    TensorDesc desc = TensorDesc::row_major(value.type.dtype, *sizes);
    std::copy(strides->begin(), strides->end(), desc.strides.begin());
    TRY_VOID(check_window(desc, *offset, root.extent(), value.name));
    place.constant = TensorView(desc, root.data + *offset * static_cast<std::int64_t>(size_bytes(desc.dtype)));
    return {};
  }

  Result<void> find_ports(const std::vector<EnginePort>& ports, Storage storage, const std::string& word) {
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (!is_value(ports[i].value) || value_at(ports[i].value).storage != storage ||
          place_of(ports[i].value).port >= 0 || !value_at(ports[i].value).layout.is_row_major()) {
        return damaged_engine(word + " '" + ports[i].name + "' is no " + word + " value of its own");
      }
      place_of(ports[i].value).port = static_cast<int>(i);
    }
    for (std::size_t i = 0; i < engine().values.size(); ++i) {
      if (engine().values[i].storage == storage && program_.values[i].port < 0) {
        return damaged_engine("value '" + engine().values[i].name + "' is an " + word + " that no caller gives");
      }
    }
    return {};
  }
  Program& program_;
};

}  // namespace

Result<void> resolve_values(Program& program) { return Values(program).find(); }

}  // namespace polyphase

// Values, constants and ports of an engine: every index in range, every alias resolved and inside its base.
#include <algorithm>
#include <set>

#include "engine/check.h"
#include "engine/check_parts.h"

namespace polyphase {
namespace {

using Wide = __int128;

bool in_range(int index, std::size_t count) { return index >= 0 && static_cast<std::size_t>(index) < count; }

// The bytes of a dense tensor of these sizes; nothing if a size is negative or they exceed the address space.
std::optional<std::int64_t> dense_bytes(DType dtype, const std::vector<std::int64_t>& sizes) {
  bool empty = false;
  for (const std::int64_t size : sizes) {
    if (size < 0) return std::nullopt;
    empty = empty || size == 0;
  }
  if (empty) return 0;
  Wide bytes = static_cast<Wide>(size_bytes(dtype));
  for (const std::int64_t size : sizes) {
    bytes *= size;
    if (bytes > INT64_MAX) return std::nullopt;
  }
  return static_cast<std::int64_t>(bytes);
}

Result<void> check_constant(const Engine& engine, const EngineValue& value) {
  if (value.constant == -1) return {};  // its elements are only in packs; the runtime refuses steps that read it raw
  if (!in_range(value.constant, engine.constants.size())) {
    return refuse_engine("value '" + value.name + "' names constant " + std::to_string(value.constant) + " of " +
                         std::to_string(engine.constants.size()) + ".");
  }
  const EngineConstant& constant = engine.constants[static_cast<std::size_t>(value.constant)];
  if (!constant.format.empty()) return refuse_engine("value '" + value.name + "' is a packed constant.");
  const auto sizes = value.type.shape.evaluate({});
  const auto bytes = sizes.has_value() ? dense_bytes(value.type.dtype, *sizes) : std::nullopt;
  if (!bytes.has_value() || constant.bytes->size_bytes() != static_cast<std::size_t>(*bytes)) {
    return refuse_engine("constant '" + value.name + "' of type " + value.type.text() + " has " +
                         std::to_string(constant.bytes->size_bytes()) + " bytes.");
  }
  return {};
}

Result<void> check_alias(const Engine& engine, const EngineValue& value) {
  if (!in_range(value.alias.value, engine.values.size())) {
    return refuse_engine("value '" + value.name + "' lies inside value " + std::to_string(value.alias.value) + " of " +
                         std::to_string(engine.values.size()) + ".");
  }
  const EngineValue& base = engine.values[static_cast<std::size_t>(value.alias.value)];
  if (base.storage == Storage::alias) {
    return refuse_engine("value '" + value.name + "' lies inside '" + base.name + "', which is itself inside another.");
  }
  if (size_bytes(base.type.dtype) != size_bytes(value.type.dtype)) {
    return refuse_engine("value '" + value.name + "' and its base '" + base.name +
                         "' have elements of different size.");
  }
  if (value.alias.strides.size() != static_cast<std::size_t>(value.type.shape.rank())) {
    return refuse_engine("value '" + value.name + "' has " + std::to_string(value.alias.strides.size()) +
                         " strides for " + std::to_string(value.type.shape.rank()) + " axes.");
  }
  return {};
}

const EngineValue& root_of(const Engine& engine, const EngineValue& value) {
  return value.storage == Storage::alias ? engine.values[static_cast<std::size_t>(value.alias.value)] : value;
}

Result<void> check_ports(const Engine& engine, const std::vector<EnginePort>& ports, Storage storage,
                         const char* what) {
  std::set<std::string> names;
  std::set<int> used;
  for (const EnginePort& port : ports) {
    const std::string named = std::string(what) + " '" + port.name + "'";
    if (!in_range(port.value, engine.values.size())) return refuse_engine(named + " names no value.");
    if (port.name.empty() || !names.insert(port.name).second) return refuse_engine(named + " has no name of its own.");
    if (!used.insert(port.value).second) return refuse_engine(named + " shares its value with another.");
    if (root_of(engine, engine.values[static_cast<std::size_t>(port.value)]).storage != storage) {
      return refuse_engine(named + " does not live in the caller's memory.");
    }
  }
  return {};
}

// The elements that an alias may touch, from first to one past the last, as if the base began at 0.
bool lies_inside(std::int64_t base_elements, std::int64_t offset, const std::vector<std::int64_t>& sizes,
                 const std::vector<std::int64_t>& strides) {
  Wide low = offset;
  Wide high = offset;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return true;
    const Wide reach = static_cast<Wide>(sizes[i] - 1) * strides[i];
    (reach < 0 ? low : high) += reach;
    if (low < -static_cast<Wide>(INT64_MAX) || high > INT64_MAX) return false;
  }
  return low >= 0 && high < base_elements;
}

}  // namespace

Error refuse_engine(std::string message) {
  return {ErrorCode::corrupt, "the program contradicts itself: " + std::move(message), "Compile the model again."};
}

std::string name_of_value(const Engine& engine, int value) {
  return "'" + engine.values[static_cast<std::size_t>(value)].name + "'";
}

Result<void> check_values(const Engine& engine) {
  for (const EngineValue& value : engine.values) {
    if (value.type.shape.rank() > max_rank) return refuse_engine("value '" + value.name + "' has more than 8 axes.");
    if (!value.layout.is_set() || value.layout.rank() != value.type.shape.rank()) {
      return refuse_engine("value '" + value.name + "' has no layout of its axes.");
    }
    if (value.storage == Storage::constant) TRY_VOID(check_constant(engine, value));
    if (value.storage == Storage::alias) TRY_VOID(check_alias(engine, value));
  }
  TRY_VOID(check_ports(engine, engine.inputs, Storage::input, "input"));
  TRY_VOID(check_ports(engine, engine.outputs, Storage::output, "output"));
  return check_aliases(engine, {}, true);
}

Result<void> check_aliases(const Engine& engine, const DimBindings& bindings, bool unbound_ok) {
  for (const EngineValue& value : engine.values) {
    const auto sizes = value.type.shape.evaluate(bindings);
    if (!sizes.has_value()) {
      if (unbound_ok) continue;
      return refuse_engine("the sizes of value '" + value.name + "', " + value.type.text() + ", cannot be computed.");
    }
    const auto bytes = dense_bytes(value.type.dtype, *sizes);
    if (!bytes.has_value()) {
      return refuse_engine("value '" + value.name + "' would have the sizes " + Shape::from_sizes(*sizes).text() + ".");
    }
    if (value.storage != Storage::alias) continue;
    const EngineValue& base = engine.values[static_cast<std::size_t>(value.alias.value)];
    const auto base_sizes = base.type.shape.evaluate(bindings);
    const auto base_bytes = base_sizes.has_value() ? dense_bytes(base.type.dtype, *base_sizes) : std::nullopt;
    const auto offset = value.alias.offset.evaluate(bindings);
    const auto strides = Shape(value.alias.strides).evaluate(bindings);
    if (!base_bytes.has_value() || !offset.has_value() || !strides.has_value()) {
      if (unbound_ok && !base_sizes.has_value()) continue;
      if (unbound_ok && (!offset.has_value() || !strides.has_value())) continue;
      return refuse_engine("the place of value '" + value.name + "' inside '" + base.name + "' cannot be computed.");
    }
    const std::int64_t base_elements = *base_bytes / static_cast<std::int64_t>(size_bytes(base.type.dtype));
    if (!lies_inside(base_elements, *offset, *sizes, *strides)) {
      return refuse_engine("value '" + value.name + "' does not lie inside '" + base.name + "'.");
    }
  }
  return {};
}

}  // namespace polyphase

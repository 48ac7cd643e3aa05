// EngineInfo and Report as plain data.
#include "native/arrays.h"
#include "native/module.h"
#include "native/plain_data.h"

namespace nb = nanobind;

namespace polyphase::python {
namespace {

nb::dict plain_part(const api::WeightInfo& weight) {
  return Fields()("names", weight.names)("dtype", numpy_name(weight.dtype))("sizes", weight.sizes)("used", weight.used)(
      "fixed_because", weight.fixed_because);
}

nb::dict plain_part(const api::SizeRange& range) { return Fields()("low", range.low)("high", range.high); }

nb::dict plain_part(const api::ValueInfo& value) {
  return Fields()("name", value.name)("dtype", numpy_name(value.dtype))("shape", shape_of(value.sizes))(
      "layout", value.layout)("storage", value.storage)("alias_of", value.alias_of);
}

nb::dict plain_part(const api::StepInfo& step) {
  return Fields()("kind", step.kind)("node", step.node)("operation", step.operation)("rows", step.rows)(
      "reference", step.reference)("inputs", step.inputs)("outputs", step.outputs)("block", step.block)(
      "blocks", step.blocks)("measured", step.measured);
}

nb::dict plain_part(const api::PluginUse& use) { return Fields()("name", use.name)("version", use.version); }

nb::dict plain_part(const api::ConstantInfo& constant) {
  return Fields()("name", constant.name)("format", constant.format)("size_bytes", constant.size_bytes)(
      "values", constant.values)("steps", constant.steps);
}

nb::dict plain_part(const api::RowReport& row) {
  return Fields()("row", row.row)("refusal", row.refusal)("cost_seconds", row.cost_seconds)("taken", row.taken)(
      "measured", row.measured);
}

nb::dict plain_part(const api::StepReport& step) {
  return Fields()("step", step.step)("row", step.row)("reference", step.reference)("sizes_unknown", step.sizes_unknown)(
      "rows", list_of(step.rows, [](const api::RowReport& row) { return plain_part(row); }))("flops", step.flops)(
      "bytes", step.bytes);
}

nb::dict plain_part(const api::PlacedValue& placed) {
  return Fields()("value", placed.value)("sizes", placed.sizes)("size_bytes", placed.size_bytes)(
      "offset_bytes", placed.offset_bytes)("first_step", placed.first_step)("last_step", placed.last_step)(
      "arena", placed.arena);
}

template <typename T>
nb::list all_of(const std::vector<T>& items) {
  return list_of(items, [](const T& item) { return plain_part(item); });
}

}  // namespace

nb::tuple shape_of(const std::vector<std::string>& sizes) {
  nb::list out;
  for (const std::string& size : sizes) {
    const bool is_number = size.find_first_not_of("0123456789") == std::string::npos && !size.empty();
    const nb::str text(size.data(), size.size());
    out.append(is_number ? nb::object(nb::int_(text)) : nb::object(text));
  }
  return nb::tuple(out);
}

nb::dict plain(const api::Port& port) {
  return Fields()("name", port.name)("dtype", numpy_name(port.dtype))("shape", shape_of(port.sizes));
}

nb::dict plain(const api::EngineInfo& info) {
  nb::dict dims;
  for (const auto& [name, range] : info.dims) dims[nb::str(name.data(), name.size())] = plain_part(range);
  return Fields()("model_name", info.model_name)("producer", info.producer)("cluster", info.cluster)("dims", dims)(
      "values", all_of(info.values))("steps", all_of(info.steps))("constant_bytes", info.constant_bytes)(
      "constants", all_of(info.constants))("remarks", info.remarks)("plugins", all_of(info.plugins))(
      "refittable", info.refittable)("weights", all_of(info.weights));
}

nb::dict plain(const api::Report& report) {
  return Fields()("steps", all_of(report.steps))("placed", all_of(report.placed))(
      "workspaces", all_of(report.workspaces))("arena_bytes", report.arena_bytes)(
      "lower_bound_bytes", report.lower_bound_bytes)("scratch_bytes", report.scratch_bytes)("constant_bytes",
                                                                                            report.constant_bytes);
}

}  // namespace polyphase::python

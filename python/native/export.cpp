// Exports for other engines from Python.
#include "polyphase/export.h"
#include "polyphase/diagnose.h"

#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "native/module.h"
#include "native/plain_data.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace polyphase::python {
namespace {

nb::dict plain_change(const api::ExportedChange& change) {
  return Fields()("node", change.node)("rule", change.rule)("why", change.why)("before", change.before)(
      "after", change.after)("tolerance", change.tolerance);
}

nb::dict plain_export(const api::ExportedModel& exported) {
  const api::ExportReport& report = exported.report;
  return Fields()("target", report.target)("opset", report.opset)("nodes", report.nodes)(
      "rewritten_nodes", report.rewritten_nodes)("changes", list_of(report.changes, plain_change))(
      "whole_model_compared", report.whole_model_compared)("nodes_compared", report.nodes_compared)(
      "runs", report.runs)("notes", report.notes)("external_files", exported.external_files)("seconds", report.seconds);
}

nb::dict plain_target(const api::ExportTargetInfo& target) {
  const auto rule = [](const api::ExportRuleInfo& of) {
    return nb::dict(Fields()("name", of.name)("operation", of.operation)("versions", of.versions)("source", of.source)(
        "doc", of.doc)("rewrites", of.rewrites));
  };
  return Fields()("name", target.name)("title", target.title)("checked", target.checked)("rules",
                                                                                         list_of(target.rules, rule));
}

}  // namespace

void bind_export(nb::module_& module) {
  module.def(
      "export_model",
      [](const nb::bytes& path, const nb::bytes& out, const nb::dict& settings, nb::object progress) {
        const std::string from(path.c_str(), path.size());
        const std::string to(out.c_str(), out.size());
        api::ExportOptions options;
        options.target = nb::cast<std::string>(settings["target"]);
        options.opset = nb::cast<std::int64_t>(settings["opset"]);
        options.without_rules = nb::cast<std::set<std::string>>(settings["without_rules"]);
        return plain_export(
            work_on_model({}, std::move(progress), [&](const api::CompileOptions& with) -> Result<api::ExportedModel> {
              options.progress = with.progress;
              auto exported = api::export_model(from, options);
              if (!exported.ok()) return exported;
              if (auto saved = api::save_exported(*exported, to); !saved.ok()) return std::move(saved).error();
              return exported;
            }));
      },
      "path"_a, "out"_a, "settings"_a, "progress"_a.none(),
      nb::sig("def export_model(path: bytes, out: bytes, settings: dict[str, typing.Any], progress: "
              "collections.abc.Callable[[str, float], object] | None) -> dict[str, typing.Any]"));
  module.def(
      "check_for",
      [](const nb::bytes& path, const std::string& target) {
        const std::string from(path.c_str(), path.size());
        const auto finding = [](const api::ExportFinding& of) {
          return nb::dict(Fields()("node", of.node)("operation", of.operation)("rule", of.rule)("why", of.why)(
              "doc", of.doc)("rewrites", of.rewrites));
        };
        return list_of(
            work_on_model({}, nb::none(), [&](const api::CompileOptions&) { return api::check_for(from, target); }),
            finding);
      },
      "path"_a, "target"_a, nb::sig("def check_for(path: bytes, target: str) -> list[dict[str, typing.Any]]"));
  module.def(
      "split",
      [](const nb::bytes& path, const nb::bytes& folder) {
        const std::string from(path.c_str(), path.size());
        const std::string to(folder.c_str(), folder.size());
        const api::SplitModel split =
            work_on_model({}, nb::none(), [&](const api::CompileOptions&) -> Result<api::SplitModel> {
              auto made = api::split(from);
              if (!made.ok()) return made;
              if (auto saved = api::save_split(*made, to); !saved.ok()) return std::move(saved).error();
              return made;
            });
        return static_cast<std::int64_t>(split.pieces.size());
      },
      "path"_a, "folder"_a, nb::sig("def split(path: bytes, folder: bytes) -> int"));
  module.def(
      "opset_steps",
      [] {
        return list_of(api::opset_steps(), [](const api::OpsetStepInfo& of) {
          return nb::dict(Fields()("operation", of.operation)("version", of.version)("doc", of.doc)("up", of.up)(
              "down", of.down)("tolerance", of.tolerance));
        });
      },
      nb::sig("def opset_steps() -> list[dict[str, typing.Any]]"));
  module.def(
      "export_targets", [] { return list_of(api::export_targets(), plain_target); },
      nb::sig("def export_targets() -> list[dict[str, typing.Any]]"));
}

}  // namespace polyphase::python

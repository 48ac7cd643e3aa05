// export: types from our own importer, rules from the room export, and a comparison of what came out with what went in.
#include "polyphase/export.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "api/compile.h"
#include "api/export_calls.h"
#include "api/export_check.h"
#include "engine/new_file.h"
#include "export/convert_opset.h"
#include "export/legalise.h"
#include "export/opset_step.h"
#include "wire/regular_file.h"

namespace polyphase::api {
namespace {

constexpr std::string_view zip_begin = "PK\x03\x04";

std::string joined_names(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i)
    out += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return out;
}

Result<const legal::ExportTarget*> target_named(const std::string& name) {
  if (const auto* target = legal::find_export_target(name); target != nullptr) return target;
  std::vector<std::string> known;
  for (const auto& target : legal::export_targets()) known.emplace_back(target.name);
  return Error{ErrorCode::invalid_argument, "there is no target '" + name + "' to export for.",
               "Targets are " + joined_names(known) + "."};
}

Result<void> check_rules(const legal::ExportTarget& target, const std::set<std::string>& without) {
  std::vector<std::string> known;
  for (const auto& rule : target.rules) known.emplace_back(rule.name);
  for (const std::string& name : without) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return Error{ErrorCode::invalid_argument, "the target " + std::string(target.name) + " has no rule '" + name + "'.",
                 "Its rules are " + joined_names(known) + "."};
  }
  return {};
}

Result<std::shared_ptr<Buffer>> read_onnx(const std::string& path) {
  TRY(const auto file, wire::RegularFile::open(path));
  TRY(auto bytes, file->read(0, file->size_bytes()));
  const std::string_view begin(reinterpret_cast<const char*>(bytes->data()),
                               std::min(bytes->size_bytes(), zip_begin.size()));
  if (begin != zip_begin) return bytes;
  return Error{ErrorCode::unsupported,
               "'" + path + "' is an archive, such as torch.export writes; only ONNX models can be exported.",
               "Write the module as ONNX first: torch.onnx.export(module, args, 'model.onnx', dynamo=True)."};
}

// A model's bytes and what our importer knows of them.
struct ReadModel {
  std::shared_ptr<Buffer> bytes;
  std::string folder;  // of files beside it
  ImportedModel imported;

  std::span<const std::byte> span() const { return {bytes->data(), bytes->size_bytes()}; }
};

Result<ReadModel> read_with_types(const std::string& path, const Workshop& workshop) {
  ReadModel out;
  TRY(out.bytes, read_onnx(path));
  out.folder = std::filesystem::path(path).parent_path().string();
  if (out.folder.empty()) out.folder = ".";
  CompileOptions import;
  import.external_data_folder = out.folder;
  OperatorSurvey survey;
  TRY(out.imported, import_source(out.span(), import, workshop, &survey));
  return out;
}

Result<std::vector<ExportFinding>> findings_in(const std::string& path, const std::string& name) {
  TRY(const legal::ExportTarget* const target, target_named(name));
  const auto workshop = built_in_workshop();
  TRY(const ReadModel model, read_with_types(path, *workshop));
  TRY(const auto found,
      find_refused_in_calls({model.span(), facts_of(model.imported)}, {target, {}, model.folder}, *workshop));
  std::vector<ExportFinding> out;
  for (const legal::TargetFinding& finding : found)
    out.push_back({finding.node, finding.operation, std::string(finding.rule->name), finding.why,
                   std::string(finding.rule->doc), finding.rule->rewrite != nullptr});
  return out;
}

// In the other opset first, then what the target does not take of that.
Result<legal::Legalised> converted_and_legalised(const ReadModel& model, std::int64_t opset,
                                                 const legal::LegaliseOptions& with, const Workshop& workshop,
                                                 std::vector<std::string>& notes) {
  TRY(legal::Legalised converted, legal::convert_opset(model.span(), facts_of(model.imported), opset, model.folder));
  const std::span<const std::byte> bytes = std::as_bytes(std::span(converted.model));
  CompileOptions import;
  import.external_data_folder = model.folder;
  OperatorSurvey survey;
  auto imported = import_source(bytes, import, workshop, &survey);
  if (!imported.ok()) return std::move(imported).error().within("while reading the model in the other opset");
  TRY(legal::Legalised out, legalise_calls({bytes, facts_of(*imported)}, with, workshop, notes));
  out.nodes = converted.nodes;
  out.changes.insert(out.changes.begin(), converted.changes.begin(), converted.changes.end());
  out.parts.insert(out.parts.begin(), converted.parts.begin(), converted.parts.end());
  return out;
}

Result<ExportedModel> export_file(const std::string& path, const ExportOptions& options) {
  TRY(const legal::ExportTarget* const target, target_named(options.target));
  TRY_VOID(check_rules(*target, options.without_rules));
  const auto tell = [&](std::string_view stage, double done) {
    if (options.progress) options.progress(stage, done);
  };
  tell("import", 0);
  const auto workshop = built_in_workshop();
  TRY(const ReadModel model, read_with_types(path, *workshop));
  ExportedModel out;
  out.folder = model.folder;
  tell("rules", 0.2);
  const legal::LegaliseOptions with{target, {options.without_rules.begin(), options.without_rules.end()}, out.folder};
  const bool other_opset = options.opset != 0 && options.opset != model.imported.opset;
  std::vector<std::string>& notes = out.report.notes;
  TRY(legal::Legalised legalised,
      other_opset ? converted_and_legalised(model, options.opset, with, *workshop, notes)
                  : legalise_calls({model.span(), facts_of(model.imported)}, with, *workshop, notes));
  out.report.target = options.target;
  out.report.opset = other_opset ? options.opset : model.imported.opset;
  out.report.nodes = legalised.nodes;
  out.report.rewritten_nodes = static_cast<std::int64_t>(legalised.parts.size());
  for (legal::ExportChange& change : legalised.changes)
    out.report.changes.push_back({std::move(change.node), std::move(change.rule), std::move(change.why),
                                  std::move(change.before), std::move(change.after), change.tolerance});
  tell("compare", 0.4);
  const ExportComparison comparison{model.span(), model.imported, legalised, out.folder, *workshop, other_opset};
  TRY_VOID(compare_exported(comparison, out.report));
  out.model = std::move(legalised.model);
  out.external_files = std::move(legalised.external_files);
  return out;
}

Result<bool> same_bytes(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code problem;
  if (std::filesystem::equivalent(a, b, problem)) return true;
  if (std::filesystem::file_size(a, problem) != std::filesystem::file_size(b, problem)) return false;
  std::ifstream one(a, std::ios::binary);
  std::ifstream other(b, std::ios::binary);
  std::vector<char> left(1 << 20);
  std::vector<char> right(left.size());
  while (one && other) {
    one.read(left.data(), static_cast<std::streamsize>(left.size()));
    other.read(right.data(), static_cast<std::streamsize>(right.size()));
    if (one.gcount() != other.gcount() || !std::equal(left.begin(), left.begin() + one.gcount(), right.begin()))
      return false;
  }
  return true;
}

Result<void> write_file(const std::string& path, std::span<const std::byte> bytes) {
  TRY(std::string writable, writable_path(path));
  NewFile file(std::move(writable));
  TRY_VOID(file.open());
  TRY_VOID(file.write(bytes));
  return file.publish();
}

// A file of weights, to the same place beside the new model.
Result<void> bring_along(const std::string& from_folder, const std::filesystem::path& to_folder,
                         const std::string& name) {
  std::error_code problem;
  const std::filesystem::path from = std::filesystem::path(from_folder) / name;
  const std::filesystem::path to = to_folder / name;
  if (std::filesystem::exists(to, problem)) {
    TRY(const bool same, same_bytes(from, to));
    if (same) return {};
    return Error{ErrorCode::invalid_argument,
                 "the model keeps weights in '" + name +
                     "', and other bytes lie where that would have to be copied: '" + to.string() + "'.",
                 "Write the model into another folder."};
  }
  TRY(const auto file, wire::RegularFile::open_below(from_folder, name));
  TRY(const auto bytes, file->read(0, file->size_bytes()));
  std::filesystem::create_directories(to.parent_path(), problem);
  return write_file(to.string(), {bytes->data(), bytes->size_bytes()});
}

}  // namespace

Result<ExportedModel> export_model(const std::string& path, const ExportOptions& options) {
  return without_throwing([&]() -> Result<ExportedModel> {
    const auto start = std::chrono::steady_clock::now();
    auto exported = export_file(path, options);
    if (!exported.ok()) return std::move(exported).error().within("while exporting " + path);
    ExportedModel out = *std::move(exported);
    out.report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return out;
  });
}

Result<std::vector<ExportFinding>> check_for(const std::string& path, const std::string& target) {
  return without_throwing([&]() -> Result<std::vector<ExportFinding>> {
    auto found = findings_in(path, target);
    if (!found.ok()) return std::move(found).error().within("while looking at " + path);
    return found;
  });
}

Result<void> save_exported(const ExportedModel& exported, const std::string& path) {
  return without_throwing([&]() -> Result<void> {
    std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (folder.empty()) folder = ".";
    for (const std::string& name : exported.external_files) TRY_VOID(bring_along(exported.folder, folder, name));
    return write_file(path, std::as_bytes(std::span(exported.model)));
  });
}

std::vector<OpsetStepInfo> opset_steps() {
  std::vector<OpsetStepInfo> out;
  for (const legal::OpsetStep& step : legal::opset_steps())
    out.push_back({std::string(step.op_type), step.version, std::string(step.doc), step.up != nullptr,
                   step.down != nullptr, step.tolerance});
  return out;
}

std::vector<ExportTargetInfo> export_targets() {
  std::vector<ExportTargetInfo> out;
  for (const legal::ExportTarget& target : legal::export_targets()) {
    ExportTargetInfo& info = out.emplace_back();
    info.name = target.name;
    info.title = target.title;
    info.checked = target.checked;
    for (const legal::ExportRule& rule : target.rules) {
      const std::string domain = rule.domain.empty() ? "" : std::string(rule.domain) + ".";
      info.rules.push_back({std::string(rule.name), domain + std::string(rule.op_type), std::string(rule.versions),
                            std::string(rule.source), std::string(rule.doc), rule.rewrite != nullptr});
    }
  }
  return out;
}

}  // namespace polyphase::api

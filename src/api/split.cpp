// split: our own import says what is taken; the parts and their manifest go into a folder.
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/compile.h"
#include "engine/new_file.h"
#include "export/split_model.h"
#include "graph/graph.h"
#include "polyphase/diagnose.h"
#include "wire/regular_file.h"

namespace polyphase::api {
namespace {

// Sizes that two imports made up may have one name and mean two things: those get names of their own.
class TypeReader {
 public:
  std::map<std::string, wire::BorderTensor> read(const ImportedModel& model) {
    ++imports_;
    SizeNames names;
    std::map<std::string, DimRange, std::less<>> given;
    for (const auto& input : model.graph->inputs()) {
      for (const Dim& dim : input->type.shape) dim.collect_symbols(given);
    }
    std::map<std::pair<std::string, std::string>, const polyphase::Value*> values;
    for (const auto& node : model.graph->nodes()) {
      for (const auto& output : node->outputs()) values[{model.graph->name, output->name}] = output.get();
    }
    std::map<std::string, wire::BorderTensor> out;
    const auto add = [&](const std::string& name, const Type& type) {
      wire::BorderTensor tensor{name, type.dtype, {}};
      for (const Dim& dim : type.shape) {
        const bool known = dim.is_constant() || (dim.is_symbol() && given.count(dim.symbol_name()) != 0);
        tensor.sizes.push_back(known ? dim.text() : fresh(dim.text(), names));
      }
      out.emplace(name, std::move(tensor));
    };
    for (const auto& input : model.graph->inputs()) add(input->name, input->type);
    for (const ImportedTensor& tensor : model.tensors) {
      const auto found = values.find({tensor.graph, tensor.value});
      if (found != values.end()) add(tensor.name, found->second->type);
    }
    return out;
  }

 private:
  using SizeNames = std::map<std::string, std::string>;

  std::string fresh(const std::string& text, SizeNames& names) const {
    return names.emplace(text, "piece_" + std::to_string(imports_) + "_" + std::to_string(names.size())).first->second;
  }

  int imports_ = 0;
};

legal::PieceFindings findings_of(const ImportedModel& model, const OperatorSurvey& survey, TypeReader& types) {
  legal::PieceFindings out;
  for (const auto& [key, use] : survey.uses()) {
    if (use.is_missing) out.missing.insert(key);
    for (const OperatorProblem& problem : use.problems) out.refused.insert(problem.error.node);
  }
  out.types = types.read(model);
  out.complete = survey.complete();
  return out;
}

Result<SplitModel> split_file(const std::string& path) {
  TRY(const auto file, wire::RegularFile::open(path));
  TRY(const auto bytes, file->read(0, file->size_bytes()));
  const std::filesystem::path at(path);
  const std::string folder = at.parent_path().empty() ? "." : at.parent_path().string();
  const auto workshop = built_in_workshop();
  TypeReader types;
  const legal::LookInto look = [&](const std::string& model) -> Result<legal::PieceFindings> {
    CompileOptions options;
    options.external_data_folder = folder;
    OperatorSurvey survey;
    TRY(const ImportedModel imported, import_source(std::as_bytes(std::span(model)), options, *workshop, &survey));
    return findings_of(imported, survey, types);
  };
  TRY(legal::ModelChain chain, legal::split_model({bytes->data(), bytes->size_bytes()}, folder, look));
  SplitModel out;
  out.source = at.filename().string();
  out.inputs = std::move(chain.inputs);
  out.outputs = std::move(chain.outputs);
  for (legal::ModelPiece& piece : chain.pieces) {
    const std::string name = std::to_string(out.pieces.size()) + (piece.ours ? ".polyphase.onnx" : ".onnxruntime.onnx");
    out.pieces.push_back(
        {name, piece.ours, std::move(piece.model), std::move(piece.inputs), std::move(piece.outputs), piece.nodes});
  }
  return out;
}

std::string manifest_of(const SplitModel& split) {
  nlohmann::ordered_json out = {
      {"polyphase_split", 1}, {"source", split.source}, {"inputs", split.inputs}, {"outputs", split.outputs}};
  out["pieces"] = nlohmann::ordered_json::array();
  for (const SplitPiece& piece : split.pieces) {
    out["pieces"].push_back({{"file", piece.file},
                             {"engine", piece.ours ? "polyphase" : "onnxruntime"},
                             {"inputs", piece.inputs},
                             {"outputs", piece.outputs},
                             {"nodes", piece.nodes}});
  }
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<void> write_whole(const std::filesystem::path& path, const std::string& bytes) {
  TRY(std::string writable, writable_path(path.string()));
  NewFile file(std::move(writable));
  TRY_VOID(file.open());
  TRY_VOID(file.write(std::as_bytes(std::span(bytes))));
  return file.publish();
}

Result<void> fill_folder(const SplitModel& split, const std::filesystem::path& folder) {
  for (const SplitPiece& piece : split.pieces) TRY_VOID(write_whole(folder / piece.file, piece.model));
  return write_whole(folder / "manifest.json", manifest_of(split));
}

}  // namespace

Result<SplitModel> split(const std::string& path) {
  return without_throwing([&]() -> Result<SplitModel> {
    auto made = split_file(path);
    if (!made.ok()) return std::move(made).error().within("while splitting " + path);
    return made;
  });
}

Result<void> save_split(const SplitModel& split, const std::string& folder) {
  return without_throwing([&]() -> Result<void> {
    std::error_code problem;
    std::filesystem::path to(folder);
    if (to.filename().empty()) to = to.parent_path();
    if (std::filesystem::exists(to, problem))
      return Error{ErrorCode::invalid_argument, "'" + folder + "' is there already.",
                   "Name a folder that is not, or remove it."};
    const std::filesystem::path trial = to.string() + ".part-" + std::to_string(getpid());
    std::filesystem::remove_all(trial, problem);
    std::filesystem::create_directories(trial, problem);
    if (problem)
      return Error{ErrorCode::io, "cannot make the folder '" + trial.string() + "': " + problem.message() + ".",
                   "Name a folder in one that can be written."};
    auto filled = fill_folder(split, trial);
    if (filled.ok()) {
      std::filesystem::rename(trial, to, problem);
      if (problem)
        filled = Error{ErrorCode::io, "cannot name the folder '" + folder + "': " + problem.message() + ".",
                       "Name a folder in one that can be written."};
    }
    if (!filled.ok()) std::filesystem::remove_all(trial, problem);
    return filled;
  });
}

}  // namespace polyphase::api

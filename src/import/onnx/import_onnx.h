// import_onnx: an ONNX model, from a file or from bytes, becomes a Graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/dim.h"
#include "base/result.h"
#include "graph/graph.h"
#include "import/onnx/survey.h"
#include "wire/onnx_model.h"

namespace polyphase {

// The opsets of the default domain that the converters are written for.
inline constexpr std::int64_t oldest_onnx_opset = 7;
inline constexpr std::int64_t newest_onnx_opset = 28;
inline constexpr std::int64_t newest_onnx_ir_version = 14;

struct ImportOptions {
  // Symbolic size → the values it may take, both ends included; equal ends fix it.
  std::map<std::string, DimRange, std::less<>> dims = {};
  // Input name → its sizes: constants, or symbols by the caller's own names.
  std::map<std::string, std::vector<Dim>, std::less<>> shapes = {};
  // Names that `shapes` was written with, also those that `dims` has turned into numbers there.
  std::set<std::string, std::less<>> shape_names = {};
  // The most nodes, counted after functions are inlined: a small file can ask for 2^40 of them.
  std::int64_t max_nodes = 4'000'000;
  // If set: filled while importing. What cannot be converted is then noted there and is no Error; the graph holds the
  // rest, and what nobody in it reads is an output.
  OperatorSurvey* survey = nullptr;
};

// A tensor of the model and what it became.
struct ImportedTensor {
  std::string name;   // in the model; inside a function behind the call's name and '/'
  std::string graph;  // Graph::name of the graph that holds the value
  std::string value;  // Value::name there
};

struct ImportedModel {
  std::unique_ptr<Graph> graph;
  std::string name;      // of the model's graph
  std::string producer;  // "pytorch 2.9.0"; empty if the file does not say
  std::int64_t opset = 0;
  std::vector<std::string> warnings;
  std::vector<ImportedTensor> tensors;  // in the order of their definition
  bool complete = true;                 // false: a survey holds what is missing
};

// Errors: io and corrupt (the file), invalid_model (it breaks ONNX's rules), unsupported (we lack something: the
// message lists everything that is missing, not only the first), invalid_argument (options that do not fit the model).
Result<ImportedModel> import_onnx(const std::filesystem::path& path, const Registry& registry,
                                  const ImportOptions& options = {});
// From memory; tensors in files beside the model are looked for in `folder` and refused without one.
Result<ImportedModel> import_onnx(std::span<const std::byte> bytes, const Registry& registry,
                                  const ImportOptions& options = {},
                                  const std::optional<std::filesystem::path>& folder = std::nullopt);
// From a parsed model, which is consumed.
Result<ImportedModel> import_onnx(wire::ModelPointer model, const Registry& registry, const ImportOptions& options = {},
                                  const std::optional<std::filesystem::path>& folder = std::nullopt);

}  // namespace polyphase

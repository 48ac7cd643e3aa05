// Runs ONNX's own node tests: import, verify, interpret, compare. The cases are written by
// tests/python/onnx_node_cases.py.
//
// Every case whose operators the importer has must pass, but for those listed in node_cases_expected.txt with the
// reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "graph/graph.h"
#include "import/onnx/import_onnx.h"
#include "onnx/onnx.pb.h"
#include "wire/onnx_tensor.h"

namespace polyphase {
namespace {

namespace fs = std::filesystem;

Result<Tensor> read_tensor(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  onnx::TensorProto proto;
  if (!proto.ParseFromIstream(&file)) return Error{ErrorCode::corrupt, "cannot parse " + path.string()};
  wire::ExternalData external(std::nullopt);
  return wire::take_tensor(proto, external);
}

Result<std::vector<Tensor>> read_tensors(const fs::path& folder, const std::string& kind) {
  std::vector<Tensor> out;
  for (int i = 0;; ++i) {
    const fs::path path = folder / (kind + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) return out;
    TRY(Tensor tensor, read_tensor(path));
    out.push_back(std::move(tensor));
  }
}

// The tolerance of ONNX's own runner.
std::string difference(const Tensor& found, const Tensor& expected) {
  if (found.dtype() != expected.dtype())
    return "dtype " + std::string(name_of(found.dtype())) + ", expected " + std::string(name_of(expected.dtype()));
  if (found.sizes() != expected.sizes()) return "type " + found.type().text() + ", expected " + expected.type().text();
  const std::size_t width = size_bytes(found.dtype());
  // Narrow floats: two units in the last place, since the expected values were rounded more than once.
  const double rtol = found.dtype() == DType::bf16 ? 1.6e-2 : (found.dtype() == DType::f16 ? 2e-3 : 1e-3);
  for (std::int64_t i = 0; i < found.view().element_count(); ++i) {
    const double a = load_double(found.view().data + static_cast<std::size_t>(i) * width, found.dtype());
    const double b = load_double(expected.view().data + static_cast<std::size_t>(i) * width, expected.dtype());
    if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
    if (!(std::fabs(a - b) <= 1e-7 + rtol * std::fabs(b))) {
      std::ostringstream out;
      out << "element " << i << " is " << a << ", expected " << b;
      return out.str();
    }
  }
  return {};
}

Result<std::string> run_case(const fs::path& folder, const Registry& registry) {
  TRY(const auto inputs, read_tensors(folder, "input"));
  TRY(const auto expected, read_tensors(folder, "output"));
  TRY(const ImportedModel model, import_onnx(folder / "model.onnx", registry));
  auto sound = verify(*model.graph);
  if (!sound.ok()) return "verify: " + sound.error().text();
  if (model.graph->inputs().size() != inputs.size()) return std::string("another number of inputs");
  auto outputs = interpret(*model.graph, inputs);
  if (!outputs.ok()) return "interpret: " + outputs.error().text();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::string what = difference((*outputs)[i], expected[i]);
    if (!what.empty()) return "output " + std::to_string(i) + ": " + what;
  }
  return std::string();
}

// One line of node_cases_expected.txt: KIND PATTERN REASON. KIND refused: an Error is expected; differs: other numbers
// are, for the reason told. The pattern may have * in it.
struct Expectation {
  std::string kind;
  std::string pattern;
  bool used = false;
};

std::vector<Expectation> read_expectations() {
  std::ifstream file(std::string(POLYPHASE_SOURCE_DIR) + "/tests/import/node_cases_expected.txt");
  std::vector<Expectation> out;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    Expectation expectation;
    words >> expectation.kind >> expectation.pattern;
    out.push_back(std::move(expectation));
  }
  return out;
}

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() != '*')
    return !name.empty() && pattern.front() == name.front() && matches(pattern.substr(1), name.substr(1));
  return matches(pattern.substr(1), name) || (!name.empty() && matches(pattern, name.substr(1)));
}

bool take_expectation(std::vector<Expectation>& list, const std::string& kind, const std::string& name) {
  bool found = false;
  for (Expectation& expectation : list) {
    if (expectation.kind == kind && matches(expectation.pattern, name)) found = expectation.used = true;
  }
  return found;
}

// Not ours yet, and said so: an operator that we lack, or elements of a type that we do not store.
bool is_lacking(const Error& error) {
  return error.message.find("that Polyphase does not have") != std::string::npos ||
         (error.code == ErrorCode::unsupported && error.message.find("lements of type ") != std::string::npos);
}

TEST(NodeCases, AllPass) {
  const char* root = std::getenv("POLYPHASE_NODE_CASES");
  ASSERT_NE(root, nullptr) << "POLYPHASE_NODE_CASES must name the folder that onnx_node_cases.py wrote";
  const Registry registry = Registry::built_in();
  std::vector<Expectation> expected = read_expectations();
  std::map<std::string, int> counts;
  for (const char* form : {"inputs", "initializers"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(root) / form)) {
      const std::string name = std::string(form) + "/" + entry.path().filename().string();
      const auto outcome = run_case(entry.path(), registry);
      if (outcome.ok() && outcome->empty()) {
        ++counts["passed"];
      } else if (!outcome.ok() && is_lacking(outcome.error())) {
        ++counts["lacking"];
        if (std::getenv("POLYPHASE_VERBOSE") != nullptr) std::cout << name << ": " << outcome.error().text() << "\n";
      } else {
        const std::string kind = outcome.ok() && outcome->starts_with("output ") ? "differs" : "refused";
        ++counts[kind];
        EXPECT_TRUE(take_expectation(expected, kind, name))
            << kind << " " << name << ": " << (outcome.ok() ? *outcome : outcome.error().text());
      }
    }
  }
  for (const Expectation& expectation : expected)
    EXPECT_TRUE(expectation.used) << expectation.pattern << " is listed, but nothing like it happened";
  for (const auto& [what, count] : counts) std::cout << what << ": " << count << "\n";
  EXPECT_GE(counts["passed"], 2100);
}

}  // namespace
}  // namespace polyphase

// Reading ONNX's node tests, judging what came out.
#include "import/node_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "onnx/onnx.pb.h"
#include "wire/onnx_tensor.h"

namespace polyphase::test {
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

Result<NodeCase> read_case(const fs::path& folder) {
  NodeCase out;
  out.model = folder / "model.onnx";
  TRY(out.inputs, read_tensors(folder, "input"));
  TRY(out.outputs, read_tensors(folder, "output"));
  return out;
}

// Empty: it passed.
Result<std::string> outcome_of(const fs::path& folder, const RunNodeCase& run) {
  TRY(const NodeCase node_case, read_case(folder));
  TRY(const std::vector<Tensor> outputs, run(node_case));
  if (outputs.size() != node_case.outputs.size()) return std::to_string(outputs.size()) + " outputs";
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string what = difference(outputs[i], node_case.outputs[i]);
    if (!what.empty()) return "output " + std::to_string(i) + ": " + what;
  }
  return std::string();
}

// One line of node_cases_expected.txt: KIND PATTERN REASON. KIND refused: an Error is expected; differs: other numbers
// are, for the reason told; WAY:refused, WAY:differs: of one way alone. The pattern may have * in it.
struct Expectation {
  std::string kind;
  std::string pattern;
  bool used = false;
};

std::vector<Expectation> read_expectations(const std::string& way) {
  std::ifstream file(std::string(POLYPHASE_SOURCE_DIR) + "/tests/import/node_cases_expected.txt");
  std::vector<Expectation> out;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    Expectation expectation;
    words >> expectation.kind >> expectation.pattern;
    if (const std::size_t colon = expectation.kind.find(':'); colon != std::string::npos) {
      if (expectation.kind.substr(0, colon) != way) continue;
      expectation.kind.erase(0, colon + 1);
    }
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

}  // namespace

std::map<std::string, int> check_node_cases(const std::string& way, const RunNodeCase& run, Quarter quarter) {
  std::map<std::string, int> counts;
  const char* root = std::getenv("POLYPHASE_NODE_CASES");
  EXPECT_NE(root, nullptr) << "POLYPHASE_NODE_CASES must name the folder that onnx_node_cases.py wrote";
  if (root == nullptr) return counts;
  std::vector<Expectation> expected = read_expectations(way);
  for (const char* form : {"inputs", "initializers"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(root) / form)) {
      const std::string name = std::string(form) + "/" + entry.path().filename().string();
      if (quarter != Quarter::all && 1 + std::hash<std::string>()(name) % 4 != static_cast<std::size_t>(quarter))
        continue;
      const auto outcome = outcome_of(entry.path(), run);
      if (outcome.ok() && outcome->empty()) {
        ++counts["passed"];
        if (name.find("/test_convtranspose") != std::string::npos) ++counts["convtranspose"];
      } else if (!outcome.ok() && is_lacking(outcome.error())) {
        ++counts["lacking"];
      } else {
        const std::string kind = outcome.ok() ? "differs" : "refused";
        ++counts[kind];
        EXPECT_TRUE(take_expectation(expected, kind, name))
            << kind << " " << name << ": " << (outcome.ok() ? *outcome : outcome.error().text());
      }
    }
  }
  for (const Expectation& expectation : expected) {
    if (quarter != Quarter::all) break;
    EXPECT_TRUE(expectation.used) << expectation.pattern << " is listed, but nothing like it happened";
  }
  for (const auto& [what, count] : counts) std::cout << what << ": " << count << "\n";
  return counts;
}

}  // namespace polyphase::test

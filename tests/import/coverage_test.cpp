// The table of converters against ONNX's own list: no operator that ONNX does not define, and every version of each.
//
// tests/import/onnx_operators.txt is written by tests/python/onnx_operators.py: a line per operator with its versions.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "import/onnx/converter.h"
#include "import/onnx/import_onnx.h"

namespace polyphase {
namespace {

TEST(Coverage, TheTableFollowsOnnx) {
  std::ifstream file(std::string(POLYPHASE_SOURCE_DIR) + "/tests/import/onnx_operators.txt");
  ASSERT_TRUE(file.good());
  std::map<std::string, std::vector<int>> defined;
  std::int64_t newest = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "#" || name.empty()) continue;
    if (name == "opset") {
      words >> newest;
      continue;
    }
    for (int version = 0; words >> version;) defined[name].push_back(version);
  }
  EXPECT_EQ(newest, newest_onnx_opset) << "onnx has another newest opset: look at what it changes, then follow";
  const ConverterTable table;
  int count = 0;
  for (const auto& [key, converter] : table.all()) {
    const auto& [domain, op_type] = key;
    EXPECT_LE(converter.min_inputs, converter.max_inputs) << op_type;
    if (!domain.empty()) continue;
    if (op_type == "SimplifiedLayerNormalization") continue;  // ONNX Runtime writes it in ONNX's domain
    ++count;
    const auto found = defined.find(std::string(op_type));
    ASSERT_NE(found, defined.end()) << "ONNX defines no operator " << op_type;
    EXPECT_EQ(converter.versions, found->second) << op_type;
  }
  EXPECT_GE(count, 120);
}

}  // namespace
}  // namespace polyphase

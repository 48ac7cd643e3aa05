// Hostile and broken models: each is refused with its whole message, soon, or is legal and imports.
// tests/python/hostile_models.py writes them.
//
// POLYPHASE_RECORD=FILE writes what is answered now, as the JSON that the script reads; look at it before you keep it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "graph/graph.h"
#include "import/onnx/import_onnx.h"

namespace polyphase {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

TEST(HostileModels, EachHasItsMessage) {
  const char* root = std::getenv("POLYPHASE_HOSTILE_MODELS");
  ASSERT_NE(root, nullptr) << "POLYPHASE_HOSTILE_MODELS must name the folder that hostile_models.py wrote";
  const Registry registry = Registry::built_in();
  std::map<std::string, std::string> answers;
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    const auto start = std::chrono::steady_clock::now();
    const auto model = import_onnx(entry.path() / "model.onnx", registry);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::string answer;
    if (!model.ok()) {
      Error error = model.error();
      ASSERT_FALSE(error.trail.empty());
      error.trail.pop_back();  // "while reading PATH"
      answer = error.text();
      EXPECT_LT(answer.size(), 4000U) << name;
    } else if (model->graph->nodes().size() < 1000) {
      const auto sound = verify(*model->graph);
      EXPECT_TRUE(sound.ok()) << name << ": " << sound.error().text();
    }
    EXPECT_EQ(answer, read_text(entry.path() / "expected.txt")) << name;
    EXPECT_LT(seconds.count(), 60) << name;
    answers[name] = answer;
  }
  EXPECT_GE(answers.size(), 100U);
  if (const char* record = std::getenv("POLYPHASE_RECORD"); record != nullptr)
    std::ofstream(record) << nlohmann::json(answers).dump(1) << "\n";
}

}  // namespace
}  // namespace polyphase

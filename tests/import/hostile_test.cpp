// Hostile and broken models: each is refused with its whole message, within 1 s and 64 MiB + twice its file, or is
// legal and imports. tests/python/hostile_models.py writes them.
//
// POLYPHASE_RECORD=FILE writes what is answered now, as the JSON that the script reads; look at it before you keep it.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "graph/graph.h"
#include "import/onnx/import_onnx.h"
#include "suite_size.h"

namespace polyphase {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

struct Answer {
  std::string text = {};     // the refusal; empty: the model is legal
  std::string unsound = {};  // what the verifier says of the graph of a legal one
  double seconds = 0;
  double peak_bytes = 0;  // of a process of its own, above one that does nothing
};

Answer examine(const fs::path& path, const Registry& registry) {
  Answer answer;
  const auto start = std::chrono::steady_clock::now();
  const auto model = import_onnx(path, registry);
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!model.ok()) {
    Error error = model.error();
    if (error.trail.empty()) return {.text = "no trail: " + error.text()};
    error.trail.pop_back();  // "while reading PATH"
    answer.text = error.text();
  } else if (model->graph->nodes().size() < 1000) {
    const auto sound = verify(*model->graph);
    if (!sound.ok()) answer.unsound = sound.error().text();
  }
  return answer;
}

// In a child process, so that its peak of memory can be read.
Answer examine_apart(const std::function<Answer()>& work) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Answer answer = work();
    const std::string bytes = nlohmann::json{answer.text, answer.unsound, answer.seconds}.dump();
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t written = write(ends[1], bytes.data() + done, bytes.size() - done);
      if (written <= 0) _exit(1);
      done += static_cast<std::size_t>(written);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string bytes;
  char part[4096];
  for (ssize_t count = 0; (count = read(ends[0], part, sizeof(part))) > 0;)
    bytes.append(part, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  rusage usage{};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return {.text = "the process died"};
  const auto read_back = nlohmann::json::parse(bytes);
  return {read_back[0], read_back[1], read_back[2], static_cast<double>(usage.ru_maxrss) * 1024};
}

constexpr std::uintmax_t slice_bytes = 8 << 20;

TEST(HostileModels, EachHasItsMessage) {
  const char* root = std::getenv("POLYPHASE_HOSTILE_MODELS");
  ASSERT_NE(root, nullptr) << "POLYPHASE_HOSTILE_MODELS must name the folder that hostile_models.py wrote";
  const Registry registry = Registry::built_in();
  const double idle_bytes = examine_apart([] { return Answer{}; }).peak_bytes;
  std::map<std::string, std::string> answers;
  int transposed = 0;
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    const fs::path path = entry.path() / "model.onnx";
    if (test::sliced() && fs::file_size(path) > slice_bytes) continue;  // a million nodes take minutes
    const auto work = [&] { return examine(path, registry); };
    const Answer answer = POLYPHASE_SANITIZED ? work() : examine_apart(work);
    EXPECT_EQ(answer.unsound, "") << name;
    EXPECT_EQ(answer.text, read_text(entry.path() / "expected.txt")) << name;
    EXPECT_LT(answer.text.size(), 4000U) << name;
    // How much slower a sanitizer is than the machine is no fact about us; what would hang, the runner's limit ends.
    if (!POLYPHASE_SANITIZED) {
      EXPECT_LT(answer.seconds, answer.text.empty() ? 60 : 1) << name;
    }
    if (!POLYPHASE_SANITIZED && !answer.text.empty()) {
      EXPECT_LT(answer.peak_bytes - idle_bytes, 64.0 * 1024 * 1024 + 2 * static_cast<double>(fs::file_size(path)))
          << name;
    }
    transposed += name.rfind("deconv_", 0) == 0 && !answer.text.empty() ? 1 : 0;
    answers[name] = answer.text;
  }
  EXPECT_GE(answers.size(), 250U);
  EXPECT_GE(transposed, 60);
  if (const char* record = std::getenv("POLYPHASE_RECORD"); record != nullptr)
    std::ofstream(record) << nlohmann::json(answers).dump(1) << "\n";
}

}  // namespace
}  // namespace polyphase

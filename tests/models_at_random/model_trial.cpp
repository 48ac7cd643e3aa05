// model_trial FILE: imports each ONNX model of FILE, applies every pass alone and the whole pipeline, compiles it, runs
// it, and compares each with what the interpreter makes of the graph as imported. tests/python/random_models writes
// FILE:
//
//   { u32 length of the heading | heading, a line of text | u32 length of the model | model } …
//   heading:  SEED TOLERANCE,TOLERANCE,…  SIZES SIZES …      one tolerance per output (0: exact), one SIZES per run
//   SIZES:    1x3x5,scalar,2x2                              one entry per input
//
// Prints a line per model: "SEED ok", or "SEED STAGE: what is wrong". model_trial --operators prints what the importer
// knows.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "backends/cpu/catalogue.h"
#include "import/onnx/converter.h"
#include "import/onnx/import_onnx.h"
#include "passes/pipeline.h"
#include "passes/random_data.h"
#include "polyphase/polyphase.h"

namespace polyphase {
namespace {

using Sizes = std::vector<std::vector<std::int64_t>>;

struct Trial {
  std::uint64_t seed = 0;
  std::vector<double> tolerances;
  std::vector<Sizes> runs;
  std::string model;
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) out.push_back(part);
  return out;
}

bool read_piece(std::istream& file, std::string& piece) {
  std::uint32_t length = 0;
  if (!file.read(reinterpret_cast<char*>(&length), sizeof(length))) return false;
  piece.resize(length);
  return static_cast<bool>(file.read(piece.data(), length));
}

bool read_trial(std::istream& file, Trial& trial) {
  std::string heading;
  if (!read_piece(file, heading) || !read_piece(file, trial.model)) return false;
  std::istringstream words(heading);
  std::string tolerances;
  words >> trial.seed >> tolerances;
  trial.tolerances.clear();
  for (const std::string& word : split(tolerances, ',')) trial.tolerances.push_back(std::stod(word));
  trial.runs.clear();
  for (std::string run; words >> run;) {
    Sizes sizes;
    for (const std::string& input : split(run, ',')) {
      sizes.emplace_back();
      if (input == "scalar") continue;
      for (const std::string& size : split(input, 'x')) sizes.back().push_back(std::stoll(size));
    }
    trial.runs.push_back(std::move(sizes));
  }
  return true;
}

std::string compare(const std::vector<Tensor>& expected, const std::vector<Tensor>& found, const Trial& trial) {
  if (expected.size() != found.size()) return "another number of results";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::string wrong = difference({expected[i]}, {found[i]}, trial.tolerances[i]);
    if (!wrong.empty()) return "output " + std::to_string(i) + ": " + wrong;
  }
  return {};
}

struct Run {
  std::vector<Tensor> inputs;
  std::vector<Tensor> expected;
};

std::string try_graph(const Graph& graph, const std::vector<Run>& runs, const Trial& trial) {
  const auto sound = verify(graph);
  if (!sound.ok()) return sound.error().text();
  for (const Run& run : runs) {
    const auto found = interpret(graph, run.inputs);
    if (!found.ok()) return found.error().text();
    const std::string wrong = compare(run.expected, *found, trial);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

api::TensorView outer_view(const Tensor& tensor) {
  const TensorView& view = tensor.view();
  return {view.dtype, {view.size_span().begin(), view.size_span().end()}, {}, view.data};
}

std::string try_engine(const Trial& trial, const std::vector<Run>& runs, const std::string& target, int threads) {
  const std::span<const std::byte> bytes{reinterpret_cast<const std::byte*>(trial.model.data()), trial.model.size()};
  api::CompileOptions options;
  options.target = target;
  const auto engine = api::compile_bytes(bytes, "random", options);
  if (!engine.ok()) return engine.error().text();
  const auto session = api::Session::create(*engine, {.threads = threads, .memory_limit_bytes = 0});
  if (!session.ok()) return session.error().text();
  for (const Run& run : runs) {
    std::vector<api::TensorView> inputs;
    for (const Tensor& input : run.inputs) inputs.push_back(outer_view(input));
    const auto outputs = session->run(inputs);
    if (!outputs.ok()) return outputs.error().text();
    std::vector<Tensor> found;
    for (const api::Tensor& output : *outputs) {
      const auto* data = static_cast<const std::byte*>(output.data());
      const auto owner = std::make_shared<api::Tensor>(output);
      found.emplace_back(
          Buffer::borrow(owner, data, output.size_bytes()),
          TensorView{TensorDesc::row_major(output.dtype(), output.sizes()), const_cast<std::byte*>(data)});
    }
    const std::string wrong = compare(run.expected, found, trial);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

// "ok", or the stage and what is wrong.
std::string judge(const Trial& trial, const Registry& registry, const Target& target) {
  const std::span<const std::byte> bytes{reinterpret_cast<const std::byte*>(trial.model.data()), trial.model.size()};
  const auto model = import_onnx(bytes, registry);
  if (!model.ok()) return "import: " + model.error().text();
  const Graph& graph = *model->graph;
  const auto sound = verify(graph);
  if (!sound.ok()) return "verify: " + sound.error().text();
  Random random(trial.seed);
  std::vector<Run> runs;
  for (const Sizes& sizes : trial.runs) {
    Run run;
    if (sizes.size() != graph.inputs().size()) return "import: another number of inputs";
    for (std::size_t i = 0; i < sizes.size(); ++i)
      run.inputs.push_back(random_tensor(graph.inputs()[i]->type.dtype, sizes[i], random));
    auto expected = interpret(graph, run.inputs);
    if (!expected.ok()) return "interpret: " + expected.error().text();
    run.expected = std::move(expected).value();
    runs.push_back(std::move(run));
  }
  for (const Pass& pass : pass_table()) {
    const auto copy = clone(graph);
    if (!pass.run(*copy, target)) continue;
    const std::string wrong = try_graph(*copy, runs, trial);
    if (!wrong.empty()) return "pass " + std::string(pass.name) + ": " + wrong;
  }
  const auto copy = clone(graph);
  const auto done = run_passes(*copy, target);
  if (!done.ok()) return "passes: " + done.error().text();
  std::string wrong = try_graph(*copy, runs, trial);
  if (!wrong.empty()) return "passes: " + wrong;
  for (const char* cluster : {"native", "scalar"}) {
    wrong = try_engine(trial, runs, cluster, cluster[0] == 'n' ? 2 : 1);
    if (!wrong.empty()) return std::string("engine ") + cluster + ": " + wrong;
  }
  return "ok";
}

void print_operators() {
  const ConverterTable table;
  for (const auto& [key, converter] : table.all()) {
    std::cout << key.first << (key.first.empty() ? "" : ".") << key.second << "\n";
  }
  for (const char* structural : {"If", "Loop", "Scan", "ConcatFromSequence", "Optional", "OptionalGetElement",
                                 "OptionalHasElement", "SequenceAt", "SequenceConstruct", "SequenceEmpty",
                                 "SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence"})
    std::cout << structural << "\n";
}

}  // namespace
}  // namespace polyphase

int main(int count, char** arguments) {
  using namespace polyphase;
  if (count == 2 && std::string_view(arguments[1]) == "--operators") {
    print_operators();
    return 0;
  }
  std::ifstream file(count == 2 ? arguments[1] : "", std::ios::binary);
  if (!file) {
    std::cerr << "usage: model_trial FILE | model_trial --operators\n";
    return 2;
  }
  const Registry registry = Registry::built_in();
  const Catalogue catalogue(cpu::rows_of(cpu::native_cluster()), registry);
  const Target target = cpu::target_of(cpu::native_cluster(), false, catalogue);
  for (Trial trial; read_trial(file, trial);) {
    std::string answer = judge(trial, registry, target);
    for (char& c : answer) c = c == '\n' ? ' ' : c;
    std::cout << trial.seed << ' ' << answer << std::endl;
  }
  return 0;
}

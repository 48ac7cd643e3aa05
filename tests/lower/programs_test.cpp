// Runs every case of tests/lower/programs.ir: the graph becomes this program, and the program computes what the
// interpreter computes, for several sizes, through a file too, for any number of threads, with kernels and with the
// reference loops alone.
//
//   case NAME [SYMBOL=SIZE …]
//   graph "g" (…) { … }
//   program
//   KIND OPERATIONS [ROW] (operands) -> results
//
// With POLYPHASE_UPDATE_CASES=1 the driver writes the programs it found into the file, for a person to read through.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "engine/check.h"
#include "lower/lower.h"
#include "lower/program_text.h"
#include "passes/random_data.h"
#include "runtime/session.h"
#include "runtime/test_rows.h"

namespace polyphase {
namespace {

struct Case {
  std::string head;
  DimBindings sizes;
  std::string graph;
  std::string program;
};

std::string cases_path() { return std::string(POLYPHASE_SOURCE_DIR) + "/tests/lower/programs.ir"; }

std::vector<Case> read_cases(std::string& preamble) {
  std::vector<Case> cases;
  std::ifstream in(cases_path());
  std::string* into = &preamble;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("case ", 0) == 0) {
      cases.push_back({line, {}, {}, {}});
      std::istringstream words(line.substr(5));
      for (std::string word; words >> word;) {
        const auto equals = word.find('=');
        if (equals != std::string::npos)
          cases.back().sizes[word.substr(0, equals)] = std::stoll(word.substr(equals + 1));
      }
      into = &cases.back().graph;
    } else if (line == "program") {
      into = &cases.back().program;
    } else if (!line.empty() || into == &preamble) {
      *into += line + "\n";
    }
  }
  return cases;
}

void write_cases(const std::string& preamble, const std::vector<Case>& cases) {
  std::ofstream out(cases_path());
  out << preamble;
  for (const Case& each : cases) {
    out << (&each == &cases.front() ? "" : "\n") << each.head << "\n" << each.graph << "program\n" << each.program;
  }
}

const Registry& registry() {
  static const Registry built_in = Registry::built_in();
  return built_in;
}

Target target_with(const Catalogue& catalogue, bool portable) {
  Target target;
  target.catalogue = &catalogue;
  target.portable = portable;
  return target;
}

// Bits, not only numbers, are equal from any number of threads.
void expect_same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(equal_elements(a[i].view(), b[i].view())) << what;
}

void run_and_compare(const Case& each, const Graph& graph, const Engine& engine, const Target& target) {
  auto program = make_program(std::make_shared<const Engine>(engine), target);
  ASSERT_TRUE(program.ok()) << each.head << ": " << program.error().text();
  Session one(*program, {.threads = 1});
  Session four(*program, {.threads = 4});
  Random random(1);
  int legal = 0;
  std::string refusal;
  for (int draw = 0; draw < 6; ++draw) {
    const std::vector<Tensor> inputs = random_inputs(graph, random_sizes(graph, each.sizes, random), random);
    RunRequest request;
    for (const Tensor& input : inputs) request.inputs.push_back(input.view());
    const auto expected = interpret(graph, inputs);
    const auto found = one.run(request);
    ASSERT_EQ(expected.ok(), found.ok()) << each.head << ": "
                                         << (expected.ok() ? found.error().text() : expected.error().text());
    if (!expected.ok()) {
      refusal = expected.error().text();
      continue;
    }
    ++legal;
    EXPECT_EQ(difference(*expected, *found, 0), "") << each.head;
    const auto again = four.run(request);
    ASSERT_TRUE(again.ok());
    expect_same_bits(*found, *again, each.head);
  }
  EXPECT_GT(legal, 0) << each.head << ": no draw was legal: " << refusal;
}

TEST(Programs, AreAsWrittenAndComputeWhatTheGraphMeans) {
  std::string preamble;
  std::vector<Case> cases = read_cases(preamble);
  ASSERT_FALSE(cases.empty());
  const bool update = std::getenv("POLYPHASE_UPDATE_CASES") != nullptr;
  const Catalogue kernels(test_rows(), registry());
  const Catalogue bare({}, registry());
  for (Case& each : cases) {
    auto graph = parse_graph(each.graph, registry());
    ASSERT_TRUE(graph.ok()) << each.head << ": " << graph.error().text();
    for (const Catalogue* catalogue : {&kernels, &bare}) {
      for (const bool portable : {false, true}) {
        const Target target = target_with(*catalogue, portable);
        auto engine = lower(**graph, target);
        ASSERT_TRUE(engine.ok()) << each.head << ": " << engine.error().text();
        const auto checked = check_engine(*engine, registry());
        EXPECT_TRUE(checked.ok()) << each.head << ": " << (checked.ok() ? "" : checked.error().text()) << "\n"
                                  << program_text(*engine);
        if (catalogue == &kernels && !portable) {
          const std::string text = program_text(*engine);
          if (update) {
            each.program = text;
          } else {
            EXPECT_EQ(text, each.program) << each.head;
          }
        }
        run_and_compare(each, **graph, *engine, target);
      }
    }
  }
  if (update) write_cases(preamble, cases);
}

}  // namespace
}  // namespace polyphase

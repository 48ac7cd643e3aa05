// Runs every case of tests/passes/*.ir: the pass turns `before` into `after`, and both, and the result, compute the
// same; a second run changes nothing.
//
//   case NAME [tolerance=1e-6] [target=amx] [SYMBOL=SIZE …] [again]      `again`: one more run may still change
//                                                                          something; a target: precision automatic
//   graph "before" (…) { … }
//   after                                                   or `unchanged`
//   graph "before" (…) { … }
//
// The file's name is the pass's. With POLYPHASE_UPDATE_CASES=1 in the environment the driver writes what it found into
// the file, for a person to read through.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "passes/passes.h"
#include "passes/pipeline.h"
#include "passes/plain_rows.h"
#include "passes/random_data.h"

namespace polyphase {
namespace {

struct Case {
  std::string head;  // the line
  std::string name;
  double tolerance = 0;
  bool again = false;
  std::optional<Cluster> cluster;  // with precision automatic
  DimBindings sizes;
  std::string before;
  std::string after;
};

struct CaseFile {
  std::string preamble;
  std::vector<Case> cases;
};

Case parse_head(const std::string& line) {
  Case out;
  out.head = line;
  std::istringstream words(line.substr(5));
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (word == "again") {
      out.again = true;
    } else if (equals == std::string::npos) {
      out.name += (out.name.empty() ? "" : " ") + word;
    } else if (word.substr(0, equals) == "tolerance") {
      out.tolerance = std::stod(word.substr(equals + 1));
    } else if (word.substr(0, equals) == "target") {
      out.cluster = cluster_from_name(word.substr(equals + 1));
      EXPECT_TRUE(out.cluster.has_value()) << line;
    } else {
      out.sizes[word.substr(0, equals)] = std::stoll(word.substr(equals + 1));
    }
  }
  return out;
}

CaseFile read_cases(const std::filesystem::path& path) {
  CaseFile file;
  std::ifstream in(path);
  std::string* into = &file.preamble;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("case ", 0) == 0) {
      file.cases.push_back(parse_head(line));
      into = &file.cases.back().before;
    } else if (line == "after" || line == "unchanged") {
      if (line == "unchanged") file.cases.back().after = "unchanged\n";
      into = &file.cases.back().after;
    } else if (!line.empty() || into == &file.preamble) {
      *into += line + "\n";
    }
  }
  return file;
}

void write_cases(const std::filesystem::path& path, const CaseFile& file) {
  std::ofstream out(path);
  out << file.preamble;
  for (const Case& each : file.cases) {
    if (&each != &file.cases.front()) out << "\n";
    out << each.head << "\n" << each.before << (each.after == "unchanged\n" ? "" : "after\n") << each.after;
  }
}

PassFunction pass_named(std::string_view name) {
  for (const Pass& pass : pass_table()) {
    if (pass.name == name) return pass.run;
  }
  return nullptr;
}

std::unique_ptr<Graph> parsed(const std::string& text, const std::string& what) {
  auto graph = parse_graph(text, registry());
  EXPECT_TRUE(graph.ok()) << what << ": " << (graph.ok() ? "" : graph.error().text()) << "\n" << text;
  if (!graph.ok()) return nullptr;
  const auto verified = verify(**graph);
  EXPECT_TRUE(verified.ok()) << what << ": " << (verified.ok() ? "" : verified.error().text());
  return std::move(graph).value();
}

// Several draws of sizes and data; at least one must be legal for `before`.
void compare_runs(const Case& each, const Graph& before, const Graph& result) {
  Random random(20240607);
  int legal = 0;
  std::string refusal;
  for (int draw = 0; draw < 4; ++draw) {
    const DimBindings sizes = random_sizes(before, each.sizes, random);
    const std::vector<Tensor> inputs = random_inputs(before, sizes, random);
    const auto expected = interpret(before, inputs);
    if (!expected.ok()) {
      refusal = expected.error().text();
      continue;
    }
    ++legal;
    const auto found = interpret(result, inputs);
    ASSERT_TRUE(found.ok()) << found.error().text();
    EXPECT_EQ(difference(*expected, *found, each.tolerance), "");
  }
  EXPECT_GT(legal, 0) << "no draw of sizes is legal: " << refusal;
}

void run_case(PassFunction pass, Case& each, bool update) {
  const auto before = parsed(each.before, "before");
  if (before == nullptr) return;
  const Catalogue& catalogue = plain_catalogue(registry());
  Target target;
  target.catalogue = &catalogue;
  if (each.cluster.has_value()) {
    target.cluster = *each.cluster;
    target.precision = Precision::automatic;
  }
  const auto result = clone(*before);
  const bool changed = pass(*result, target);
  const auto verified = verify(*result);
  ASSERT_TRUE(verified.ok()) << verified.error().text() << "\n" << print(*result);
  const std::string text = print(*result);
  // (A layout that is said for the first time may be the one that goes without saying.)
  EXPECT_TRUE(changed || text == print(*before)) << "the pass says that it did not change the graph";
  if (update) {
    each.before = print(*before);
    each.after = text == each.before ? "unchanged\n" : text;
  } else {
    const std::string expected = each.after == "unchanged\n" ? print(*before) : each.after;
    EXPECT_EQ(text, expected);
    if (each.after != "unchanged\n") {
      const auto after = parsed(each.after, "after");
      if (after != nullptr) compare_runs(each, *before, *after);
    }
  }
  compare_runs(each, *before, *result);
  if (each.again) return;
  EXPECT_FALSE(pass(*result, target)) << "a second run changes the graph again:\n" << print(*result);
}

TEST(Passes, Cases) {
  const char* asked = std::getenv("POLYPHASE_UPDATE_CASES");
  const char* named = std::getenv("POLYPHASE_ONLY_PASS");
  const std::string only = named == nullptr ? "" : named;
  const bool update = asked != nullptr && std::string_view(asked) == "1";
  const std::filesystem::path folder = POLYPHASE_SOURCE_DIR "/tests/passes";
  std::map<std::string, int> counts;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".ir") continue;
    const std::string name = entry.path().stem().string();
    if (!only.empty() && name != only) continue;
    const PassFunction pass = pass_named(name);
    ASSERT_NE(pass, nullptr) << entry.path() << " has the name of no pass";
    CaseFile file = read_cases(entry.path());
    for (Case& each : file.cases) {
      SCOPED_TRACE(name + ", case " + each.name);
      run_case(pass, each, update);
      ++counts[name];
    }
    if (update) write_cases(entry.path(), file);
  }
  if (!only.empty()) return;
  for (const Pass& pass : pass_table()) EXPECT_GT(counts[std::string(pass.name)], 0) << "no cases for " << pass.name;
}

}  // namespace
}  // namespace polyphase

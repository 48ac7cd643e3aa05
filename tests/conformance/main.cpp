// Runs case lines on every kernel row that takes them, on every cluster of this CPU, against the reference.
//
//   conformance FILE|FOLDER|'CASE LINE'… [--bench] [--verbose] [--row NAME] [--cluster NAME]
//
// A failure prints the line, cluster, row and variant, which repeat it. --bench times each row after its result was
// checked. Under a sanitizer the lines of files and folders run on one cluster each, by turns.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "backends/cpu/catalogue.h"
#include "conformance/execution.h"
#include "conformance/symbolic.h"
#include "suite_size.h"

namespace polyphase::test {
namespace {

struct Options {
  std::vector<std::string> sources;
  bool bench = false;
  bool verbose = false;
  std::string row;
  std::string cluster;
};

struct Tally {
  int cases = 0;
  int runs = 0;
  int symbolic = 0;  // variants that were also seen with symbols for sizes
  int failures = 0;
  std::map<std::string, int> runs_of_row;           // "conv_gemm avx2"
  std::map<std::string, int> only_reference_of_op;  // cases that no row but the reference takes
};

class Driver {
 public:
  explicit Driver(Options options) : options_(std::move(options)), registry_(Registry::built_in()) {
    for (const Cluster cluster : all_clusters) {
      if (cpu::runs_here(cluster)) catalogues_.emplace(cluster, Catalogue(cpu::rows_of(cluster), registry_));
    }
  }

  int run() {
    for (const std::string& source : options_.sources) run_source(source);
    std::printf("%d cases, %d runs, %d with symbolic sizes, %d failures\n", tally_.cases, tally_.runs, tally_.symbolic,
                tally_.failures);
    for (const auto& [row, runs] : tally_.runs_of_row) std::printf("  %-40s %6d runs\n", row.c_str(), runs);
    for (const auto& [op, cases] : tally_.only_reference_of_op)
      std::printf("  %-40s %6d cases taken by the reference alone\n", op.c_str(), cases);
    if (tally_.cases == 0) std::printf("nothing was tested\n");
    return tally_.failures == 0 && tally_.cases > 0 ? 0 : 1;
  }

 private:
  void run_source(const std::string& source) {
    if (std::filesystem::is_directory(source)) {
      std::set<std::filesystem::path> files;
      for (const auto& entry : std::filesystem::directory_iterator(source)) {
        if (entry.path().extension() == ".cases") files.insert(entry.path());
      }
      for (const auto& file : files) run_file(file);
    } else if (std::filesystem::is_regular_file(source)) {
      run_file(source);
    } else {
      run_line(source);
    }
  }

  void run_file(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      where_ = path.filename().string() + ":" + std::to_string(number);
      if (line.empty() || line[0] == '#') continue;
      const int turn = tally_.cases % static_cast<int>(catalogues_.size());
      run_line(line, sliced() ? std::optional(turn) : std::nullopt);
    }
  }

  void fail(const std::string& line, const std::string& what) {
    ++tally_.failures;
    std::printf("FAILED %s: %s\n  %s\n", where_.c_str(), line.c_str(), what.c_str());
  }

  // On all clusters, or on the one whose `turn` it is.
  void run_line(const std::string& line, std::optional<int> turn = {}) {
    ++tally_.cases;
    auto parsed = parse_case(line, registry_);
    if (!parsed.ok()) return fail(line, parsed.error().text());
    const auto prepared = prepare(std::move(parsed).value());
    if (!prepared.ok()) return fail(line, prepared.error().text());
    bool taken = false;
    int at = 0;
    for (const auto& [cluster, catalogue] : catalogues_) {
      const bool waits = turn.has_value() && *turn != at;
      ++at;
      if (waits || (!options_.cluster.empty() && options_.cluster != name_of(cluster))) continue;
      for (const Variant& variant : variants_of(*prepared))
        taken |= run_variant(*prepared, variant, cluster, catalogue);
    }
    if (!taken) ++tally_.only_reference_of_op[prepared->parts.front().op->name];
  }

  // Whether a row other than the reference took it.
  bool run_variant(const PreparedCase& prepared, const Variant& variant, Cluster cluster, const Catalogue& catalogue) {
    const Target target = cpu::target_of(cluster, false, catalogue);
    std::vector<TensorView> constants;
    for (const Tensor& input : prepared.inputs) constants.push_back(input.view());
    const StepDesc desc = describe(prepared, variant, constants);
    if (variant.density == Density::dense) check_symbols(prepared, variant, desc, target);
    bool taken = false;
    for (const RowAnswer& answer : catalogue.ask(desc, desc, target)) {
      const std::string label = std::string(answer.row->name) + " " + std::string(name_of(cluster));
      if (answer.row->reference && (cluster != Cluster::scalar || desc.parts.size() > 1)) continue;
      if (!options_.row.empty() && options_.row != answer.row->name) continue;
      if (!answer.refusal.empty()) {
        if (options_.verbose)
          std::printf("%s | %s | %s refuses: %s\n", where_.c_str(), variant.text().c_str(), label.c_str(),
                      answer.refusal.c_str());
        continue;
      }
      taken |= !answer.row->reference;
      ++tally_.runs;
      ++tally_.runs_of_row[label];
      const std::string wrong = check_row(prepared, variant, *answer.row, desc, target);
      if (!wrong.empty()) {
        fail(prepared.source.line, label + " | " + variant.text() + " | " + wrong);
      } else if (options_.bench) {
        const double seconds = time_row(prepared, *answer.row, desc, target);
        std::printf("%10.2f us  %-32s %-40s %s\n", seconds * 1e6, label.c_str(), variant.text().c_str(),
                    prepared.source.line.c_str());
      }
    }
    return taken;
  }

  // What a row takes for every value of the symbols it must take for these.
  void check_symbols(const PreparedCase& prepared, const Variant& variant, const StepDesc& desc, const Target& target) {
    const auto symbolic = with_symbols(prepared, desc);
    if (!symbolic.has_value()) return;
    ++tally_.symbolic;
    if (!symbolic->wrong.empty()) fail(prepared.source.line, symbolic->wrong);
    for (const Row* row : target.catalogue->rows_for(desc.anchor_part().op->name)) {
      const std::string refusal = refusal_of(*row, desc, target);
      if (!refusal.empty() && refusal_of(*row, symbolic->desc, target).empty()) {
        fail(prepared.source.line, std::string(row->name) + " " + std::string(name_of(target.cluster)) + " | " +
                                       variant.text() + " | takes the sizes as symbols but not as numbers: " + refusal);
      }
    }
  }

  Options options_;
  Registry registry_;
  std::map<Cluster, Catalogue> catalogues_;
  Tally tally_;
  std::string where_ = "argument";
};

int main_of(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const auto value = [&] { return i + 1 < count ? std::string(arguments[++i]) : std::string(); };
    if (argument == "--bench") {
      options.bench = true;
    } else if (argument == "--verbose") {
      options.verbose = true;
    } else if (argument == "--row") {
      options.row = value();
    } else if (argument == "--cluster") {
      options.cluster = value();
    } else {
      options.sources.push_back(argument);
    }
  }
  return Driver(std::move(options)).run();
}

}  // namespace
}  // namespace polyphase::test

int main(int count, char** arguments) { return polyphase::test::main_of(count, arguments); }

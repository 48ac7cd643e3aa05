// Random transposed convolutions on every kernel row of every cluster: the lines come from
// tests/python/geometry_oracle.py, which knows the right output's sum from PyTorch. The reference loops must give that
// sum; every row must give the reference's bits.
//
//   geometry_test FILE|- [SECONDS]      one case per line, until the time is up; a failing line reproduces alone
//
// The case's seed also chooses how operands lie in memory and in which order, on how many threads, tiles are computed.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "backends/cpu/catalogue.h"
#include "conformance/execution.h"
#include "ops/registry.h"

namespace polyphase::test {
namespace {

using Sizes = std::vector<std::int64_t>;

struct Geometry {
  std::map<std::string, Sizes> fields;
  std::int64_t one(const std::string& name) const { return fields.at(name).at(0); }
  const Sizes& list(const std::string& name) const { return fields.at(name); }
  std::uint64_t sum = 0;
};

Geometry parse_geometry(const std::string& line) {
  Geometry out;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (name == "sum") {
      out.sum = std::stoull(word.substr(equals + 1), nullptr, 16);
      continue;
    }
    std::istringstream numbers(word.substr(equals + 1));
    for (std::string number; std::getline(numbers, number, 'x');) out.fields[name].push_back(std::stoll(number));
  }
  return out;
}

// The oracle's data: -3 … 3 from the high bits of a multiplicative hash of the index.
Tensor make_integers(const Sizes& sizes, std::int64_t seed, std::uint64_t salt) {
  Tensor tensor = Tensor::allocate(DType::f32, sizes).value();
  const auto start = static_cast<std::uint32_t>(static_cast<std::uint64_t>(seed) * 40503U + salt * 7919U);
  const std::int64_t count = tensor.view().element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t hash = static_cast<std::uint32_t>(i) * 2654435761U + start;
    hash ^= hash >> 15U;
    hash *= 2246822519U;
    tensor.view().as<float>()[i] = static_cast<float>((hash >> 13U) % 7U) - 3.0F;
  }
  return tensor;
}

std::uint64_t output_sum(const Tensor& tensor) {
  std::uint64_t sum = 0;
  const std::int64_t count = tensor.view().element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<std::uint64_t>(static_cast<std::int64_t>(tensor.view().as<float>()[i]));
    sum += (value + 1) * (static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15U + 0xD1B54A32D192ED03U);
  }
  return sum;
}

std::vector<Dim> dims_of(const Sizes& sizes) { return {sizes.begin(), sizes.end()}; }

Result<PreparedCase> prepare_geometry(const Geometry& g, const Registry& registry) {
  PreparedCase out;
  const OpDef& op = registry.at("conv_transpose");
  Part part{&op, {}, {0, 1}};
  TRY(part.attributes, op.complete(Attributes({{"stride", g.list("s")},
                                               {"dilation", g.list("d")},
                                               {"groups", g.one("groups")},
                                               {"pre", dims_of(g.list("pre"))},
                                               {"post", dims_of(g.list("post"))}})));
  Sizes x = {g.one("n"), g.one("cin")};
  Sizes w = {g.one("cin"), g.one("cout") / g.one("groups")};
  x.insert(x.end(), g.list("in").begin(), g.list("in").end());
  w.insert(w.end(), g.list("k").begin(), g.list("k").end());
  out.inputs = {make_integers(x, g.one("seed"), 1), make_integers(w, g.one("seed"), 2)};
  out.follows_data = {true, false};
  if (g.one("bias") != 0) {
    part.operands.push_back(2);
    out.inputs.push_back(make_integers({g.one("cout")}, g.one("seed"), 3));
    out.follows_data.push_back(false);
  }
  TRY(out.expected, evaluate_reference(op, part.attributes, out.inputs));
  out.parts.push_back(std::move(part));
  return out;
}

// One density or way of the weights, by the case's seed, for each layout of operand and result. Strided views are
// copied before a convolution reads them.
std::vector<Variant> choose_variants(const PreparedCase& prepared, std::mt19937_64& random) {
  std::map<std::pair<bool, bool>, std::vector<Variant>> by_layout;
  for (const Variant& variant : variants_of(prepared)) {
    if (variant.density != Density::strided)
      by_layout[{variant.channels_last_in, variant.channels_last_out}].push_back(variant);
  }
  std::vector<Variant> out;
  for (const auto& [layout, variants] : by_layout) out.push_back(variants[random() % variants.size()]);
  return out;
}

class Driver {
 public:
  Driver() : registry_(Registry::built_in()) {
    for (const Cluster cluster : all_clusters) {
      if (cpu::runs_here(cluster)) catalogues_.emplace(cluster, Catalogue(cpu::rows_of(cluster), registry_));
    }
  }

  int run(std::istream& lines, double limit_seconds) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty() && line[0] != '#') run_line(line);
      if (std::chrono::duration<double>(Clock::now() - begin).count() > limit_seconds) break;
    }
    for (const auto& [row, runs] : runs_of_row_) std::printf("  %-40s %8ld runs\n", row.c_str(), runs);
    std::printf("%ld passed, %ld failed\n", cases_ - failures_, failures_);
    return failures_ == 0 && cases_ > 0 ? 0 : 1;
  }

 private:
  void fail(const std::string& line, const std::string& what) {
    ++failures_;
    if (failures_ <= 20) std::printf("FAILED %s\n  %s\n", line.c_str(), what.c_str());
  }

  void run_line(const std::string& line) {
    ++cases_;
    const Geometry geometry = parse_geometry(line);
    const auto prepared = prepare_geometry(geometry, registry_);
    if (!prepared.ok()) return fail(line, prepared.error().text());
    if (output_sum(prepared->expected.front()) != geometry.sum)
      return fail(line, "the reference loops disagree with the oracle");
    std::vector<TensorView> constants;
    for (const Tensor& input : prepared->inputs) constants.push_back(input.view());
    std::mt19937_64 random(static_cast<std::uint64_t>(geometry.one("seed")));
    const std::vector<Variant> variants = choose_variants(*prepared, random);
    const TileOrder order = std::array{TileOrder::ascending, TileOrder::descending, TileOrder::shuffled,
                                       TileOrder::two_workers, TileOrder::three_workers}[random() % 5];
    for (const auto& [cluster, catalogue] : catalogues_) {
      const Target target = cpu::target_of(cluster, false, catalogue);
      bool served = false;
      std::string refusals;
      for (const Variant& variant : variants) {
        const StepDesc desc = describe(*prepared, variant, constants);
        for (const RowAnswer& answer : catalogue.ask(desc, desc, target)) {
          if (answer.row->reference) continue;
          if (!answer.refusal.empty()) {
            refusals += " | " + std::string(answer.row->name) + ": " + answer.refusal;
            continue;
          }
          served = true;
          const std::string label = std::string(answer.row->name) + " " + std::string(name_of(cluster));
          ++runs_of_row_[label];
          const std::string wrong = check_row(*prepared, variant, *answer.row, desc, target, {&order, 1});
          if (!wrong.empty()) return fail(line, label + " | " + variant.text() + " | " + wrong);
        }
      }
      if (!served) return fail(line, "only the reference takes it on " + std::string(name_of(cluster)) + refusals);
    }
  }

  Registry registry_;
  std::map<Cluster, Catalogue> catalogues_;
  std::map<std::string, long> runs_of_row_;
  long cases_ = 0;
  long failures_ = 0;
};

}  // namespace
}  // namespace polyphase::test

int main(int count, char** arguments) {
  if (count < 2 || count > 3) {
    std::fprintf(stderr, "usage: geometry_test FILE|- [SECONDS]\n");
    return 2;
  }
  const double limit_seconds = count > 2 ? std::atof(arguments[2]) : 1e9;
  polyphase::test::Driver driver;
  if (std::string(arguments[1]) == "-") return driver.run(std::cin, limit_seconds);
  std::ifstream file(arguments[1]);
  return driver.run(file, limit_seconds);
}

// compare --layers: every tensor inside a model against the interpreter or a golden archive.
#pragma once

#include <string>

#include "cli/data.h"
#include "cli/network.h"

namespace CLI {  // NOLINT(readability-identifier-naming): that of the library
class App;
class Option;
}  // namespace CLI

namespace polyphase::cli {

struct LayerFlags {
  std::string reference = "interpreter";
  double tolerance = 1e-4;
  std::string write_golden;
  std::string write_found;
  bool all = false;
};

// Each needs `layers`.
void add_layer_flags(CLI::App& command, CLI::Option& layers, LayerFlags& flags);
// Whether every tensor is within tolerance. Without inputs, seeded random ones are made for the sizes that
// --shape and --dim give.
Result<bool> compare_layers(const NetworkFlags& network, const InputFlags& inputs, const LayerFlags& flags,
                            int threads);

}  // namespace polyphase::cli

// What `inspect` has found out, and the page that shows it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/sizes.h"
#include "cli/timing.h"
#include "polyphase/diagnose.h"
#include "polyphase/polyphase.h"

namespace polyphase::cli {

struct Inspected {
  api::EngineInfo info;
  std::vector<api::Port> inputs;
  std::vector<api::Port> outputs;
  RunSizes sizes;
  api::Report report;
  // For the page:
  std::string path;  // as given
  bool was_engine = false;
  double open_seconds = 0;  // loading, or compiling
  std::vector<std::optional<Sizes>> output_sizes;
  std::optional<api::PassHistory> passes;  // of a model
  std::optional<StepTimes> times;          // none: the run ended with `timing_error`
  std::string timing_error;
  Roof roof;
  int threads = 0;
};

// One HTML file that needs nothing else, whatever names stand in the model. Error: it cannot be written.
Result<void> write_page(const std::string& path, const Inspected& all);

}  // namespace polyphase::cli

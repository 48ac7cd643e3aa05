// Chrome's trace events: https://ui.perfetto.dev and chrome://tracing open them.
#pragma once

#include <string>
#include <vector>

#include "polyphase/polyphase.h"

namespace polyphase::cli {

struct TraceStep {
  std::string name;
  std::string node;
  std::string kernel;
  double seconds = 0;
  double flops = 0;
  double bytes = 0;
};

// The steps one behind the other on one track.
Result<void> write_trace(const std::string& path, const std::string& title, const std::vector<TraceStep>& steps);

}  // namespace polyphase::cli

// Complete events (ph X), times in microseconds.
#include "cli/trace.h"

#include "cli/json.h"
#include "io/whole_file.h"

namespace polyphase::cli {

Result<void> write_trace(const std::string& path, const std::string& title, const std::vector<TraceStep>& steps) {
  Json events = Json::array();
  events.push_back(
      {{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"tid", 1}, {"args", {{"name", "polyphase " + title}}}});
  events.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", 1}, {"args", {{"name", "steps"}}}});
  double start_us = 0;
  for (const TraceStep& step : steps) {
    const double duration_us = step.seconds * 1e6;
    events.push_back({{"name", step.name},
                      {"cat", step.kernel.empty() ? "step" : step.kernel},
                      {"ph", "X"},
                      {"ts", start_us},
                      {"dur", duration_us},
                      {"pid", 1},
                      {"tid", 1},
                      {"args",
                       {{"node", step.node},
                        {"kernel", step.kernel},
                        {"gflops", step.seconds > 0 ? step.flops / step.seconds / 1e9 : 0},
                        {"gbytes_per_s", step.seconds > 0 ? step.bytes / step.seconds / 1e9 : 0}}}});
    start_us += duration_us;
  }
  const Json trace = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return io::write_whole_file(path, {trace.dump(1, ' ', false, Json::error_handler_t::replace), "\n"});
}

}  // namespace polyphase::cli

// MODEL on the command line: an engine, or a model that is compiled first; and the flags that go with compiling.
#pragma once

#include <string>
#include <vector>

#include "cli/sizes.h"
#include "polyphase/polyphase.h"

namespace CLI {  // NOLINT(readability-identifier-naming): that of the library
class App;
class Option;
}  // namespace CLI

namespace polyphase::cli {

struct NetworkFlags {
  std::string path;
  std::string target = "native";
  std::vector<std::string> shapes;
  std::vector<std::string> dims;
  std::vector<std::string> tune_for;
  std::vector<std::string> input_layouts;
  std::vector<std::string> output_layouts;
  std::string precision;
  bool tune = false;
  std::string timing_cache;
  std::vector<std::string> plugins;  // files
  std::vector<std::string> without;
  std::vector<std::string> print_after;
  std::string stop_after;
  bool refittable = false;
  std::string engine_file;  // where the engine is written while it is compiled; empty: nowhere
  bool json = false;        // graphs that are printed go to stderr then, so that stdout is JSON
};

// Adds MODEL, --json, and the flags that go with compiling.
void add_network_flags(CLI::App& command, NetworkFlags& flags);
// --plugin FILE, which may be repeated; and the plugins of such files.
void add_plugin_flag(CLI::App& command, std::vector<std::string>& files);
Result<std::vector<api::Plugin>> load_plugins(const std::vector<std::string>& files);
// --threads N.
CLI::Option* add_threads_flag(CLI::App& command, int& threads);

struct Network {
  api::Engine engine;
  SizeFlags sizes;
  bool was_engine = false;  // the file was an engine
  double open_seconds = 0;  // loading, or compiling
  api::TuneReport tuned;    // of a compilation with --tune
};

bool is_engine_file(const std::string& path);
// Loads or compiles, with progress. The flags that only a compilation reads are refused for an engine.
// `threads`: of the sessions to come, 0: one per core; what --tune measures with. `history`: see CompileOptions; an
// engine leaves it empty.
Result<Network> open_network(const NetworkFlags& flags, int threads, api::PassHistory* history = nullptr);
// Refuses --shape and --dim where an engine's sizes come from arrays: they would do nothing.
Result<void> refuse_sizes_of_engine(const Network& network, const NetworkFlags& flags);

// Opens the session and says on stderr when the engine runs reference rows.
Result<api::Session> open_session(const api::Engine& engine, int threads);

}  // namespace polyphase::cli

// The commands. Each adds itself to the program and, if it is the one that was typed, sets `run` to what it does.
#pragma once

#include <functional>

namespace CLI {  // NOLINT(readability-identifier-naming): that of the library
class App;
}

namespace polyphase::cli {

// What a command does; returns an ExitCode.
using Run = std::function<int()>;

void add_compile(CLI::App& app, Run& run);
void add_run(CLI::App& app, Run& run);
void add_bench(CLI::App& app, Run& run);
void add_compare(CLI::App& app, Run& run);
void add_compat(CLI::App& app, Run& run);
void add_inspect(CLI::App& app, Run& run);
void add_explain(CLI::App& app, Run& run);
void add_export(CLI::App& app, Run& run);
void add_extract(CLI::App& app, Run& run);
void add_check(CLI::App& app, Run& run);
void add_converters(CLI::App& app, Run& run);
void add_refit(CLI::App& app, Run& run);
void add_devices(CLI::App& app, Run& run);

}  // namespace polyphase::cli

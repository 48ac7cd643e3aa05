// polyphase: compile networks that upsample, run them, measure them, explain them.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "polyphase/polyphase.h"

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace polyphase::cli;

constexpr const char* examples = R"(
Examples:
  polyphase compile model.onnx -o model.ppe
  polyphase run model.ppe --inputs in.npz --outputs out.npz
  polyphase run upscale.onnx --input photo.png --output large.png
  polyphase bench model.ppe --threads 1 --json
  polyphase explain model.ppe --shape x=1x3x512x512
  polyphase check model.onnx

Results go to stdout, words to stderr. Exit codes: 0 done; 1 something is wrong with what you gave (a file, a value, a
difference that compare found); 2 the command line is wrong; 3 a defect of Polyphase; 4 the model
that check looked at needs what Polyphase does not have.
`polyphase COMMAND --help` tells everything about a command.)";

// A broken CHECK aborts: that is our fault, and the shell shall see it as such.
extern "C" void on_abort(int) { ::_exit(exit_ours); }

// What was written where a command is expected; empty: nothing, or a flag.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first.empty() || first[0] == '-') return {};
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == first) return {};
  }
  return first;
}

// A file that is opened while stdin, stdout or stderr is closed would take its place, and results would go into it.
void open_standard_files() {
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
    if (::fcntl(file, F_GETFD) == -1 && errno == EBADF) static_cast<void>(::open("/dev/null", O_RDWR));
  }
}

int run_command(int argc, char** argv) {
  CLI::App app("Compile and run neural networks that upsample.", "polyphase");
  app.set_version_flag("--version", "polyphase " + std::string(polyphase::api::version()));
  app.footer(examples);
  app.require_subcommand(1);
  app.fallthrough(false);
  Run run;
  add_compile(app, run);
  add_run(app, run);
  add_bench(app, run);
  add_compare(app, run);
  add_compat(app, run);
  add_inspect(app, run);
  add_explain(app, run);
  add_check(app, run);
  add_export(app, run);
  add_extract(app, run);
  add_refit(app, run);
  add_converters(app, run);
  add_devices(app, run);
  if (argc == 1) {
    say(app.help());
    return exit_usage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked);
    return flush_results() ? exit_ok : exit_user;
  } catch (const CLI::ParseError& wrong) {
    const std::string unknown = unknown_command(app, argc, argv);
    if (!unknown.empty()) {
      say("polyphase: there is no command '" + plain(unknown) +
          "'. The commands are compile, run, bench, compare, compat, inspect, explain, check, export, extract, "
          "refit, converters and devices.");
    } else {
      say("polyphase: " + plain(wrong.what()));
    }
    say("Run polyphase --help, or polyphase COMMAND --help.");
    return exit_usage;
  }
  const int code = run();
  return flush_results() ? code : static_cast<int>(exit_user);
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_files();
  std::signal(SIGABRT, on_abort);
  std::signal(SIGPIPE, SIG_IGN);  // a reader who leaves does not end a command before its files are written
  try {
    return run_command(argc, argv);
  } catch (const std::bad_alloc&) {
    say("polyphase: error: there is not enough memory.");
    return exit_user;
  } catch (const std::exception& thrown) {
    say(std::string("polyphase: internal error: ") + thrown.what());
    return exit_ours;
  }
}

// polyphase: compile networks that upsample, run them, measure them, explain them.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "polyphase/polyphase.h"

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

Results go to stdout, words to stderr. Exit codes: 0 done; 1 something is wrong with what you gave (a file, a value, a
difference that compare found); 2 the command line is wrong; 3 a defect of Polyphase.
`polyphase COMMAND --help` tells everything about a command.)";

// A broken CHECK aborts: that is our fault, and the shell shall see it as such.
extern "C" void on_abort(int) { ::_exit(exit_ours); }

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
  add_inspect(app, run);
  add_explain(app, run);
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
    say(std::string("polyphase: ") + wrong.what());
    say("Run polyphase --help, or polyphase COMMAND --help.");
    return exit_usage;
  }
  const int code = run();
  return flush_results() ? code : static_cast<int>(exit_user);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGABRT, on_abort);
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

// What the program tells the shell.
#pragma once

namespace polyphase::cli {

enum ExitCode : int {
  exit_ok = 0,
  exit_user = 1,         // the model, a file, a value, a difference that compare found
  exit_usage = 2,        // the command line
  exit_ours = 3,         // a defect of Polyphase
  exit_unsupported = 4,  // check: the model needs what Polyphase does not have
};

}  // namespace polyphase::cli

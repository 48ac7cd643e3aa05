// CompileOptions::tune: from options to the tuner of a compilation, and what it did to a TuneReport.
#pragma once

#include <memory>

#include "api/state.h"
#include "tune/tuner.h"

namespace polyphase::api {

// null: the options do not ask for it. `options` must outlive the tuner's measuring. Errors: invalid_argument (a target
// that cannot be measured here, threads), io and corrupt (the timing cache).
Result<std::shared_ptr<Tuner>> tuner_of(const CompileOptions& options, const Target& target);
// Ends its measuring, writes the timing cache, and fills options.tuned.
void finish_tuning(Tuner& tuner, const CompileOptions& options);

}  // namespace polyphase::api
